"""The columns of a DataFrame of state: the Spark type that fits all values, and the conversion of values to it.

A cell describes the values that have been seen in one place. It starts from the declared type, or from nothing. A value
that does not fit makes it wider. The widest cell is a text column of reprs, into which every value fits.
"""

from __future__ import annotations

import dataclasses
import datetime
import operator
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from enum import Enum
from functools import cache, reduce, singledispatch
from itertools import starmap
from numbers import Integral, Real
from typing import Any
from uuid import UUID

from pyspark.sql import types as spark

from penstock.api.windows.windows import CountWindow, TimeWindow, Window
from penstock.common.time import Instant
from penstock.common.types import Row
from penstock.engine.state.state_schema import Schema
from penstock.spark.state_processor.atoms import ATOMS, WIDER, require

_MISFIT = (TypeError, ValueError, OverflowError)


class Cell(ABC):
    """The common type of the values in one place. None fits every cell."""

    @abstractmethod
    def type(self) -> spark.DataType:
        """Return the Spark type."""

    @abstractmethod
    def _plain(self, value: Any) -> Any:
        """Convert a value to the form that Spark takes. Raise one of _MISFIT for a value that does not fit."""

    @abstractmethod
    def merge(self, other: Cell) -> Cell:
        """Return a cell that the values of both cells fit."""

    def plain(self, value: Any) -> Any:
        """Convert a value, or None, to the form that Spark takes."""
        return None if value is None else self._plain(value)

    def learn(self, value: Any) -> Cell:
        """Return a cell that accepts the values of this one and one more value."""
        if value is None:
            return self
        try:
            return self._learn(value)
        except _MISFIT:
            return self.merge(infer(value))

    def _learn(self, value: Any) -> Cell:
        self._plain(value)
        return self

    def shows_repr(self) -> bool:
        """Return True if the cell shows values as Python's reprs."""
        return False


@dataclass(frozen=True)
class Nothing(Cell):
    """A cell without any seen value and without a declared type."""

    def type(self) -> spark.DataType:
        return spark.StringType()

    def _plain(self, value: Any) -> Any:
        raise TypeError

    def merge(self, other: Cell) -> Cell:
        return other


@dataclass(frozen=True)
class Text(Cell):
    """Values that no Spark type fits, shown as Python's reprs."""

    def type(self) -> spark.DataType:
        return spark.StringType()

    def _plain(self, value: Any) -> Any:
        return repr(value)

    def merge(self, other: Cell) -> Cell:
        return self

    def shows_repr(self) -> bool:
        return True


@dataclass(frozen=True)
class Atom(Cell):
    """A type without parts, with Spark's name for it."""

    name: str

    def type(self) -> spark.DataType:
        return ATOMS[self.name][0]

    def _plain(self, value: Any) -> Any:
        return ATOMS[self.name][1](value)

    def merge(self, other: Cell) -> Cell:
        if isinstance(other, Nothing) or other == self:
            return self
        if not isinstance(other, Atom):
            return Text()
        both = {self.name, other.name}
        return next((Atom(wider) for wider, narrower in WIDER if both <= narrower), Text())


@dataclass(frozen=True)
class Struct(Cell):
    """Named parts of a row, a tuple, a dataclass instance or a window."""

    names: tuple[str, ...]
    cells: tuple[Cell, ...]

    def type(self) -> spark.DataType:
        return spark.StructType(list(starmap(_field, zip(self.names, self.cells, strict=True))))

    def _plain(self, value: Any) -> Any:
        return tuple([cell.plain(part) for cell, part in zip(self.cells, self._parts(value), strict=True)])

    def _learn(self, value: Any) -> Cell:
        cells = tuple([cell.learn(part) for cell, part in zip(self.cells, self._parts(value), strict=True)])
        return self if all(map(operator.is_, cells, self.cells)) else Struct(self.names, cells)

    def _parts(self, value: Any) -> Sequence[Any]:
        """Return the parts of a value in this cell's order: by name if the value has names, else by position."""
        names, parts = (tuple(value), list(value.values())) if isinstance(value, dict) else _parts_of(value)
        if names == self.names:
            return parts
        if set(names) == set(self.names):
            return [parts[names.index(name)] for name in self.names]
        if isinstance(value, tuple | list) or (isinstance(value, Row) and value.get_field_names() is None):
            return parts
        raise ValueError("other field names")

    def merge(self, other: Cell) -> Cell:
        if isinstance(other, Nothing):
            return self
        if not isinstance(other, Struct) or set(other.names) != set(self.names):
            return Text()
        others = dict(zip(other.names, other.cells, strict=True))
        return Struct(self.names, tuple(cell.merge(others[n]) for n, cell in zip(self.names, self.cells, strict=True)))

    def shows_repr(self) -> bool:
        return any(cell.shows_repr() for cell in self.cells)


