"""Batches of a query: rows as columns. A changelog has a last column for the kind of change."""

from __future__ import annotations

from collections.abc import Sequence
from operator import itemgetter
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from penstock.engine.records.columns import state_values
from penstock.table.types.arrow_forms import KIND

INSERT, UPDATE_BEFORE, UPDATE_AFTER, DELETE = range(4)
"""The values of RowKind in the kind column."""
Held = tuple[Any, ...]
"""A row as state holds it: plain Python values that can be hashed. Moments are numbers."""

_MOMENTS = (pa.types.is_timestamp, pa.types.is_time64, pa.types.is_duration)
KIND_FIELD = pa.field(KIND, pa.int8())


# --- between columns and state ---
def column_of(values: Sequence[Any], kind: pa.DataType) -> pa.Array:
    """Return a column of values that state held."""
    if pa.types.is_date32(kind):
        return pa.array(values, pa.int32()).cast(kind)
    if any(is_moment(kind) for is_moment in _MOMENTS):
        return pa.array(values, pa.int64()).cast(kind)
    return pa.array(values, kind)


def state_rows(batch: pa.RecordBatch, positions: Sequence[int] | None = None) -> list[Held]:
    """Return the rows of a batch, or some of their columns, as state holds them."""
    wanted = range(batch.num_columns) if positions is None else positions
    columns = [state_values(batch.column(position)) for position in wanted]
    return list(zip(*columns, strict=True)) if columns else [()] * batch.num_rows


def batch_of(rows: Sequence[Held], schema: pa.Schema) -> pa.RecordBatch:
    """Return a batch of rows that state held, with kinds if the schema has them."""
    arrays = [column_of(list(map(itemgetter(index), rows)), field.type) for index, field in enumerate(schema)]
    return make_batch(arrays, schema, len(rows))


def make_batch(arrays: Sequence[pa.Array], schema: pa.Schema, count: int) -> pa.RecordBatch:
    """Return a batch of columns. A batch without columns still has `count` rows."""
    if arrays:
        return pa.RecordBatch.from_arrays(list(arrays), schema=schema)
    return pa.RecordBatch.from_struct_array(pa.array([{}] * count, pa.struct([])))


# --- kinds of change ---
def kinds_of(batch: pa.RecordBatch) -> pa.Array:
    """Return the kinds of the rows of a changelog."""
    return batch.column(batch.num_columns - 1)


def adds(batch: pa.RecordBatch) -> pa.Array:
    """Return for each row of a changelog whether it adds a row (+I, +U) or retracts one (-U, -D)."""
    return pc.is_in(kinds_of(batch), value_set=_ADDING)


_ADDING = pa.array([INSERT, UPDATE_AFTER], pa.int8())


def inserts(count: int) -> pa.Array:
    """Return kinds of rows that are all inserts."""
    return pa.repeat(pa.scalar(INSERT, pa.int8()), count)


def concatenate(batches: Sequence[pa.RecordBatch]) -> pa.RecordBatch:
    """Concatenate batches of one schema. The names of columns are those of the first batch."""
    if len(batches) == 1:
        return batches[0]
    schema = batches[0].schema
    return pa.concat_batches(
        [batch if batch.schema.equals(schema) else batch.rename_columns(schema.names) for batch in batches]
    )
