"""Paths into JSON: $.a.b[0], [*], .., slices and simple filters, with the modes strict and lax."""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

Select = Callable[[Any], Iterator[Any]]


class PathError(ValueError):
    """The error for an invalid path, or for a path that finds nothing."""


@dataclass(frozen=True)
class Step:
    """A step of a path. `select` yields the selected values, and `definite` is True if there is at most one."""

    select: Select
    definite: bool


@dataclass(frozen=True)
class Path:
    """A path with its mode."""

    strict: bool
    steps: tuple[Step, ...]

    def read(self, document: Any) -> Any:
        """Return the value that the path finds, or a list if it could find several.

        Raise PathError if it finds nothing.
        """
        found = [document]
        definite = True
        for step in self.steps:
            definite = definite and step.definite
            selected: list[Any] = []
            for value in found:
                try:
                    selected.extend(step.select(value))
                except PathError:
                    if definite:
                        raise
            found = selected
        if not definite:
            return found
        if not found:
            raise PathError("there is no value at the path")
        return found[0]


_NAME = re.compile(r"\.\s*(\*|[^.\[\s(]+)(\(\))?")
_QUOTED = re.compile(
    r"\.?\[\s*((?:'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\")(?:\s*,\s*(?:'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\"))*)\s*\]"
)
_INDEXES = re.compile(r"\.?\[\s*(-?\d+(?:\s*,\s*-?\d+)*)\s*\]")
_SLICE = re.compile(r"\.?\[\s*(-?\d*)\s*:\s*(-?\d*)\s*\]")
_ALL = re.compile(r"\.?\[\s*\*\s*\]")
_DEEP = re.compile(r"\.\.(\*|[^.\[\s]+)?")
_FILTER = re.compile(r"\.?\[\?\s*\((.*?)\)\s*\]")
_CONDITION = re.compile(r"@([.\[].*?)?\s*(?:(==|!=|<=|>=|<|>)\s*(.+))?")
_TEXT = re.compile(r"'((?:[^'\\]|\\.)*)'|\"((?:[^\"\\]|\\.)*)\"")


@functools.lru_cache(maxsize=512)
def path(text: str) -> Path:
    """Parse a path as SQL writes it. Without a mode it is strict."""
    body = text
    mode = re.match(r"(strict|lax)\s+", body, re.IGNORECASE)
    strict = mode is None or mode[1].lower() == "strict"
    body = body[mode.end() :] if mode else body
    if not body.startswith("$"):
        raise PathError(f"{text!r} is not a JSON path: a path begins with $")
    return Path(strict, tuple(_steps(body, 1)))


def _steps(body: str, index: int) -> Iterator[Step]:
    while index < len(body):
        for pattern, make in _PARTS:
            found = pattern.match(body, index)
            if found and found.end() > index:
                yield make(found)
                index = found.end()
                break
        else:
            raise PathError(f"{body!r} is not a JSON path: {body[index:]!r} is not understood")


# --- steps ---
def _member(name: str) -> Select:
    def select(value: Any) -> Iterator[Any]:
        if not isinstance(value, dict) or name not in value:
            raise PathError(f"there is no member {name}")
        yield value[name]

    return select


def _element(index: int) -> Select:
    def select(value: Any) -> Iterator[Any]:
        if not isinstance(value, list) or not -len(value) <= index < len(value):
            raise PathError(f"there is no element {index}")
        yield value[index]

    return select


def _children(value: Any) -> Iterator[Any]:
    if isinstance(value, dict):
        yield from value.values()
    elif isinstance(value, list):
        yield from value


def _elements(value: Any) -> Iterator[Any]:
    yield from _children(value)


def _descendants(value: Any) -> Iterator[Any]:
    yield value
    for child in _children(value):
        yield from _descendants(child)


def _member_step(found: re.Match[str]) -> Step:
    name, function = found.groups()
    if function:
        return Step(_function(name), True)
    return Step(_elements, False) if name == "*" else Step(_member(name), True)


def _function(name: str) -> Select:
    compute = _FUNCTIONS.get(name)
    if compute is None:
        raise PathError(f"there is no function {name}() in JSON paths")
    return lambda value: iter([compute(value)])