@dataclass(frozen=True)
class Array(Cell):
    """A list, or a set in any order."""

    element: Cell

    def type(self) -> spark.DataType:
        return spark.ArrayType(self.element.type())

    def _plain(self, value: Any) -> Any:
        return list(map(self.element.plain, require(value, list, tuple, set, frozenset)))

    def _learn(self, value: Any) -> Cell:
        return Array(_learn_all(self.element, require(value, list, tuple, set, frozenset)))

    def merge(self, other: Cell) -> Cell:
        if isinstance(other, Nothing):
            return self
        return Array(self.element.merge(other.element)) if isinstance(other, Array) else Text()

    def shows_repr(self) -> bool:
        return self.element.shows_repr()


@dataclass(frozen=True)
class Map(Cell):
    """A dict without None among its keys, which Spark's maps do not allow."""

    key: Cell
    value: Cell

    def type(self) -> spark.DataType:
        return spark.MapType(self.key.type(), self.value.type())

    def _plain(self, value: Any) -> Any:
        held = _without_null_key(require(value, dict))
        return {self.key.plain(key): self.value.plain(part) for key, part in held.items()}

    def _learn(self, value: Any) -> Cell:
        held = _without_null_key(require(value, dict))
        return Map(_learn_all(self.key, held), _learn_all(self.value, held.values()))

    def merge(self, other: Cell) -> Cell:
        if isinstance(other, Nothing):
            return self
        return Map(self.key.merge(other.key), self.value.merge(other.value)) if isinstance(other, Map) else Text()

    def shows_repr(self) -> bool:
        return self.key.shows_repr() or self.value.shows_repr()


def _learn_all(cell: Cell, values: Iterable[Any]) -> Cell:
    return reduce(lambda so_far, value: so_far.learn(value), values, cell)


def _without_null_key(held: dict[Any, Any]) -> dict[Any, Any]:
    if None in held:
        raise ValueError("None is among the keys")
    return held


def column(name: str, cell: Cell) -> spark.StructField:
    """Return a column of a DataFrame. If the column shows reprs, its comment says so."""
    return _field(name, cell, {"comment": "Python's repr: no Spark type fits"} if cell.shows_repr() else None)


def _field(name: str, cell: Cell, metadata: dict[str, Any] | None = None) -> spark.StructField:
    return spark.StructField(name, cell.type(), True, metadata)


