"""The types of SQL in Arrow, and the conversion of Python values into columns and back.

Texts are `string`, bytes `binary`, decimals `decimal128`, dates `date32`, times of day `time64[us]`, TIMESTAMP is
`timestamp[us]`, TIMESTAMP_LTZ `timestamp[us, UTC]`, an interval of days to seconds `duration[ms]`, one of months
`int32`, a multiset a map with `int32`.
"""

from __future__ import annotations

import datetime
import pickle
from collections.abc import Callable, Iterable, Sequence
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from penstock.base import pickling
from penstock.common.time import Instant
from penstock.common.types import Row
from penstock.formats.decimal_values import DECIMAL
from penstock.table.types import data_types as t

if TYPE_CHECKING:
    from penstock.table.logical.nodes import Columns

_EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
KIND = "$kind"
"""Name of the last column of a batch whose rows are not all inserts. It holds the value of a RowKind as int8."""

_SIMPLE: dict[type[t.DataType], pa.DataType] = {
    t.NullType: pa.null(),
    t.BooleanType: pa.bool_(),
    t.TinyIntType: pa.int8(),
    t.SmallIntType: pa.int16(),
    t.IntType: pa.int32(),
    t.BigIntType: pa.int64(),
    t.FloatType: pa.float32(),
    t.DoubleType: pa.float64(),
    t.CharType: pa.string(),
    t.VarCharType: pa.string(),
    t.BinaryType: pa.binary(),
    t.VarBinaryType: pa.binary(),
    t.DateType: pa.date32(),
    t.TimeType: pa.time64("us"),
    t.TimestampType: pa.timestamp("us"),
    t.LocalZonedTimestampType: pa.timestamp("us", "UTC"),
    t.DayTimeIntervalType: pa.duration("ms"),
    t.YearMonthIntervalType: pa.int32(),
}


def arrow_type(declared: t.DataType) -> pa.DataType:
    """Return the form of a type in columns."""
    simple = _SIMPLE.get(type(declared))
    if simple is not None:
        return simple
    match declared:
        case t.DecimalType():
            return pa.decimal128(declared.precision, declared.scale)
        case t.RawType():
            return pa.binary()
        case t.UserDefinedType():
            return arrow_type(declared.sql_type())
        case t.ArrayType():
            return pa.list_(arrow_type(declared.element_type))
        case t.MultisetType():
            return pa.map_(arrow_type(declared.element_type), pa.int32())
        case t.MapType():
            return pa.map_(arrow_type(declared.key_type), arrow_type(declared.value_type))
        case t.RowType():
            return pa.struct([pa.field(field.name, arrow_type(field.data_type)) for field in declared.fields])
    raise TypeError(f"{declared!r} has no type in Arrow")


def arrow_schema(columns: Columns, changelog: bool = False) -> pa.Schema:
    """Return the schema of a relation's batches. Names may repeat, because columns are found by their position."""
    found = [pa.field(column.name, arrow_type(column.type)) for column in columns]
    return pa.schema([*found, pa.field(KIND, pa.int8())] if changelog else found)


def array_of(values: Sequence[Any], declared: t.DataType) -> pa.Array:
    """Convert Python values to a column."""
    convert = _to_arrow(declared)
    if convert is not None:
        values = [None if value is None else convert(value) for value in values]
    if isinstance(declared, t.DecimalType):
        return _decimals(values, declared)
    return pa.array(values, arrow_type(declared))


def _decimals(values: Sequence[Any], declared: t.DecimalType) -> pa.Array:
    """Convert decimals to a column.

    As in Flink, surplus digits are rounded, and a number that is too large becomes NULL.
    """
    try:
        return pa.array(values, arrow_type(declared))
    except pa.ArrowInvalid:
        fit = _around_none(_rounding(declared))
        return pa.array([fit(value) for value in values], arrow_type(declared))


def values_of(column: pa.Array | pa.ChunkedArray, declared: t.DataType) -> list[Any]:
    """Convert a column to Python values: rows are Rows, maps dicts, moments naive datetimes (with a zone if LTZ)."""
    values: list[Any] = column.to_pylist()
    convert = _from_arrow(declared)
    return values if convert is None else [None if value is None else convert(value) for value in values]


