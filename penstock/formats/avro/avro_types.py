"""The row types of Avro schemas, and the conversions between fastavro's records and rows."""

from __future__ import annotations

import datetime
import json
import uuid
from collections.abc import Callable
from functools import lru_cache
from typing import Any

from penstock.common.composite_types import RowTypeInfo
from penstock.common.type_information import TypeInformation
from penstock.common.typeinfo import Types
from penstock.common.types import Row, make_row
from penstock.formats.date_texts import as_utc
from penstock.formats.format_libraries import fastavro

Convert = Callable[[Any], Any]

_BYTES = Types.PRIMITIVE_ARRAY(Types.BYTE())
_PLAIN: dict[str, TypeInformation] = {
    "boolean": Types.BOOLEAN(),
    "int": Types.INT(),
    "long": Types.LONG(),
    "float": Types.FLOAT(),
    "double": Types.DOUBLE(),
    "bytes": _BYTES,
    "fixed": _BYTES,
    "string": Types.STRING(),
    "enum": Types.STRING(),
    "null": Types.PICKLED_BYTE_ARRAY(),
}
_LOGICAL: dict[tuple[str, str], TypeInformation] = {
    ("int", "date"): Types.SQL_DATE(),
    ("int", "time-millis"): Types.SQL_TIME(),
    ("long", "time-micros"): Types.SQL_TIME(),
    ("long", "timestamp-millis"): Types.SQL_TIMESTAMP(),
    ("long", "timestamp-micros"): Types.SQL_TIMESTAMP(),
    ("long", "local-timestamp-millis"): Types.SQL_TIMESTAMP(),
    ("long", "local-timestamp-micros"): Types.SQL_TIMESTAMP(),
    ("bytes", "decimal"): Types.BIG_DEC(),
    ("fixed", "decimal"): Types.BIG_DEC(),
}


@lru_cache(maxsize=64)
def parse_schema(schema: str) -> Any:
    """Parse a schema into fastavro's form. Raise ValueError if it is not valid."""
    library = fastavro()
    try:
        return library.parse_schema(json.loads(schema))
    except (ValueError, library.schema.SchemaParseException, library.schema.UnknownType) as error:
        raise ValueError(f"not an Avro schema: {error}") from None


def row_type_of(schema: str) -> RowTypeInfo:
    """Return the type of the rows that a record schema describes."""
    found = Shape(parse_schema(schema)).type_of(parse_schema(schema), ())
    if not isinstance(found, RowTypeInfo):
        raise ValueError(f"the Avro schema of rows must be a record, but describes {found.notation}")
    return found


def to_rows(schema: str) -> Convert:
    """Return the function that makes a row from a record of fastavro. Times are in UTC, without a zone."""
    return or_same(Shape(parse_schema(schema)).from_avro(parse_schema(schema)))


def to_fields(schema: str) -> list[tuple[str, Convert | None]]:
    """Return the fields of a record schema as a row, each with the function that converts its values, or None if no
    conversion is needed.
    """
    shape = Shape(parse_schema(schema))
    return [
        (field["name"], shape.from_avro(field["type"]))
        for field in shape.fields_of(shape.resolve(parse_schema(schema)))
    ]


def from_rows(schema: str) -> Convert:
    """Return the function that makes a record for fastavro from a row. Times without a zone are taken as UTC."""
    return or_same(Shape(parse_schema(schema)).to_avro(parse_schema(schema)))


def is_null(schema: Any) -> bool:
    """Return True for the schema of null."""
    return schema == "null" or (isinstance(schema, dict) and is_null(schema["type"]))


