"""The forms in which key_by takes a key: a function, a KeySelector, a field, a path, or several of them."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, TypeAlias

from penstock.api.functions.element_functions import KeySelector
from penstock.base.arguments import invalid_argument, is_function
from penstock.common.types import Row
from penstock.errors import InvalidArgument, RecordError

FieldsOfKey: TypeAlias = int | str | Sequence[Any]
"""The fields of a key: a field's position, name or path, or several of these."""

Key: TypeAlias = KeySelector | Callable[[Any], Any] | int | str | Sequence[Any]
"""The key of a record, as a program may give it: a function, a field's position, name or path, or several of these."""


@dataclasses.dataclass(frozen=True)
class FieldKey:
    """A field by position or name, or a path such as 'address.city' through tuples, rows, dicts and objects.

    The fields of a tuple are '_1', '_2', … as in Scala, or 'f0', 'f1', … as in Java. '*' is the whole record, and '_'
    or '*' at the end of a path is a whole tuple.
    """

    path: tuple[int | str, ...]

    def __call__(self, value: Any) -> Any:
        """Return the field of a record."""
        for step in self.path:
            value = _step(value, step)
        return value


@dataclasses.dataclass(frozen=True)
class SeveralKeys:
    """A key made of several parts, as a tuple."""

    parts: tuple[Callable[[Any], Any], ...]

    def __call__(self, value: Any) -> Any:
        """Return the parts of the key as a tuple."""
        return tuple(part(value) for part in self.parts)


@dataclasses.dataclass(frozen=True)
class ColumnKeys:
    """Fields by position, as keys of a table.

    One field is itself the key, several are a tuple, and no fields are ().
    """

    positions: tuple[int, ...]

    def __call__(self, value: Any) -> Any:
        """Return the fields of a row as a key."""
        if len(self.positions) == 1:
            return frozen(value[self.positions[0]])
        return tuple(frozen(value[position]) for position in self.positions)


def frozen(value: Any) -> Any:
    """Return a value as part of a key. Keys must be hashable, so lists, dicts and rows become tuples."""
    if isinstance(value, (list, tuple, Row)):
        return tuple(map(frozen, value))
    if isinstance(value, dict):
        return tuple((frozen(key), frozen(part)) for key, part in value.items())
    return value


def key_selector(*keys: Any) -> Callable[[Any], Any]:
    """Return the arguments of `key_by` as one function from a record to its key."""
    if len(keys) == 1 and isinstance(keys[0], (list, tuple)):
        keys = tuple(keys[0])
    if not keys:
        raise TypeError("key_by needs a key selector, a field or several fields")
    parts = tuple(_single(key) for key in keys)
    return parts[0] if len(parts) == 1 else SeveralKeys(parts)


def _single(key: Any) -> Callable[[Any], Any]:
    if isinstance(key, KeySelector):
        return key.get_key
    if isinstance(key, bool):
        raise _not_a_key(key)
    if isinstance(key, int):
        return FieldKey((key,))
    if isinstance(key, str):
        return FieldKey(tuple(int(step) if step.isdigit() else step for step in key.split(".")))
    if is_function(key):
        return key  # type: ignore[no-any-return]
    raise _not_a_key(key)


def _not_a_key(key: Any) -> InvalidArgument:
    allowed = "a function, a KeySelector, a field position, name or path, or several of these"
    return invalid_argument("key_by", "key_selector", key, allowed, (KeySelector,))


_TUPLE_FIELD = re.compile(r"_([1-9][0-9]*)|f(0|[1-9][0-9]*)|([0-9]+)")


@cache
def tuple_position(name: str) -> int | None:
    """Return the position of a tuple's field. '_1' (Scala), 'f0' (Java) and '0' are names of the first field."""
    matched = _TUPLE_FIELD.fullmatch(name)
    if matched is None:
        return None
    scala, java, plain = matched.groups()
    return int(scala) - 1 if scala else int(java or plain)


def _step(value: Any, step: int | str) -> Any:
    try:
        is_plain = type(value) in (tuple, list)
        if step == "*" or (step == "_" and is_plain):
            return frozen(value)
        if is_plain and isinstance(step, str):
            return value[tuple_position(step)]
        if isinstance(step, int):
            if dataclasses.is_dataclass(value):
                return getattr(value, dataclasses.fields(value)[step].name)
            return value[step]
        if isinstance(value, (Row, dict)):
            return value[step]
        return getattr(value, step)
    except (IndexError, KeyError, AttributeError, TypeError, ValueError):
        raise RecordError(f"{type(value).__name__} {value!r} has no field {step!r} to key by") from None