Convert = Callable[[Any], Any]


def _rounding(declared: t.DecimalType) -> Convert:
    rounded = DECIMAL(declared.precision, declared.scale).round_value
    return lambda value: rounded(Decimal(value))


def _to_arrow(declared: t.DataType, nested: bool = False) -> Convert | None:
    match declared:
        case t.DecimalType() if nested:
            return _rounding(declared)
        case t.RawType():
            return pickle.dumps
        case t.UserDefinedType():
            inner = _around_none(_to_arrow(declared.sql_type(), True))
            return lambda value: inner(declared.serialize(value))
        case t.TimestampType():
            return _naive
        case t.LocalZonedTimestampType():
            return _aware
        case t.FloatType() | t.DoubleType():
            return float
        case t.ArrayType():
            element = _around_none(_to_arrow(declared.element_type, True))
            return lambda value: [element(one) for one in value]
        case t.MultisetType():
            element = _around_none(_to_arrow(declared.element_type, True))
            return lambda value: [(element(one), count) for one, count in _pairs(value)]
        case t.MapType():
            key, part = (_around_none(_to_arrow(kind, True)) for kind in (declared.key_type, declared.value_type))
            return lambda value: [(key(_check_key(one)), part(other)) for one, other in _pairs(value)]
        case t.RowType():
            names = declared.field_names()
            parts = [_around_none(_to_arrow(field.data_type, True)) for field in declared.fields]
            return lambda value: tuple(part(one) for part, one in zip(parts, _in_order(value, names), strict=True))
    return None


def _from_arrow(declared: t.DataType) -> Convert | None:
    match declared:
        case t.RawType():
            return pickling.loads
        case t.UserDefinedType():
            stored = _around_none(_from_arrow(declared.sql_type()))
            return lambda value: declared.deserialize(stored(value))
        case t.ArrayType():
            element = _from_arrow(declared.element_type)
            around = _around_none(element)
            return None if element is None else lambda value: [around(one) for one in value]
        case t.MultisetType() | t.MapType():
            kinds = (
                (declared.element_type, t.IntType())
                if isinstance(declared, t.MultisetType)
                else (declared.key_type, declared.value_type)
            )
            key, part = (_around_none(_from_arrow(kind)) for kind in kinds)
            return lambda value: {key(one): part(other) for one, other in value}
        case t.RowType():
            names = declared.field_names()
            parts = [_around_none(_from_arrow(field.data_type)) for field in declared.fields]
            make = Row(*names)
            return lambda value: make(*(part(value[name]) for part, name in zip(parts, names, strict=True)))
        case t.FloatType():
            return _shortest
    return None


def _shortest(value: float) -> float:
    """Return the shortest number that equals this one in single precision, as Flink does: 0.1 and not 0.10000000149."""
    return float(str(np.float32(value)))


def _around_none(convert: Convert | None) -> Convert:
    if convert is None:
        return lambda value: value
    return lambda value: None if value is None else convert(value)


def _check_key(key: Any) -> Any:
    """Return the key of a map. Refuse NULL."""
    if key is None:
        raise ValueError(
            "a key of a map is NULL, and every key must have a value: leave such rows out with WHERE ... IS NOT NULL, "
            "or give them a key with COALESCE"
        )
    return key


def _pairs(value: Any) -> Any:
    return value.items() if isinstance(value, dict) else value


def _in_order(value: Any, names: list[str]) -> Sequence[Any]:
    if isinstance(value, dict):
        return [value.get(name) for name in names]
    return list(value) if isinstance(value, Iterable) else [getattr(value, name, None) for name in names]


def _naive(value: Any) -> Any:
    if isinstance(value, datetime.datetime) and value.tzinfo is not None:
        return value.astimezone(datetime.UTC).replace(tzinfo=None)
    return value


def _aware(value: Any) -> Any:
    if isinstance(value, Instant):
        return _EPOCH + datetime.timedelta(seconds=value.seconds, microseconds=value.nanos // 1000)
    if isinstance(value, datetime.datetime) and value.tzinfo is None:
        return value.replace(tzinfo=datetime.UTC)
    return value
