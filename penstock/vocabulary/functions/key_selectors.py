"""The forms in which key_by takes a key: a function, a KeySelector, a field, a path, or several of them."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

from penstock.common.types import Row
from penstock.errors import RecordError
from penstock.vocabulary.functions.element_functions import KeySelector


@dataclasses.dataclass(frozen=True)
class FieldKey:
    """A field by position or name, or a path such as 'address.city' through tuples, rows, dicts and objects."""

    path: tuple[int | str, ...]

    def __call__(self, value: Any) -> Any:
        for step in self.path:
            value = _step(value, step)
        return value


@dataclasses.dataclass(frozen=True)
class SeveralKeys:
    """A key made of several: a tuple."""

    parts: tuple[Callable[[Any], Any], ...]

    def __call__(self, value: Any) -> Any:
        return tuple(part(value) for part in self.parts)


@dataclasses.dataclass(frozen=True)
class ColumnKeys:
    """Fields by position, as keys of a table: one field is a key as it is, several are a tuple, and none is ()."""

    positions: tuple[int, ...]

    def __call__(self, value: Any) -> Any:
        if len(self.positions) == 1:
            return frozen(value[self.positions[0]])
        return tuple(frozen(value[position]) for position in self.positions)


def frozen(value: Any) -> Any:
    """A value as part of a key: lists, dicts and rows as tuples, since keys must be hashable."""
    if isinstance(value, (list, tuple, Row)):
        return tuple(map(frozen, value))
    if isinstance(value, dict):
        return tuple((frozen(key), frozen(part)) for key, part in value.items())
    return value


def key_selector(*keys: Any) -> Callable[[Any], Any]:
    """What `key_by` was given, as one function from a record to its key."""
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
        raise TypeError(f"key_by does not take {key!r}")
    if isinstance(key, int):
        return FieldKey((key,))
    if isinstance(key, str):
        return FieldKey(tuple(int(step) if step.isdigit() else step for step in key.split(".")))
    if callable(key):
        return key  # type: ignore[no-any-return]
    raise TypeError(
        f"key_by takes a function, a KeySelector, a field position, name or path, or several of these; not {key!r}"
    )


def _step(value: Any, step: int | str) -> Any:
    try:
        if isinstance(step, int):
            if dataclasses.is_dataclass(value):
                return getattr(value, dataclasses.fields(value)[step].name)
            return value[step]
        if isinstance(value, (Row, dict)):
            return value[step]
        return getattr(value, step)
    except (IndexError, KeyError, AttributeError, TypeError, ValueError):
        raise RecordError(f"{type(value).__name__} {value!r} has no field {step!r} to key by") from None
