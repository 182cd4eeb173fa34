"""Conversion of batches to DataFrames and back, and Spark's types for ours.

Spark has no time of day and no NULL type, and its intervals count in other units. A TIME is carried as microseconds and
an interval of days as milliseconds, both BIGINT. A column that is always NULL is carried as BOOLEAN. Rows without any
column get one column, whose values mean nothing.
"""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from penstock.spark.sql.refusal import Untranslatable
from penstock.table.operators.base.query_batches import make_batch

_NAMES: dict[pa.DataType, str] = {
    pa.bool_(): "BOOLEAN",
    pa.int8(): "TINYINT",
    pa.int16(): "SMALLINT",
    pa.int32(): "INT",
    pa.int64(): "BIGINT",
    pa.float32(): "FLOAT",
    pa.float64(): "DOUBLE",
    pa.string(): "STRING",
    pa.binary(): "BINARY",
    pa.date32(): "DATE",
    pa.timestamp("us"): "TIMESTAMP_NTZ",
    pa.timestamp("us", "UTC"): "TIMESTAMP",
}


def transport_type(kind: pa.DataType) -> pa.DataType:
    """Return the type in which a DataFrame carries a column of this type."""
    if pa.types.is_time64(kind) or pa.types.is_duration(kind):
        return pa.int64()
    return pa.bool_() if pa.types.is_null(kind) else kind


def spark_type(kind: pa.DataType) -> str:
    """Return Spark's name for the type of a carried column."""
    name = _NAMES.get(kind)
    if name is not None:
        return name
    if pa.types.is_decimal128(kind):
        return f"DECIMAL({kind.precision},{kind.scale})"
    if pa.types.is_map(kind):
        return f"MAP<{spark_type(kind.key_type)},{spark_type(kind.item_type)}>"
    if pa.types.is_list(kind):
        return f"ARRAY<{spark_type(kind.value_type)}>"
    if pa.types.is_struct(kind) and kind.num_fields and len({field.name for field in kind}) == kind.num_fields:
        return f"STRUCT<{','.join(f'{quote(field.name)}:{spark_type(field.type)}' for field in kind)}>"
    raise Untranslatable(f"Spark has no type for a column of Arrow's {kind}")


def quote(name: str) -> str:
    """Return a name as a quoted identifier of Spark SQL."""
    return "`" + name.replace("`", "``") + "`"


def declare_columns(names: Sequence[str], schema: pa.Schema) -> str:
    """Return the declaration of a DataFrame that carries batches of a schema under these column names."""
    kinds = [spark_type(transport_type(field.type)) for field in schema] or ["BOOLEAN"]
    return ", ".join(f"{name} {kind}" for name, kind in zip(names, kinds, strict=True))


def pack_batch(batch: pa.RecordBatch, names: Sequence[str]) -> pa.RecordBatch:
    """Return one of our batches in the form in which a DataFrame carries it."""
    arrays = [_pack(column) for column in batch.columns] or [pa.nulls(batch.num_rows, pa.bool_())]
    return pa.RecordBatch.from_arrays(arrays, names=list(names))


def _pack(column: pa.Array) -> pa.Array:
    aim = transport_type(column.type)
    return column if aim == column.type else column.cast(aim)


def unpack_batch(columns: Sequence[pa.Array], schema: pa.Schema, count: int) -> pa.RecordBatch:
    """Return carried columns as a batch of their original schema."""
    return make_batch(
        [_unpack(column, field.type) for column, field in zip(columns, schema, strict=True)], schema, count
    )


def _unpack(column: pa.Array, kind: pa.DataType) -> pa.Array:
    if pa.types.is_null(kind):
        return pa.nulls(len(column))
    return column if column.type == kind else column.cast(kind)
