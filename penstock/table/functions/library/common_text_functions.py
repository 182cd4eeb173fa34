"""Frequently used functions of texts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from penstock.table.functions.typing.coercion import BYTES, TEXTS, nullable
from penstock.table.functions.typing.registry import Kernel, Unfit, Value, arrow, register, rowwise
from penstock.table.functions.typing.result_types import (
    INTEGER,
    TEXT,
    WORD,
    either,
    same_as,
    signature,
    texts_of,
)
from penstock.table.logical.rex import Call, Rex
from penstock.table.types import data_types as t

STRING = t.DataTypes.STRING()
INT = t.IntType()


# --- concatenation ---
def _concatenation_type(args: tuple[Rex, ...]) -> tuple[tuple[Rex, ...], t.DataType]:
    """Infer the type of ||, which adds the lengths."""
    kinds = [arg.type for arg in args]
    for family, fixed, free in ((TEXTS, t.CharType, t.VarCharType), (BYTES, t.BinaryType, t.VarBinaryType)):
        if len(args) == 2 and all(isinstance(kind, (*family, t.NullType)) for kind in kinds):
            length = min(sum(getattr(kind, "length", 0) for kind in kinds), t.LONGEST)
            make: Any = fixed if all(isinstance(kind, fixed) for kind in kinds) else free
            return args, make(length, nullable(kinds))
    if len(args) == 2 and all(isinstance(kind, t.ArrayType) for kind in kinds):
        from penstock.table.functions.typing.result_types import alike

        return alike(args)
    raise Unfit("(text, text)")


def _concatenate(call: Call) -> Kernel:
    if isinstance(call.type, t.ArrayType):
        return rowwise(lambda one, other: [*one, *other])(call)
    empty = b"" if isinstance(call.type, BYTES) else ""

    def kernel(*values: Value) -> Value:
        whole = pa.binary() if isinstance(empty, bytes) else pa.string()
        return pc.binary_join_element_wise(*(pc.cast(value, whole) for value in values), pa.scalar(empty, whole))

    return kernel


def _with_separator(separator: str | None, *parts: str | None) -> str | None:
    return None if separator is None else separator.join(part for part in parts if part is not None)


# --- parts ---
def substring(text: Any, start: int, length: int | None = None) -> Any:
    """Return a part of a text. Positions count from 1, 0 means 1, and a start below 0 counts from the end."""
    if length is not None and length < 0:
        return None
    size = len(text)
    first = start - 1 if start > 0 else size + start if start < 0 else 0
    end = size if length is None else first + length
    return text[first:end] if 0 <= first < size else text[:0]


def _substring(call: Call) -> Kernel:
    """Return the kernel of SUBSTRING: in Arrow if start and length are constants from 0 on, otherwise row by row."""
    from penstock.table.logical.rex import Literal

    bounds: list[Any] = [arg.value if isinstance(arg, Literal) else None for arg in call.args[1:]]
    plain = isinstance(call.args[0].type, TEXTS) and all(isinstance(bound, int) and bound >= 0 for bound in bounds)
    if not plain:
        return rowwise(substring)(call)
    first = max(bounds[0] - 1, 0)
    stop = first + bounds[1] if len(bounds) > 1 else None
    return lambda text, *ignored: pc.utf8_slice_codeunits(text, first, stop)


def _pad(text: str, length: int, pad: str, left: bool) -> str | None:
    if length < 0 or not pad:
        return None
    if length <= len(text):
        return text[:length]
    missing = length - len(text)
    padding = (pad * (missing // len(pad) + 1))[:missing]
    return padding + text if left else text + padding


def initcap(text: str) -> str:
    """Begin every word with a capital letter. Words consist of ASCII letters and digits."""
    result, inside = [], False
    for char in text:
        part = char.isascii() and char.isalnum()
        result.append((char.lower() if inside else char.upper()) if part else char)
        inside = part
    return "".join(result)


def _trim(side: str, chars: str, text: str) -> str:
    strip: dict[str, Callable[[str], str]] = {"LEADING": text.lstrip, "TRAILING": text.rstrip, "BOTH": text.strip}
    return strip[side](chars)


def _trim_kernel(call: Call) -> Kernel:
    from penstock.table.logical.rex import Literal

    side, chars = call.args[0], call.args[1]
    compute = {"LEADING": pc.utf8_ltrim, "TRAILING": pc.utf8_rtrim, "BOTH": pc.utf8_trim}
    if isinstance(side, Literal) and isinstance(chars, Literal) and chars.value is not None:
        trim = compute[side.value]
        return lambda word, ignored, text: trim(text, characters=chars.value)
    return rowwise(_trim)(call)


def _stripper(left: bool, right: bool) -> Callable[..., str]:
    def strip(text: str, chars: str = " ") -> str:
        text = text.lstrip(chars) if left else text
        return text.rstrip(chars) if right else text

    return strip


def _of_side(kinds: Sequence[t.DataType]) -> t.DataType:
    return texts_of(2)(kinds)


def register_all() -> None:
    """Register the functions of this module."""
    same = signature(TEXT, result=same_as(0))
    register("||", _concatenation_type, _concatenate)
    register("CONCAT", signature(TEXT, result=STRING, more=TEXT), _concatenate)
    register("CONCAT_WS", signature(TEXT, result=STRING, more=TEXT), rowwise(_with_separator, nulls=True))
    register("UPPER", same, arrow(pc.utf8_upper))
    register("LOWER", same, arrow(pc.utf8_lower))
    register("INITCAP", same, rowwise(initcap))
    register("CHAR_LENGTH|CHARACTER_LENGTH", signature(TEXT, result=INT), arrow(pc.utf8_length))
    part = signature(TEXT, INTEGER, INTEGER, result=texts_of(0), optional=1, nulls=True)
    register("SUBSTRING|SUBSTR", part, _substring)
    register("LEFT", signature(TEXT, INTEGER, result=texts_of(0), nulls=True), rowwise(_left))
    register("RIGHT", signature(TEXT, INTEGER, result=texts_of(0), nulls=True), rowwise(_right))
    three = signature(TEXT, TEXT, TEXT, result=STRING)
    register("REPLACE", three, rowwise(lambda text, old, new: text.replace(old, new)))
    register("TRIM", signature(WORD, TEXT, TEXT, result=_of_side), _trim_kernel)
    side = signature(TEXT, TEXT, result=texts_of(0), optional=1)
    register("LTRIM", side, rowwise(_stripper(True, False)))
    register("RTRIM", side, rowwise(_stripper(False, True)))
    register("BTRIM", signature(TEXT, TEXT, result=STRING, optional=1), rowwise(_stripper(True, True)))
    padded = signature(TEXT, INTEGER, TEXT, result=STRING)
    register("LPAD", padded, rowwise(lambda text, size, pad: _pad(text, size, pad, True)))
    register("RPAD", padded, rowwise(lambda text, size, pad: _pad(text, size, pad, False)))
    register("REPEAT", signature(TEXT, INTEGER, result=STRING), rowwise(lambda text, times: text * max(times, 0)))
    register("REVERSE", signature(TEXT, result=STRING, nulls=True), rowwise(lambda text: text[::-1]))
    position = either(signature(TEXT, TEXT, result=INT), signature(TEXT, TEXT, INTEGER, result=INT))
    register("POSITION", position, rowwise(lambda part, text, start=1: text.find(part, start - 1) + 1))


def _left(text: str, length: int) -> str:
    return text[: max(length, 0)]


def _right(text: str, length: int) -> str:
    return text[max(len(text) - length, 0) :] if length > 0 else ""
