"""Functions of JSON: reading parts of documents, and making documents."""

from __future__ import annotations

import base64
import functools
import json
import math
import re
from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import Any

import pyarrow as pa

from penstock.common.java_texts import double_text
from penstock.table.functions.library.cast_kernels import conversion
from penstock.table.functions.library.json_path import path
from penstock.table.functions.library.text_forms import text_form
from penstock.table.functions.moment import Moment
from penstock.table.functions.typing.coercion import TEXTS
from penstock.table.functions.typing.registry import (
    BadValue,
    Kernel,
    Unfit,
    Value,
    column_of,
    python_values,
    register,
    rowwise,
)
from penstock.table.functions.typing.result_types import ANY, TEXT, WORD, coerce, fits, signature
from penstock.table.logical.rex import Call, Literal, Rex
from penstock.table.types import data_types as t

_STRING = t.DataTypes.STRING()
Inferred = tuple[tuple[Rex, ...], t.DataType]


# --- documents ---
@functools.lru_cache(maxsize=64)
def _document(text: str) -> Any:
    """Return a parsed document. Raise ValueError if it is not valid. Ignore text after it."""
    text = text.lstrip()
    value, end = _DECODER.raw_decode(text)
    if text[end : end + 1].isalnum() and text[end - 1].isalnum():
        raise ValueError(f"there is text after the JSON value {text[:end]}")
    return value


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is not valid JSON")


_DECODER = json.JSONDecoder(parse_constant=_no_constant, parse_float=Decimal)


def _is_scalar(value: Any) -> bool:
    return not isinstance(value, dict | list)


def _words(args: Sequence[Rex]) -> list[Rex]:
    return list(args[2:])


def _is_word(rex: Rex) -> bool:
    return isinstance(rex, Literal) and isinstance(rex.type, t.NullType) and isinstance(rex.value, str)


class Behaviour:
    """The clauses of a JSON function: the type of RETURNING, and the actions ON EMPTY and ON ERROR."""

    def __init__(self, args: Sequence[Rex], usual: str = "NULL") -> None:
        self.returning: t.DataType | None = None
        self.wrapper = "WITHOUT WRAPPER"
        self.on: dict[str, str] = {"ON EMPTY": usual, "ON ERROR": usual}
        self.defaults: dict[str, int] = {}
        """The index of the argument that is the default on an occasion."""
        pending, default = usual, None
        for index, arg in enumerate(args):
            word = arg.value if _is_word(arg) and isinstance(arg, Literal) else None
            if word == "RETURNING":
                self.returning = args[index + 1].type
            elif word in self.on:
                self.on[word] = pending
                if default is not None:
                    self.defaults[word] = default
                default = None
            elif word is not None and word.endswith("WRAPPER"):
                self.wrapper = word
            elif word is not None:
                pending = word
            elif index >= 2 and _value_of(args[index - 1]) == "DEFAULT":
                default = index


def _value_of(rex: Rex) -> Any:
    return rex.value if isinstance(rex, Literal) else None


# --- JSON_VALUE, JSON_QUERY, JSON_EXISTS ---
def _value_types(args: tuple[Rex, ...]) -> Inferred:
    _need_document(args)
    behaviour = Behaviour(args)
    kind = (behaviour.returning or _STRING).nullable()
    fitted = list(args)
    for index in behaviour.defaults.values():
        fitted[index] = coerce(args[index], kind)
    return tuple(fitted), kind


def _need_document(args: tuple[Rex, ...]) -> None:
    if len(args) < 2 or not fits(args[0], TEXT) or not fits(args[1], TEXT):
        raise Unfit("(a JSON text, a path)")


def _query_types(args: tuple[Rex, ...]) -> Inferred:
    _need_document(args)
    return args, (Behaviour(args).returning or _STRING).nullable()


def _exists_types(args: tuple[Rex, ...]) -> Inferred:
    _need_document(args)
    return args, t.BooleanType(True)


