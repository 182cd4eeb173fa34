"""LIKE, SIMILAR TO and the functions of regular expressions."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable
from typing import Any

import pyarrow.compute as pc

from penstock.table.functions.library.java_regex import compile_regex
from penstock.table.functions.typing.registry import Kernel, register, rowwise
from penstock.table.functions.typing.result_types import INTEGER, TEXT, signature
from penstock.table.logical.rex import Call, Literal
from penstock.table.types import data_types as t

_BOOLEAN, _STRING, _INT = t.BooleanType(), t.DataTypes.STRING(), t.IntType()


# --- LIKE ---
def like_regex(pattern: str, escape: str | None = None) -> str:
    """Return a pattern of LIKE as a regular expression."""
    parts, index = [], 0
    while index < len(pattern):
        char = pattern[index]
        if char == escape:
            index += 1
            if index == len(pattern) or pattern[index] not in ("%", "_", escape):
                raise ValueError(f"the escape character {escape} must stand before %, _ or itself in {pattern!r}")
            parts.append(re.escape(pattern[index]))
        else:
            parts.append({"%": ".*", "_": "."}.get(char) or re.escape(char))
        index += 1
    return "".join(parts)


@functools.lru_cache(maxsize=256)
def _like_pattern(pattern: str, escape: str | None) -> re.Pattern[str]:
    return re.compile(like_regex(pattern, escape), re.DOTALL)


def _like(text: str, pattern: str, escape: str | None = None) -> bool:
    return _like_pattern(pattern, escape).fullmatch(text) is not None


def _like_kernel(call: Call) -> Kernel:
    """Return the kernel of LIKE: in Arrow for a constant pattern without ESCAPE, otherwise row by row."""
    pattern, *escape = call.args[1:]
    if escape or not isinstance(pattern, Literal) or pattern.value is None:
        return rowwise(_like)(call)
    text = str(pattern.value)
    inner = text.strip("%")
    if "%" in inner or "_" in inner:
        regex = f"^(?s:{_re2(text)})$"
        return lambda value, *others: pc.match_substring_regex(value, regex)
    starts, ends = not text.startswith("%"), not text.endswith("%")
    compute = _FIXED[starts, ends]
    return lambda value, *others: compute(value, inner)


def _re2(pattern: str) -> str:
    return "".join({"%": ".*", "_": "."}.get(char) or re.escape(char) for char in pattern)


_FIXED: dict[tuple[bool, bool], Callable[[Any, str], Any]] = {
    (True, True): pc.equal,
    (True, False): pc.starts_with,
    (False, True): pc.ends_with,
    (False, False): pc.match_substring,
}


# --- SIMILAR TO ---
_CLASSES = {
    "[:ALPHA:]": "a-zA-Z",
    "[:UPPER:]": "A-Z",
    "[:LOWER:]": "a-z",
    "[:DIGIT:]": "0-9",
    "[:ALNUM:]": "a-zA-Z0-9",
    "[:SPACE:]": " ",
    "[:WHITESPACE:]": r"\s",
}


@functools.lru_cache(maxsize=256)
def _similar_pattern(pattern: str, escape: str | None) -> re.Pattern[str]:
    parts, index, inside = [], 0, False
    while index < len(pattern):
        named = next((name for name in _CLASSES if pattern[index:].upper().startswith(name)), None)
        if named:
            parts.append(_CLASSES[named])
            index += len(named)
            continue
        char = pattern[index]
        if char == escape and index + 1 < len(pattern):
            index += 1
            parts.append(re.escape(pattern[index]))
        elif inside:
            inside = char != "]"
            parts.append(char)
        else:
            inside = char == "["
            parts.append({"%": "(?:.*)", "_": "."}.get(char, char))
        index += 1
    return re.compile("".join(parts), re.DOTALL)


def _similar(text: str, pattern: str, escape: str | None = None) -> bool:
    return _similar_pattern(pattern, escape).fullmatch(text) is not None


# --- REGEXP ---
def _or_null(compute: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that gives NULL for an invalid pattern."""

    def compute_or_null(text: str, pattern: str, *others: Any) -> Any:
        try:
            regex = compile_regex(pattern)
        except re.error:
            return None
        return compute(regex, text, *others)

    return compute_or_null


def _extract(regex: re.Pattern[str], text: str, group: int = 0) -> str | None:
    found = regex.search(text)
    return found[group] if found and 0 <= group <= regex.groups else None


def _extract_all(regex: re.Pattern[str], text: str, group: int = 1) -> list[str | None] | None:
    if not 0 <= group <= regex.groups:
        return None
    return [found[group] for found in regex.finditer(text)]


def _instr(regex: re.Pattern[str], text: str) -> int:
    found = regex.search(text)
    return found.start() + 1 if found else 0


def _substr(regex: re.Pattern[str], text: str) -> str | None:
    found = regex.search(text)
    return found[0] if found else None


def _replace(text: str, pattern: str, new: str) -> str | None:
    try:
        return compile_regex(pattern).sub(lambda found: new, text)
    except re.error:
        return None


def _matches(text: str, pattern: str) -> bool:
    try:
        return bool(pattern) and compile_regex(pattern).search(text) is not None
    except re.error:
        return False


def register_all() -> None:
    """Register the functions of this module."""
    test = signature(TEXT, TEXT, TEXT, result=_BOOLEAN, optional=1)
    register("LIKE", test, _like_kernel, raises=True)
    register("SIMILAR TO", test, rowwise(_similar), raises=True)
    register("REGEXP", signature(TEXT, TEXT, result=_BOOLEAN), rowwise(_matches))
    register("REGEXP_COUNT", signature(TEXT, TEXT, result=_INT, nulls=True), rowwise(_or_null(_count)))
    register("REGEXP_INSTR", signature(TEXT, TEXT, result=_INT, nulls=True), rowwise(_or_null(_instr)))
    register("REGEXP_SUBSTR", signature(TEXT, TEXT, result=_STRING, nulls=True), rowwise(_or_null(_substr)))
    group = signature(TEXT, TEXT, INTEGER, result=_STRING, optional=1, nulls=True)
    register("REGEXP_EXTRACT", group, rowwise(_or_null(_extract)))
    groups = signature(TEXT, TEXT, INTEGER, result=t.ArrayType(_STRING), optional=1, nulls=True)
    register("REGEXP_EXTRACT_ALL", groups, rowwise(_or_null(_extract_all)))
    register("REGEXP_REPLACE", signature(TEXT, TEXT, TEXT, result=_STRING), rowwise(_replace))


def _count(regex: re.Pattern[str], text: str) -> int:
    return sum(1 for _ in regex.finditer(text))
