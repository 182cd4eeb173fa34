"""Conversion of types and rows to the JSON of Flink's SQL gateway."""

from __future__ import annotations

import base64
import datetime
import math
from collections.abc import Sequence
from decimal import Decimal
from functools import partial
from typing import Any

from penstock.common.types import Row
from penstock.table.catalogs.resolved_schema import ResolvedSchema
from penstock.table.display.row_printing import text_of
from penstock.table.types import data_types as t

_NAMES: dict[type[t.DataType], str] = {
    t.IntType: "INTEGER",
    t.TimestampType: "TIMESTAMP_WITHOUT_TIME_ZONE",
    t.LocalZonedTimestampType: "TIMESTAMP_WITH_LOCAL_TIME_ZONE",
    t.TimeType: "TIME_WITHOUT_TIME_ZONE",
    t.DayTimeIntervalType: "INTERVAL_DAY_TIME",
    t.YearMonthIntervalType: "INTERVAL_YEAR_MONTH",
}


def logical_type(kind: t.DataType) -> dict[str, Any]:
    """Return a type as JSON."""
    name = _NAMES.get(type(kind)) or kind.type_name()
    shape: dict[str, Any] = {"type": name, "nullable": kind._nullable}
    match kind:
        case t.DecimalType():
            shape.update(precision=kind.precision, scale=kind.scale)
        case t.CharType() | t.VarCharType() | t.BinaryType() | t.VarBinaryType():
            shape.update(length=kind.length)
        case t.TimestampType() | t.LocalZonedTimestampType() | t.TimeType():
            shape.update(precision=kind.precision)
        case t.ArrayType() | t.MultisetType():
            shape.update(elementType=logical_type(kind.element_type))
        case t.MapType():
            shape.update(keyType=logical_type(kind.key_type), valueType=logical_type(kind.value_type))
        case t.RowType():
            shape.update(fields=[{"name": f.name, "fieldType": logical_type(f.data_type)} for f in kind.fields])
        case t.DayTimeIntervalType() | t.YearMonthIntervalType():
            first, last = kind.first.value, kind.last.value
            shape.update(resolution=first if first == last else f"{first}_TO_{last}")
    return shape


def columns(schema: ResolvedSchema) -> list[dict[str, Any]]:
    """Return the columns of a result as JSON."""
    return [
        {"name": column.name, "logicalType": logical_type(column.data_type), "comment": column.comment}
        for column in schema.get_columns()
    ]


def rows(found: Sequence[Row], types: Sequence[t.DataType], plain: bool, zone: str) -> list[dict[str, Any]]:
    """Return rows with the kinds of their changes. If `plain`, values are texts, with times in `zone`."""
    value = partial(text_of, zone=zone) if plain else json_value
    return [
        {
            "kind": row.get_row_kind().name,
            "fields": [value(one, kind) for one, kind in zip(row, types, strict=True)],
        }
        for row in found
    ]


def json_value(value: Any, kind: t.DataType) -> Any:  # noqa: PLR0911 - one case, one return
    """Return a value as JSON."""
    match value:
        case None | bool() | int() | str():
            return value
        case float():
            return value if math.isfinite(value) else str(value)
        case Decimal():
            return int(value) if value.as_tuple().exponent == 0 else float(value)
        case datetime.datetime():
            zone = "Z" if isinstance(kind, t.LocalZonedTimestampType) else ""
            return value.replace(tzinfo=None).isoformat() + zone
        case datetime.date() | datetime.time():
            return value.isoformat()
        case datetime.timedelta():
            return value // datetime.timedelta(milliseconds=1)
        case bytes() | bytearray():
            return base64.b64encode(value).decode("ascii")
    return _composite(value, kind)


def _composite(value: Any, kind: t.DataType) -> Any:
    match kind:
        case t.RowType():
            return {f.name: json_value(one, f.data_type) for f, one in zip(kind.fields, value, strict=True)}
        case t.MapType():
            return {str(key): json_value(one, kind.value_type) for key, one in value.items()}
        case t.MultisetType():
            return {str(key): count for key, count in value.items()}
        case t.ArrayType():
            return [json_value(one, kind.element_type) for one in value]
    return str(value)
