"""Rows: records with optional field names and a kind of change."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from enum import Enum
from itertools import repeat
from operator import attrgetter
from typing import Any

from penstock.base.arguments import invalid_argument

__all__ = ["Row", "RowKind", "rows_from_columns", "rows_to_columns"]

PackedRows = tuple[tuple[str, ...] | None, bytes | None, list[tuple[Any, ...]]]


class RowKind(Enum):
    """Meaning of a row for its table: the first version of a row, a change, or its end."""

    INSERT = 0
    UPDATE_BEFORE = 1
    UPDATE_AFTER = 2
    DELETE = 3

    def __str__(self) -> str:
        return _KIND_TEXT[self._value_]


_KIND_TEXT = ("+I", "-U", "+U", "-D")
_KINDS = tuple(RowKind)
_INSERT = RowKind.INSERT


def _kind_by_name(given: Any) -> RowKind:
    """Return the kind of row with a name."""
    if isinstance(given, str) and given in RowKind.__members__:
        return RowKind[given]
    names = ", ".join(map(repr, RowKind.__members__))
    raise invalid_argument("Row.set_row_kind", "row_kind", given, f"a RowKind or its name as a string, one of {names}")


class Row:
    """A record whose fields are accessed by position and, if it has names, by name.

    >>> row = Row(name="Ann", age=31)
    >>> row.name, row["age"], row[0]
    ('Ann', 31, 'Ann')
    >>> Row("Ann", 31)
    <Row('Ann', 31)>

    A row whose values are names makes rows with these names:

    >>> Person = Row("name", "age")
    >>> Person("Ann", 31)
    Row(name='Ann', age=31)

    Rows are equal when kind, names and values are; the order of the names does not count. A row can be a key as long as
    its values can; changing a row that is a key is as unwise as it is with any other object.
    """

    # The values are a tuple: making a row copies nothing, and a row shared by two streams is changed in neither.
    __slots__ = ("_kind", "_names", "_values")

    _kind: RowKind
    _names: tuple[str, ...] | None
    _values: tuple[Any, ...]

    def __init__(self, /, *args: Any, **kwargs: Any) -> None:
        if kwargs:
            if args:
                raise ValueError("a Row has either positional or named fields, not both")
            self._names = tuple(kwargs)
            self._values = tuple(kwargs.values())
        else:
            self._names = None
            self._values = args
        self._kind = _INSERT

    @staticmethod
    def of_kind(row_kind: RowKind, /, *args: Any, **kwargs: Any) -> Row:
        """Create a row of a kind. The other arguments are those of `Row`."""
        row = Row(*args, **kwargs)
        row._kind = row_kind
        return row

    def get_row_kind(self) -> RowKind:
        """Return the kind of the row."""
        return self._kind

    def set_row_kind(self, row_kind: RowKind) -> None:
        """Set the kind of the row."""
        self._kind = row_kind if type(row_kind) is RowKind else _kind_by_name(row_kind)

    @property
    def _fields(self) -> list[str]:
        """The field names, under PyFlink's name. A row without names does not have this attribute."""
        if self._names is None:
            raise AttributeError("_fields: this row has no field names")
        return list(self._names)

    def get_field_names(self) -> list[str] | None:
        """Return the names of the fields, or None if there are none."""
        return None if self._names is None else list(self._names)

    def set_field_names(self, field_names: Iterable[str]) -> None:
        """Set the names of the fields. There must be a name for every field."""
        if isinstance(field_names, str):
            raise invalid_argument("Row.set_field_names", "field_names", field_names, "a list of names")
        names = tuple(field_names)
        if len(names) != len(self._values):
            raise ValueError(f"{len(names)} names for a row of {len(self._values)} fields: {list(names)}")
        self._names = names

    def get_fields_by_names(self, names: Sequence[str]) -> list[Any]:
        """Return the values in the order of these names. A row without names returns its values in their own order."""
        if self._names is None:
            return list(self._values)
        return [self._values[self._position(name)] for name in names]

    def as_dict(self, recursive: bool = False) -> dict[str, Any]:
        """Return the values by field names. With `recursive`, rows inside become dicts too."""
        if self._names is None:
            raise TypeError(f"{self!r} has no field names, so it cannot become a dict")
        values = map(_plain, self._values) if recursive else self._values
        return dict(zip(self._names, values, strict=True))

    def _position(self, name: str) -> int:
        try:
            return self._names.index(name)  # type: ignore[union-attr]
        except (AttributeError, ValueError):
            raise KeyError(f"no field {name!r}; this row has {_describe_names(self._names)}") from None

    def __getitem__(self, item: int | slice | str) -> Any:
        if isinstance(item, int):
            return self._values[item]
        if isinstance(item, slice):
            return list(self._values[item])
        return self._values[self._position(item)]

    def __setitem__(self, key: int | slice | str, value: Any) -> None:
        values = list(self._values)
        values[self._position(key) if isinstance(key, str) else key] = value
        if len(values) != len(self._values):
            raise ValueError("assigning to a slice must not change the number of fields")
        self._values = tuple(values)

    def __getattr__(self, name: str) -> Any:
        # Called for field names, and for slots that are not filled yet, as while a copy is made.
        if name in Row.__slots__ or self._names is None or name not in self._names:
            raise AttributeError(f"no field {name!r}")
        return self._values[self._names.index(name)]

    def __call__(self, *args: Any) -> Row:
        """Return a row of these values, whose field names are the values of this row."""
        if len(args) > len(self._values):
            raise ValueError(f"{len(args)} values for the {len(self._values)} names {list(self._values)}")
        return make_row(self._values[: len(args)], args, self._kind)

    def __contains__(self, item: object) -> bool:
        return item in (self._values if self._names is None else self._names)

    def __iter__(self) -> Iterator[Any]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Row):
            return NotImplemented
        if self._kind is not other._kind:
            return False
        if self._names == other._names:
            return self._values == other._values
        if self._names is None or other._names is None:
            return False
        return self.as_dict() == other.as_dict()

    def __hash__(self) -> int:
        if self._names is None:
            return hash(self._values)
        return hash(frozenset(zip(self._names, self._values, strict=True)))

    def __reduce__(self) -> tuple[Any, ...]:
        if self._kind is not _INSERT:
            return _row_of_kind, (self._names, self._values, self._kind._value_)
        return (Row, self._values) if self._names is None else (make_row, (self._names, self._values))

    def __repr__(self) -> str:
        if self._names is None:
            return f"<Row({', '.join(map(repr, self._values))})>"
        return f"Row({', '.join(f'{n}={v!r}' for n, v in zip(self._names, self._values, strict=True))})"