# --- from a value ---
@singledispatch
def infer(value: Any) -> Cell:
    """Return the cell of one value."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return _struct(value)
    return Text()


@infer.register
def _(value: None) -> Cell:
    return Nothing()


@infer.register
def _(value: bool) -> Cell:
    return Atom("boolean")


@infer.register
def _(value: Integral) -> Cell:
    return _first_fitting(value, "bigint", "decimal(38,0)")


@infer.register
def _(value: Real) -> Cell:
    return Atom("double")


@infer.register
def _(value: Decimal) -> Cell:
    return _first_fitting(value, "decimal(38,18)", "decimal(38,0)")


@infer.register(str)
@infer.register(UUID)
@infer.register(Enum)
@infer.register(Window)
@infer.register(datetime.time)
def _(value: Any) -> Cell:
    return Atom("string")


@infer.register(bytes)
@infer.register(bytearray)
def _(value: Any) -> Cell:
    return Atom("binary")


@infer.register(datetime.datetime)
@infer.register(Instant)
def _(value: Any) -> Cell:
    return _first_fitting(value, "timestamp_ntz", "timestamp")


@infer.register
def _(value: datetime.date) -> Cell:
    return Atom("date")


@infer.register
def _(value: datetime.timedelta) -> Cell:
    return Atom("interval day to second")


@infer.register(Row)
@infer.register(tuple)
@infer.register(CountWindow)
@infer.register(TimeWindow)
def _(value: Any) -> Cell:
    return _struct(value)


@infer.register(list)
@infer.register(set)
@infer.register(frozenset)
def _(value: Any) -> Cell:
    return Array(_learn_all(Nothing(), value))


@infer.register
def _(value: dict) -> Cell:  # type: ignore[type-arg]
    return Text() if None in value else Map(_learn_all(Nothing(), value), _learn_all(Nothing(), value.values()))


def _first_fitting(value: Any, *names: str) -> Cell:
    for name in names:
        try:
            Atom(name).plain(value)
        except _MISFIT:
            continue
        return Atom(name)
    return Text()


def _struct(value: Any) -> Cell:
    names, parts = _parts_of(value)
    return Struct(names, tuple(map(infer, parts))) if names else Text()


Parts = tuple[tuple[str, ...], Sequence[Any]]


@singledispatch
def _parts_of(value: Any) -> Parts:
    """Return the names and values of a struct's parts. The parts of a tuple have Spark's names: _1, _2 and so on."""
    if not dataclasses.is_dataclass(value):
        raise TypeError(f"{type(value).__name__} has no parts")
    names = tuple(field.name for field in dataclasses.fields(value))
    return names, [getattr(value, name, None) for name in names]


@_parts_of.register(tuple)
@_parts_of.register(list)
def _(value: Any) -> Parts:
    return _tuple_names(len(value)), value


@_parts_of.register
def _(value: Row) -> Parts:
    names = value.get_field_names()
    return _row_names(len(value)) if names is None else tuple(names), list(value)


@_parts_of.register
def _(value: TimeWindow) -> Parts:
    return ("start", "end"), value


@_parts_of.register
def _(value: CountWindow) -> Parts:
    return ("id",), [value.id]


@cache
def _tuple_names(size: int) -> tuple[str, ...]:
    return tuple(f"_{position}" for position in range(1, size + 1))


@cache
def _row_names(size: int) -> tuple[str, ...]:
    return tuple(f"f{position}" for position in range(size))


# --- from a declared type ---
def cell_of_schema(described: Schema | None) -> Cell:
    """Return the cell of a type in a snapshot's metadata. Parts without a type are learned from the values."""
    if described is None:
        return Nothing()
    if "fields" in described:
        return _struct_of_schema(described)
    if "element" in described:
        return Array(cell_of_schema(described["element"]))
    if "key" in described:
        return Map(cell_of_schema(described["key"]), cell_of_schema(described["value"]))
    name = _DECLARED.get(described["type"])
    return Nothing() if name is None else Atom(name)


def _struct_of_schema(described: Schema) -> Cell:
    fields = described["fields"]
    unnamed = _tuple_names(len(fields)) if described["type"] == "TUPLE" else _row_names(len(fields))
    names = [field.get("name") or other for field, other in zip(fields, unnamed, strict=True)]
    return Struct(tuple(names), tuple(cell_of_schema(field["type"]) for field in fields)) if names else Nothing()


_DECLARED = {
    "BOOLEAN": "boolean",
    "BYTE": "tinyint",
    "SHORT": "smallint",
    "INT": "int",
    "LONG": "bigint",
    "FLOAT": "float",
    "DOUBLE": "double",
    "STRING": "string",
    "CHAR": "string",
    "ENUM": "string",
    "BIG_INT": "decimal(38,0)",
    "BIG_DEC": "decimal(38,18)",
    "SQL_DATE": "date",
    "SQL_TIME": "string",
    "SQL_TIMESTAMP": "timestamp_ntz",
    "INSTANT": "timestamp",
    "BYTE_ARRAY": "binary",
}