def _reader(read: Callable[[Call], Callable[..., Any]]) -> Callable[[Call], Kernel]:
    """Return a kernel over documents and paths. Further arguments are passed unchanged."""

    def make(call: Call) -> Kernel:
        one = read(call)
        kinds = [arg.type for arg in call.args]

        def kernel(rows: int, moment: Moment, *args: Value) -> Value:
            columns = [python_values(arg, kind, rows) for arg, kind in zip(args, kinds, strict=True)]
            results = [None if None in values[:2] else one(*values) for values in zip(*columns, strict=True)]
            return column_of(results, call)

        return kernel

    return make


def _find(text: str, where: str) -> tuple[bool, Any]:
    """Return whether the path is strict, and what it finds.

    A lax path that finds nothing gives None. A strict one raises PathError.
    """
    steps = path(where)
    try:
        value = steps.read(_document(text))
    except ValueError:
        if steps.strict:
            raise
        return False, None
    return steps.strict, value


def _json_value(call: Call) -> Callable[..., Any]:
    behaviour = Behaviour(call.args)
    returned = _conversion(call.type)

    def otherwise(occasion: str, values: Sequence[Any], problem: str) -> Any:
        word = behaviour.on[occasion]
        if word == "ERROR":
            raise BadValue(f"JSON_VALUE({values[0]!r}, {values[1]!r}) failed: {problem}")
        return values[behaviour.defaults[occasion]] if word == "DEFAULT" else None

    def read(*values: Any) -> Any:
        try:
            strict, value = _find(values[0], values[1])
            if not strict and (value is None or not _is_scalar(value)):
                return otherwise("ON EMPTY", values, "nothing is there")
            if value is None or not _is_scalar(value):
                return otherwise("ON ERROR", values, "it is not a single value")
            return returned(value)
        except ValueError as error:
            return otherwise("ON ERROR", values, str(error))

    return read


def _conversion(kind: t.DataType) -> Callable[[Any], Any]:
    if isinstance(kind, TEXTS):
        return _plain_text
    convert = conversion(_STRING, kind)
    match kind:
        case t.BooleanType():
            return lambda value: value if isinstance(value, bool) else convert(_plain_text(value))
        case t.IntegralType():
            return lambda value: value if type(value) is int else convert(_plain_text(value))
        case t.FloatType() | t.DoubleType():
            return lambda value: float(value) if type(value) in (int, Decimal) else convert(_plain_text(value))
    return lambda value: convert(_plain_text(value))


