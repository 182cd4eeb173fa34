"""The conversion between the types of tables and the types of streams."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from penstock.common.basic_types import (
    BigDecimalTypeInfo,
    BooleanTypeInfo,
    DateTypeInfo,
    DoubleTypeInfo,
    FloatTypeInfo,
    InstantTypeInfo,
    IntegerTypeInfo,
    TimestampTypeInfo,
    TimeTypeInfo,
)
from penstock.common.composite_types import ByteArrayTypeInfo, ListTypeInfo, MapTypeInfo, RowTypeInfo, TupleTypeInfo
from penstock.common.type_information import TypeInformation
from penstock.common.typeinfo import BasicTypeInfo, Types
from penstock.formats.decimal_values import DECIMAL, DecimalTypeInfo
from penstock.table.types import data_types as t

_SIMPLE: dict[type[t.DataType], Callable[[], TypeInformation]] = {
    t.BooleanType: Types.BOOLEAN,
    t.TinyIntType: Types.BYTE,
    t.SmallIntType: Types.SHORT,
    t.IntType: Types.INT,
    t.BigIntType: Types.LONG,
    t.FloatType: Types.FLOAT,
    t.DoubleType: Types.DOUBLE,
    t.CharType: Types.STRING,
    t.VarCharType: Types.STRING,
    t.BinaryType: lambda: Types.PRIMITIVE_ARRAY(Types.BYTE()),
    t.VarBinaryType: lambda: Types.PRIMITIVE_ARRAY(Types.BYTE()),
    t.DateType: Types.SQL_DATE,
    t.TimeType: Types.SQL_TIME,
    t.TimestampType: Types.SQL_TIMESTAMP,
    t.LocalZonedTimestampType: Types.INSTANT,
    t.DayTimeIntervalType: Types.LONG,
    t.YearMonthIntervalType: Types.INT,
}


def type_information(declared: t.DataType) -> TypeInformation:
    """Return the corresponding type of streams and formats."""
    simple = _SIMPLE.get(type(declared))
    if simple is not None:
        return simple()
    match declared:
        case t.DecimalType():
            return DECIMAL(declared.precision, declared.scale)
        case t.ArrayType():
            return Types.OBJECT_ARRAY(type_information(declared.element_type))
        case t.MultisetType():
            return Types.MAP(type_information(declared.element_type), Types.INT())
        case t.MapType():
            return Types.MAP(type_information(declared.key_type), type_information(declared.value_type))
        case t.RowType():
            return Types.ROW_NAMED(declared.field_names(), [type_information(kind) for kind in declared.field_types()])
    return Types.PICKLED_BYTE_ARRAY()


_INTEGERS: dict[str, t.DataType] = {
    "b": t.TinyIntType(),
    "h": t.SmallIntType(),
    "i": t.IntType(),
    "q": t.BigIntType(),
}
_TYPES: tuple[tuple[type, Callable[[Any], t.DataType]], ...] = (
    (BooleanTypeInfo, lambda declared: t.BooleanType()),
    (IntegerTypeInfo, lambda declared: _INTEGERS[declared.typecode]),
    (FloatTypeInfo, lambda declared: t.FloatType()),
    (DoubleTypeInfo, lambda declared: t.DoubleType()),
    (DecimalTypeInfo, lambda declared: t.DecimalType(declared.precision, declared.scale)),
    (BigDecimalTypeInfo, lambda declared: t.DecimalType(38, 18)),
    (InstantTypeInfo, lambda declared: t.LocalZonedTimestampType(9)),
    (DateTypeInfo, lambda declared: t.DateType()),
    (TimeTypeInfo, lambda declared: t.TimeType(0)),
    (TimestampTypeInfo, lambda declared: t.TimestampType(9)),
    (ByteArrayTypeInfo, lambda declared: t.DataTypes.BYTES()),
    (ListTypeInfo, lambda declared: t.ArrayType(data_type(declared.elem_type))),
    (MapTypeInfo, lambda declared: t.MapType(data_type(declared.key_type), data_type(declared.value_type))),
    (
        RowTypeInfo,
        lambda declared: t.RowType(zip(declared.get_field_names(), map(data_type, declared.field_types), strict=True)),
    ),
    (
        TupleTypeInfo,
        lambda declared: t.RowType((f"f{i}", data_type(part)) for i, part in enumerate(declared.field_types)),
    ),
    (BasicTypeInfo, lambda declared: t.DecimalType(38, 0) if declared.python_class is int else t.DataTypes.STRING()),
)


def data_type(declared: TypeInformation) -> t.DataType:
    """Return the type of a column that holds a stream's values."""
    for kind, make in _TYPES:
        if isinstance(declared, kind):
            return make(declared)
    raise TypeError(f"values of {declared.notation} cannot be a column of a table; declare the type of the stream")
