"""The layout of generic Avro records in the columns of Parquet files.

It is that of parquet-avro, which Flink uses.

A field of type null has no column. A union of null and another type is a column of that type. Any other union is a
struct with a field for each branch except null (`member0`, `member1`, …); only the field of the value's branch is set.
"""

from __future__ import annotations

import datetime
import uuid
from collections.abc import Callable
from decimal import Decimal
from typing import Any

from penstock.common.composite_types import RowTypeInfo
from penstock.common.type_information import TypeInformation, mismatch
from penstock.common.typeinfo import Types
from penstock.common.types import Row, make_row
from penstock.formats.arrow_types import SymbolTypeInfo
from penstock.formats.avro.avro_types import Convert, Shape, is_null, or_same, parse_schema

_SYMBOL = SymbolTypeInfo("STRING", str)


class RecordsInParquet:
    """The columns of a schema's records, and the functions between records and rows of columns.

    Raises TypeError or ValueError for a schema that has no form in Parquet.
    """

    def __init__(self, schema: str) -> None:
        shape = _ParquetShape(parse_schema(schema))
        declared = shape.type_of(parse_schema(schema), ())
        if not isinstance(declared, RowTypeInfo):
            raise ValueError(f"the Avro schema of a Parquet file must be a record, but describes {declared.notation}")
        self.row_type = declared
        self.to_row = or_same(shape.from_avro(parse_schema(schema)))
        self.to_record = or_same(shape.to_avro(parse_schema(schema)))


class _ParquetShape(Shape):
    def keeps_union(self, branches: list[Any]) -> bool:
        return not any(map(is_null, branches))

    def fields_of(self, schema: Any) -> list[Any]:
        return [field for field in schema["fields"] if not is_null(field["type"])]

    def type_of(self, schema: Any, within: tuple[str, ...]) -> TypeInformation:
        schema = self.resolve(schema)
        if isinstance(schema, list):
            branches = [self.type_of(branch, within) for branch in self._branches(schema)]
            return Types.ROW_NAMED(_member_names(len(branches)), branches)
        if is_null(schema):
            raise TypeError(
                "Parquet has no form for the Avro type null as the items of an array, the values of a map, or the only "
                "branch of a union; allowed are fields of type null, and unions of null and other types"
            )
        return _SYMBOL if schema["type"] == "enum" else super().type_of(schema, within)

    def from_avro(self, schema: Any) -> Convert | None:
        schema = self.resolve(schema)
        if not isinstance(schema, list):
            return super().from_avro(schema)
        branches = self._branches(schema)
        names = _member_names(len(branches))
        converts = [or_same(self.from_avro(branch)) for branch in branches]

        def to_members(value: Any) -> Row:
            chosen = self._branch_of(value, branches)
            members = [convert(value) if index == chosen else None for index, convert in enumerate(converts)]
            return make_row(names, tuple(members))

        return to_members

    def to_avro(self, schema: Any) -> Convert | None:
        schema = self.resolve(schema)
        if isinstance(schema, list):
            converts = [or_same(self.to_avro(branch)) for branch in self._branches(schema)]
            return lambda members: _only_member(members, converts)
        convert = super().to_avro(schema)
        if schema["type"] not in ("record", "error"):
            return convert
        nothing = {field["name"]: None for field in schema["fields"]}
        to_record = or_same(convert)
        return lambda row: {**nothing, **to_record(row)}

    @staticmethod
    def _branches(union: list[Any]) -> list[Any]:
        return [branch for branch in union if not is_null(branch)] or ["null"]

    def _branch_of(self, value: Any, branches: list[Any]) -> int:
        for index, branch in enumerate(branches):
            if self._fits(value, branch):
                return index
        kinds = [self.resolve(branch) for branch in branches]
        names = ", ".join(str(kind.get("name", kind["type"])) for kind in kinds)
        raise mismatch(value, f"the Avro union of {names}")

    def _fits(self, value: Any, schema: Any) -> bool:
        """Return True if a value is of a type. None is a value where null is allowed."""
        if value is None:
            return is_null(schema) or (isinstance(schema, list) and any(map(is_null, schema)))
        schema = self.resolve(schema)
        if isinstance(schema, list):
            return any(self._fits(value, branch) for branch in schema)
        kind = schema["type"]
        if kind in ("record", "error"):
            fields = schema["fields"]
            return isinstance(value, dict) and all(self._fits(value.get(f["name"]), f["type"]) for f in fields)
        if kind == "array":
            return isinstance(value, (list, tuple)) and all(self._fits(item, schema["items"]) for item in value)
        if kind == "map":
            return isinstance(value, dict) and all(self._fits(item, schema["values"]) for item in value.values())
        logical = _LOGICAL_CLASSES.get(schema.get("logicalType", ""))
        return _FITS[kind](value, schema) if logical is None else _is_one(value, logical)


def _member_names(count: int) -> tuple[str, ...]:
    return tuple(f"member{index}" for index in range(count))


def _only_member(members: Any, converts: list[Convert]) -> Any:
    parts = zip(converts, members, strict=True)
    return next((convert(member) for convert, member in parts if member is not None), None)


_LOGICAL_CLASSES: dict[str, type | tuple[type, ...]] = {
    "date": datetime.date,
    "time-millis": datetime.time,
    "time-micros": datetime.time,
    "timestamp-millis": datetime.datetime,
    "timestamp-micros": datetime.datetime,
    "local-timestamp-millis": datetime.datetime,
    "local-timestamp-micros": datetime.datetime,
    "decimal": Decimal,
    "uuid": (uuid.UUID, str),
}


def _is_one(value: Any, classes: type | tuple[type, ...]) -> bool:
    is_moment = isinstance(value, datetime.datetime)  # which Python calls a date as well
    return isinstance(value, classes) and not (is_moment and classes is datetime.date)


def _is_whole(value: Any, bits: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and -(1 << bits) <= value < 1 << bits


def _is_real(value: Any, schema: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


_FITS: dict[str, Callable[[Any, Any], bool]] = {
    "null": lambda value, schema: False,
    "boolean": lambda value, schema: isinstance(value, bool),
    "int": lambda value, schema: _is_whole(value, 31),
    "long": lambda value, schema: _is_whole(value, 63),
    "float": _is_real,
    "double": _is_real,
    "bytes": lambda value, schema: isinstance(value, (bytes, bytearray)),
    "fixed": lambda value, schema: isinstance(value, (bytes, bytearray)) and len(value) == schema["size"],
    "string": lambda value, schema: isinstance(value, str),
    "enum": lambda value, schema: value in schema["symbols"],
}