class Shape:
    """Walks through a schema. A named type is defined once, and other places refer to its name.

    A union of more than null and one other type becomes a field of any type in a row.
    """

    def __init__(self, schema: Any) -> None:
        self._named: dict[str, Any] = {}
        self._collect(schema)

    def _collect(self, schema: Any) -> None:
        if isinstance(schema, list):
            for branch in schema:
                self._collect(branch)
        elif isinstance(schema, dict):
            if schema["type"] in ("record", "error", "enum", "fixed"):
                self._named[schema["name"]] = schema
            for field in schema.get("fields", ()):
                self._collect(field["type"])
            for part in (schema.get("items"), schema.get("values"), schema["type"]):
                self._collect(part)

    def keeps_union(self, branches: list[Any]) -> bool:
        """Return True if a union with one branch besides null stays a union."""
        return False

    def fields_of(self, schema: Any) -> list[Any]:
        """Return the fields of a record that its row has."""
        return list(schema["fields"])

    def resolve(self, schema: Any) -> Any:
        """Resolve names, and unions of null and another type. Return a list for a union of more."""
        while True:
            if isinstance(schema, str):
                if schema not in self._named:
                    return {"type": schema}
                schema = self._named[schema]
            elif isinstance(schema, list):
                others = [branch for branch in schema if not is_null(branch)]
                if len(others) != 1 or self.keeps_union(schema):
                    return schema
                schema = others[0]
            elif isinstance(schema["type"], (dict, list)):
                schema = schema["type"]
            else:
                return schema

    def type_of(self, schema: Any, within: tuple[str, ...]) -> TypeInformation:
        schema = self.resolve(schema)
        if isinstance(schema, list):
            return Types.PICKLED_BYTE_ARRAY()
        kind = schema["type"]
        if kind == "array":
            return Types.OBJECT_ARRAY(self.type_of(schema["items"], within))
        if kind == "map":
            return Types.MAP(Types.STRING(), self.type_of(schema["values"], within))
        if kind in ("record", "error"):
            return self._row_type(schema, within)
        return _LOGICAL.get((kind, schema.get("logicalType", "")), _PLAIN[kind])

    def _row_type(self, schema: Any, within: tuple[str, ...]) -> TypeInformation:
        name = schema["name"]
        if name in within:
            raise ValueError(f"the Avro record {name} contains itself; rows have a fixed depth")
        fields = self.fields_of(schema)
        types = [self.type_of(field["type"], (*within, name)) for field in fields]
        return Types.ROW_NAMED([field["name"] for field in fields], types)

    def from_avro(self, schema: Any) -> Convert | None:
        """Return the conversion of a value of fastavro for a row; None if it needs none."""
        schema = self.resolve(schema)
        if isinstance(schema, list):
            return None
        kind = schema["type"]
        if kind in ("record", "error"):
            parts = [(field["name"], around_none(self.from_avro(field["type"]))) for field in self.fields_of(schema)]
            names = tuple(name for name, _ in parts)
            return lambda record: make_row(names, tuple([convert(record.get(name)) for name, convert in parts]))
        if kind in ("array", "map"):
            return _convert_elements(kind, self.from_avro(schema["items" if kind == "array" else "values"]))
        logical = schema.get("logicalType", "")
        if logical.startswith("timestamp-"):
            return as_utc
        return str if logical == "uuid" else None

    def to_avro(self, schema: Any) -> Convert | None:
        """Return the conversion of a row's value for fastavro; None if it needs none."""
        schema = self.resolve(schema)
        if isinstance(schema, list):
            return None
        kind = schema["type"]
        if kind in ("record", "error"):
            fields = [(field["name"], around_none(self.to_avro(field["type"]))) for field in self.fields_of(schema)]
            return lambda row: _record(row, fields)
        if kind in ("array", "map"):
            return _convert_elements(kind, self.to_avro(schema["items" if kind == "array" else "values"]))
        logical = schema.get("logicalType", "")
        if logical.startswith("timestamp-"):
            return _with_zone
        return uuid.UUID if logical == "uuid" else None


def _record(row: Any, fields: list[tuple[str, Convert]]) -> dict[str, Any]:
    """Return the fields by name; by position, as in Flink, if the row has only the default names f0, f1, …"""
    if isinstance(row, Row) and row._names is not None and not _are_default(row._names, fields):
        row = row.as_dict()
    if isinstance(row, dict):
        return {name: convert(row[name]) for name, convert in fields}
    return {name: convert(value) for (name, convert), value in zip(fields, row, strict=True)}


def _are_default(names: tuple[str, ...], fields: list[tuple[str, Convert]]) -> bool:
    return names == tuple(f"f{index}" for index in range(len(names))) and not any(name in names for name, _ in fields)


def _convert_elements(kind: str, convert: Convert | None) -> Convert | None:
    if convert is None:
        return None
    around = around_none(convert)
    if kind == "array":
        return lambda values: [around(value) for value in values]
    return lambda values: {key: around(value) for key, value in values.items()}


def around_none(convert: Convert | None) -> Convert:
    """Return a conversion that leaves None as it is."""
    if convert is None:
        return lambda value: value
    return lambda value: None if value is None else convert(value)


def or_same(convert: Convert | None) -> Convert:
    """Return the conversion, or one that changes nothing."""
    return convert or (lambda value: value)


def _with_zone(value: datetime.datetime) -> datetime.datetime:
    return value.replace(tzinfo=datetime.UTC) if value.tzinfo is None else value