def _describe_names(names: tuple[str, ...] | None) -> str:
    return "no names" if names is None else "the fields " + ", ".join(names)


def _plain(value: Any) -> Any:
    if isinstance(value, Row):
        return value.as_dict(recursive=True)
    if isinstance(value, list):
        return list(map(_plain, value))
    if isinstance(value, dict):
        return {k: _plain(v) for k, v in value.items()}
    return value


_new = object.__new__


def make_row(names: tuple[str, ...] | None, values: tuple[Any, ...], kind: RowKind = _INSERT) -> Row:
    row = _new(Row)
    row._names = names
    row._values = values
    row._kind = kind
    return row


def _row_of_kind(names: tuple[str, ...] | None, values: tuple[Any, ...], code: int) -> Row:
    return make_row(names, values, _KINDS[code])


_names_of = attrgetter("_names")
_values_of = attrgetter("_values")
_kind_of = attrgetter("_kind")
_code_of = attrgetter("_value_")


def rows_to_columns(rows: Sequence[Any]) -> PackedRows | None:
    """Turn rows with equal names and lengths into columns. Return None if they differ or have no fields.

    The result is (names, kinds, columns). Kinds are None when every row is an insert, and one byte a row otherwise.
    """
    count = len(rows)
    if list(map(type, rows)).count(Row) != count:
        return None
    names = _names_of(rows[0]) if rows else None
    if list(map(_names_of, rows)).count(names) != count:
        return None
    try:
        columns = list(zip(*map(_values_of, rows), strict=True))
    except ValueError:
        return None
    if not columns:  # no rows, or rows without fields, whose number columns could not show
        return None
    kinds = list(map(_kind_of, rows))
    return names, None if kinds.count(_INSERT) == count else bytes(map(_code_of, kinds)), columns


def rows_from_columns(packed: tuple[Any, Any, Sequence[Sequence[Any]]]) -> list[Row]:
    """Return the rows that `rows_to_columns` packed."""
    names, codes, columns = packed
    rows: list[Row] = []
    append = rows.append
    kinds: Iterable[RowKind] = repeat(_INSERT) if codes is None else map(_KINDS.__getitem__, codes)
    for values, kind in zip(zip(*columns, strict=True), kinds, strict=False):
        row = _new(Row)
        row._names = names
        row._values = values
        row._kind = kind
        append(row)
    return rows
