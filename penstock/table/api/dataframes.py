"""Conversion between tables and pandas' DataFrames, through Arrow."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from penstock.base.arguments import invalid_argument
from penstock.common.types import Row
from penstock.errors import ValidationException
from penstock.formats.pandas_frames import data_frame_of
from penstock.table.api.value_types import row_type
from penstock.table.catalogs.resolved_schema import ResolvedSchema
from penstock.table.types import data_types as t
from penstock.table.types.arrow_forms import array_of, arrow_type, values_of

if TYPE_CHECKING:
    import pandas


def to_pandas(schema: ResolvedSchema, rows: Sequence[Row]) -> pandas.DataFrame:
    """Return rows as a DataFrame with the types of their columns."""
    columns = zip(*rows, strict=True) if rows else [()] * schema.get_column_count()
    arrays = [
        _in_its_unit(array_of(list(part), kind), kind) for part, kind in zip(columns, schema.types(), strict=True)
    ]
    return data_frame_of(pa.Table.from_arrays(arrays, names=schema.get_column_names()))


def _in_its_unit(column: pa.Array, kind: t.DataType) -> pa.Array:
    """Return a column of times in the unit of its precision: TIMESTAMP(3) has milliseconds."""
    if not isinstance(kind, (t.TimestampType, t.LocalZonedTimestampType)):
        return column
    unit = next(unit for unit, digits in _PRECISIONS.items() if kind.precision <= digits or unit == "us")
    return column.cast(pa.timestamp(unit, column.type.tz), safe=False)


def from_pandas(frame: pandas.DataFrame, schema: Any = None) -> tuple[t.RowType, list[tuple[Any, ...]]]:
    """Return the columns and rows of a DataFrame. The types are those of Arrow, unless a schema is given."""
    table = pa.Table.from_pandas(frame, preserve_index=False)
    found = t.RowType((field.name, of_arrow(field.type)) for field in table.schema)
    declared = found if schema is None else _apply_schema(found, schema)
    kinds = zip(table.columns, found.field_types(), declared.fields, strict=True)
    columns = [_column(column, kind, field) for column, kind, field in kinds]
    return declared, list(zip(*columns, strict=True))


def _apply_schema(found: t.RowType, schema: Any) -> t.RowType:
    """Return the columns of a DataFrame, with the names or types of a schema."""
    if isinstance(schema, t.DataType) or any(isinstance(field, t.RowField) for field in schema):
        declared = row_type([], schema)
        _check_count(len(declared), "fields", found)
        return declared
    parts = list(schema)
    if parts and all(isinstance(part, t.DataType) for part in parts):
        _check_count(len(parts), "types", found)
        return t.RowType(zip(found.field_names(), parts, strict=True))
    if not all(isinstance(part, str) for part in parts):
        allowed = "a ROW type, or a list of names or of types, one for each column"
        raise invalid_argument("TableEnvironment.from_pandas", "schema", schema, allowed)
    _check_count(len(parts), "names", found)
    return t.RowType(zip(parts, found.field_types(), strict=True))


def _check_count(count: int, what: str, found: t.RowType) -> None:
    if count != len(found):
        raise ValidationException(f"{count} {what} do not fit the {len(found)} columns of the DataFrame")


def _column(column: pa.ChunkedArray, found: t.DataType, field: t.RowField) -> list[Any]:
    """Return the values of a column in its declared type. Refuse a conversion that would lose something."""
    declared = field.data_type
    if found.nullable() != declared.nullable():
        try:
            column = column.cast(arrow_type(declared))
        except pa.ArrowException as error:
            raise ValidationException(f"column {field.name} does not fit {declared.as_sql()}: {error}") from error
    if column.null_count and not declared._nullable:
        raise ValidationException(f"column {field.name} has NULLs, but {declared.as_sql()} does not allow NULL")
    return values_of(column, declared)


_ARROW: dict[pa.DataType, t.DataType] = {
    pa.null(): t.DataTypes.STRING(),
    pa.bool_(): t.BooleanType(),
    pa.int8(): t.TinyIntType(),
    pa.int16(): t.SmallIntType(),
    pa.int32(): t.IntType(),
    pa.int64(): t.BigIntType(),
    pa.uint8(): t.SmallIntType(),
    pa.uint16(): t.IntType(),
    pa.uint32(): t.BigIntType(),
    pa.float16(): t.FloatType(),
    pa.float32(): t.FloatType(),
    pa.float64(): t.DoubleType(),
    pa.string(): t.DataTypes.STRING(),
    pa.large_string(): t.DataTypes.STRING(),
    pa.binary(): t.DataTypes.BYTES(),
    pa.large_binary(): t.DataTypes.BYTES(),
    pa.date32(): t.DateType(),
    pa.date64(): t.DateType(),
}
_PRECISIONS = {"s": 0, "ms": 3, "us": 6, "ns": 9}


def of_arrow(kind: pa.DataType) -> t.DataType:
    """Return the SQL type of a column of Arrow."""
    simple = _ARROW.get(kind)
    if simple is not None:
        return simple
    if pa.types.is_timestamp(kind):
        precise = t.LocalZonedTimestampType if kind.tz else t.TimestampType
        return precise(_PRECISIONS[kind.unit])
    if pa.types.is_time(kind):
        return t.TimeType(_PRECISIONS[kind.unit])
    if pa.types.is_decimal(kind):
        return t.DecimalType(kind.precision, kind.scale)
    if pa.types.is_map(kind):
        return t.MapType(of_arrow(kind.key_type), of_arrow(kind.item_type))
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return t.ArrayType(of_arrow(kind.value_type))
    if pa.types.is_struct(kind):
        return t.RowType((field.name, of_arrow(field.type)) for field in kind)
    if pa.types.is_dictionary(kind):
        return of_arrow(kind.value_type)
    if pa.types.is_duration(kind):
        return t.DayTimeIntervalType()
    raise ValidationException(f"a column of Arrow's {kind} has no SQL type; convert it first")