def _plain_text(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return double_text(value) if isinstance(value, float) else str(value)


def _json_query(call: Call) -> Callable[..., Any]:
    behaviour = Behaviour(call.args)
    fixed: dict[str, Any] = {"NULL": None, "EMPTY ARRAY": [], "EMPTY OBJECT": {}, "EMPTY": []}
    give = _array_of_texts if isinstance(call.type, t.ArrayType) else dump_json

    def otherwise(occasion: str, values: Sequence[Any], problem: str) -> Any:
        word = behaviour.on[occasion]
        if word == "ERROR":
            raise BadValue(f"JSON_QUERY({values[0]!r}, {values[1]!r}) failed: {problem}")
        value = fixed[word]
        return None if value is None else give(value)

    def read(*values: Any) -> Any:
        try:
            strict, value = _find(values[0], values[1])
        except ValueError as error:
            return otherwise("ON ERROR", values, str(error))
        if value is not None:
            value = _wrap(value, behaviour.wrapper)
        if not strict and (value is None or _is_scalar(value)):
            return otherwise("ON EMPTY", values, "nothing is there")
        if value is None or _is_scalar(value):
            return otherwise("ON ERROR", values, "it is a single value")
        return give(value)

    return read


def _wrap(value: Any, wrapper: str) -> Any:
    if wrapper == "WITH UNCONDITIONAL WRAPPER" or (wrapper == "WITH CONDITIONAL WRAPPER" and _is_scalar(value)):
        return [value]
    if wrapper == "WITH CONDITIONAL WRAPPER" and isinstance(value, dict):
        return [value]
    return value


def _array_of_texts(value: Any) -> list[str | None] | None:
    if not isinstance(value, list):
        return None
    return [None if one is None else _plain_text(one) if _is_scalar(one) else dump_json(one) for one in value]


def _json_exists(call: Call) -> Callable[..., Any]:
    on_error = Behaviour(call.args, "FALSE").on["ON ERROR"]

    def read(*values: Any) -> bool | None:
        try:
            _, value = _find(values[0], values[1])
        except ValueError as error:
            if on_error == "ERROR":
                raise BadValue(f"JSON_EXISTS({values[0]!r}, {values[1]!r}) failed: {error}") from None
            return {"TRUE": True, "FALSE": False}.get(on_error)
        return value is not None

    return read


_KINDS: dict[str, Callable[[Any], bool]] = {
    "VALUE": lambda value: True,
    "SCALAR": _is_scalar,
    "ARRAY": lambda value: isinstance(value, list),
    "OBJECT": lambda value: isinstance(value, dict),
}


def _is_json(text: str | None, kind: str = "VALUE") -> bool:
    if text is None:
        return False
    try:
        return _KINDS[kind](_document(text))
    except ValueError:
        return False


# --- making JSON ---
def dump_json(value: Any) -> str:
    """Return a value as JSON, without blanks, and with members in the order of their names."""
    if isinstance(value, dict):
        return "{" + ",".join(f"{_quote(key)}:{dump_json(value[key])}" for key in sorted(value)) + "}"
    if isinstance(value, list):
        return "[" + ",".join(map(dump_json, value)) + "]"
    if isinstance(value, str):
        return _quote(value)
    return "null" if value is None else _plain_text(value)


_ESCAPES = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t", "\b": "\\b", "\f": "\\f"}


_SPECIAL = re.compile(r'["\\\x00-\x1f]')


def _quote(text: str) -> str:
    return '"' + _SPECIAL.sub(lambda found: _ESCAPES.get(found[0]) or f"\\u{ord(found[0]):04X}", text) + '"'


def writer(kind: t.DataType) -> Callable[[Any], str]:
    """Return a function that writes values of a type as JSON."""
    match kind:
        case t.CharType() | t.VarCharType():
            return _quote
        case t.BooleanType():
            return lambda value: "true" if value else "false"
        case t.IntegralType():
            return str
        case t.FloatType() | t.DoubleType():
            return _number
        case t.DecimalType():
            return lambda value: format(value, "f")
        case t.BinaryType() | t.VarBinaryType():
            return lambda value: _quote(base64.b64encode(value).decode())
        case t.ArrayType():
            element = _or_null(kind.element_type)
            return lambda value: "[" + ",".join(map(element, value)) + "]"
        case t.MapType():
            key, part = text_form(kind.key_type), _or_null(kind.value_type)
            return lambda value: _object((key(one), part(other)) for one, other in value.items())
        case t.RowType():
            names, parts = kind.field_names(), [_or_null(field.data_type) for field in kind.fields]
            return lambda value: _object((name, part(one)) for name, part, one in zip(names, parts, value, strict=True))
        case t.TimestampType():
            form = text_form(kind)
            return lambda value: _quote(form(value).replace(" ", "T"))
    return _as_text(kind)


def _number(value: float) -> str:
    return str(Decimal(double_text(value))) if math.isfinite(value) else _quote(double_text(value))


def _as_text(kind: t.DataType) -> Callable[[Any], str]:
    form = text_form(kind)
    return lambda value: _quote(form(value))


def _or_null(kind: t.DataType) -> Callable[[Any], str]:
    write = writer(kind)
    return lambda value: "null" if value is None else write(value)


def json_member(key: str, value: str) -> str:
    """Return a member of an object. Its value is JSON already."""
    return f"{_quote(key)}:{value}"


def _object(members: Any) -> str:
    return "{" + ",".join(json_member(key, value) for key, value in members) + "}"


def _mark(args: tuple[Rex, ...]) -> tuple[Rex, ...]:
    """Mark arguments that are JSON already. The mark must survive the folding of constants."""
    return tuple(Call(arg.type, "JSON AS IT IS", (arg,)) if _makes_json(arg) else arg for arg in args)


def _makes_json(rex: Rex) -> bool:
    return isinstance(rex, Call) and rex.function in {"JSON", "JSON_OBJECT", "JSON_ARRAY"}


def _raw(rex: Rex) -> bool:
    """Return True if a value is JSON already, and is inserted unchanged."""
    return isinstance(rex, Call) and rex.function == "JSON AS IT IS"


def _writers(args: Sequence[Rex]) -> list[Callable[[Any], str]]:
    return [(lambda value: "null" if value is None else value) if _raw(arg) else _or_null(arg.type) for arg in args]


def _object_types(args: tuple[Rex, ...]) -> Inferred:
    values = [arg for arg in args if not _is_word(arg)]
    if len(values) % 2 or not all(fits(key, TEXT) for key in values[::2]):
        raise Unfit("(a text, a value, ...)")
    return _mark(args), t.VarCharType(t.LONGEST, False)


def _array_types(args: tuple[Rex, ...]) -> Inferred:
    return _mark(args), t.VarCharType(t.LONGEST, False)


def _constructor(build: Callable[[Call, bool], Callable[[Sequence[Any]], str]]) -> Callable[[Call], Kernel]:
    def make(call: Call) -> Kernel:
        absent = any(_value_of(arg) == "ABSENT ON NULL" for arg in call.args if _is_word(arg))
        values = [index for index, arg in enumerate(call.args) if not _is_word(arg)]
        kinds = [call.args[index].type for index in values]
        one = build(call, absent)

        def kernel(rows: int, moment: Moment, *args: Value) -> Value:
            columns = [python_values(args[index], kind, rows) for index, kind in zip(values, kinds, strict=True)]
            made = zip(*columns, strict=True) if columns else [()] * rows
            return pa.array([one(row) for row in made], pa.string())

        return kernel

    return make


def _build_object(call: Call, absent: bool) -> Callable[[Sequence[Any]], str]:
    write = _writers([arg for arg in call.args if not _is_word(arg)][1::2])

    def build(values: Sequence[Any]) -> str:
        pairs = zip(values[::2], write, values[1::2], strict=True)
        if any(key is None for key in values[::2]):
            raise BadValue("JSON_OBJECT: a key is NULL")
        members = {key: form(value) for key, form, value in pairs if not (absent and value is None)}
        return _object(sorted(members.items()))

    return build


def _build_array(call: Call, absent: bool) -> Callable[[Sequence[Any]], str]:
    write = _writers([arg for arg in call.args if not _is_word(arg)])

    def build(values: Sequence[Any]) -> str:
        pairs = zip(write, values, strict=True)
        return "[" + ",".join(form(value) for form, value in pairs if not (absent and value is None)) + "]"

    return build


def _json_string(call: Call) -> Kernel:
    return rowwise(writer(call.args[0].type))(call)


def _json(text: str) -> str:
    return dump_json(_document(text))


def register_all() -> None:
    """Register the functions of this module."""
    register("JSON_VALUE", _value_types, _reader(_json_value), raises=True, moment=True)
    register("JSON_QUERY", _query_types, _reader(_json_query), raises=True, moment=True)
    register("JSON_EXISTS", _exists_types, _reader(_json_exists), raises=True, moment=True)
    test = signature(TEXT, WORD, result=t.BooleanType(), optional=1, nulls=False)
    register("IS JSON", test, rowwise(_is_json, nulls=True))
    register("JSON_OBJECT", _object_types, _constructor(_build_object), moment=True)
    register("JSON AS IT IS", lambda args: (args, args[0].type), lambda call: lambda value: value, deterministic=False)
    register("JSON_ARRAY", _array_types, _constructor(_build_array), moment=True)
    register("JSON_STRING", signature(ANY, result=_STRING), _json_string)
    register("JSON", signature(TEXT, result=_STRING), rowwise(_json), raises=True)
