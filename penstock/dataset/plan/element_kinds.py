"""The kinds of elements of a data set, as far as they are known before the program runs. They allow early errors.

A kind is the class of a plain value, a TupleKind, a RowKind, or None if nothing is known.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from penstock.common.types import Row
from penstock.errors import TypeMismatch


@dataclass(frozen=True)
class TupleKind:
    """A tuple, with the kind of each field."""

    fields: tuple[Kind, ...]


@dataclass(frozen=True)
class RowKind:
    """A row, with the names and kinds of its fields. A row without names has an empty tuple of names."""

    names: tuple[str, ...]
    fields: tuple[Kind, ...]


Kind = type | TupleKind | RowKind | None
"""Whatever is known of an element."""


def kind_of(value: Any) -> Kind:
    """Return the kind of a value, or None if the value is None and its kind is unknown."""
    if value is None:
        return None
    if isinstance(value, Row):
        return RowKind(tuple(value.get_field_names() or ()), tuple(map(kind_of, value)))
    if isinstance(value, tuple):
        return TupleKind(tuple(map(kind_of, value)))
    return type(value)


def common_kind(values: Iterable[Any]) -> Kind:
    """Return the kind that all values share. Fields in which they differ are unknown."""
    found: Kind = None
    is_first = True
    for value in values:
        found = kind_of(value) if is_first else _merge(found, kind_of(value))
        is_first = False
        if found is None:
            return None
    return found


def _merge(one: Kind, other: Kind) -> Kind:
    if one == other:
        return one
    if isinstance(one, TupleKind) and isinstance(other, TupleKind) and len(one.fields) == len(other.fields):
        return TupleKind(tuple(map(_merge, one.fields, other.fields)))
    if isinstance(one, RowKind) and isinstance(other, RowKind) and one.names == other.names:
        return RowKind(one.names, tuple(map(_merge, one.fields, other.fields)))
    return None


def differ(one: Kind, other: Kind) -> bool:
    """Return True if elements of these kinds are certainly not of one type."""
    if one is None or other is None or one == other:
        return False
    if isinstance(one, type) or isinstance(other, type) or type(one) is not type(other):
        return True
    return len(one.fields) != len(other.fields) or any(map(differ, one.fields, other.fields))


def pick_fields(kind: Kind, positions: Iterable[int], method: str) -> Kind:
    """Return the kind of a tuple of some fields. Raise an error if the elements have no such fields."""
    if kind is None:
        return None
    if not isinstance(kind, TupleKind):
        raise TypeMismatch(f"{method} needs tuples, but the elements are of type {describe(kind)}")
    for position in positions:
        check_position(kind, position, method)
    return TupleKind(tuple(kind.fields[position] for position in positions))


def check_position(kind: TupleKind | RowKind, position: int, method: str) -> None:
    """Raise IndexError if elements of this kind have no field at a position."""
    if not 0 <= position < len(kind.fields):
        raise IndexError(
            f"{method}: there is no field {position}; {describe(kind)} has the fields 0 to {len(kind.fields) - 1}"
        )


def describe(kind: Kind) -> str:
    """Return a kind as text, for messages."""
    match kind:
        case None:
            return "unknown"
        case TupleKind(fields):
            return f"({', '.join(map(describe, fields))})"
        case RowKind(names, fields) if names:
            return f"Row({', '.join(f'{name}: {describe(field)}' for name, field in zip(names, fields, strict=True))})"
        case RowKind(_, fields):
            return f"Row({', '.join(map(describe, fields))})"
    return kind.__name__