def _length(value: Any) -> int | None:
    return len(value) if isinstance(value, list | dict | str) else None


def _numeric(compute: Callable[[list[Any]], Any]) -> Callable[[Any], Any]:
    return lambda value: compute([one for one in value if isinstance(one, int | float)])


_FUNCTIONS: dict[str, Callable[[Any], Any]] = {
    "length": _length,
    "size": _length,
    "min": _numeric(min),
    "max": _numeric(max),
    "sum": _numeric(lambda values: float(sum(values))),
    "avg": _numeric(lambda values: sum(values) / len(values)),
    "keys": lambda value: list(value) if isinstance(value, dict) else None,
}


def _names_step(found: re.Match[str]) -> Step:
    names = [re.sub(r"\\(.)", r"\1", one[1] if one[1] is not None else one[2]) for one in _TEXT.finditer(found[1])]
    if len(names) == 1:
        return Step(_member(names[0]), True)

    def select(value: Any) -> Iterator[Any]:
        if isinstance(value, dict):
            yield {name: value[name] for name in names if name in value}

    return Step(select, True)


def _indexes(found: re.Match[str]) -> Step:
    indexes = [int(one) for one in found[1].split(",")]
    if len(indexes) == 1:
        return Step(_element(indexes[0]), True)

    def select(value: Any) -> Iterator[Any]:
        for index in indexes:
            if isinstance(value, list) and -len(value) <= index < len(value):
                yield value[index]

    return Step(select, False)


def _slice(found: re.Match[str]) -> Step:
    start, stop = (int(one) if one else None for one in found.groups())

    def select(value: Any) -> Iterator[Any]:
        if isinstance(value, list):
            yield from value[start:stop]

    return Step(select, False)


def _deep(found: re.Match[str]) -> Step:
    name = found[1]

    def select(value: Any) -> Iterator[Any]:
        for one in _descendants(value):
            if name == "*":
                yield from _children(one)
            elif name is None:
                yield one
            elif isinstance(one, dict) and name in one:
                yield one[name]

    return Step(select, False)


def _filter(found: re.Match[str]) -> Step:
    condition = _CONDITION.fullmatch(found[1].strip())
    if condition is None:
        raise PathError(f"the filter {found[1]!r} is not understood")
    inner = tuple(_steps("$" + (condition[1] or ""), 1))
    sign, wanted = condition[2], _constant(condition[3]) if condition[3] else None

    def holds(value: Any) -> bool:
        try:
            one = Path(True, inner).read(value)
        except PathError:
            return False
        return sign is None or _COMPARISONS[sign](one, wanted)

    def select(value: Any) -> Iterator[Any]:
        for one in value if isinstance(value, list) else [value]:
            if holds(one):
                yield one

    return Step(select, False)


def _constant(text: str) -> Any:
    quoted = _TEXT.fullmatch(text.strip())
    if quoted:
        return quoted[1] if quoted[1] is not None else quoted[2]
    try:
        return json.loads(text)
    except ValueError:
        raise PathError(f"{text!r} is not a JSON value") from None


def _order_test(compare: Callable[[Any, Any], bool]) -> Callable[[Any, Any], bool]:
    def test(one: Any, other: Any) -> bool:
        try:
            return compare(one, other)
        except TypeError:
            return False

    return test


_COMPARISONS: dict[str, Callable[[Any, Any], bool]] = {
    "==": lambda one, other: bool(one == other),
    "!=": lambda one, other: bool(one != other),
    "<": _order_test(lambda one, other: one < other),
    "<=": _order_test(lambda one, other: one <= other),
    ">": _order_test(lambda one, other: one > other),
    ">=": _order_test(lambda one, other: one >= other),
}

_PARTS: tuple[tuple[re.Pattern[str], Callable[[re.Match[str]], Step]], ...] = (
    (_DEEP, _deep),
    (_QUOTED, _names_step),
    (_INDEXES, _indexes),
    (_SLICE, _slice),
    (_ALL, lambda found: Step(_elements, False)),
    (_FILTER, _filter),
    (_NAME, _member_step),
)
