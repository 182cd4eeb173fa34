"""Conversions between batches and values: values and streams become batches, and batches become rows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import repeat
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from penstock.common.types import Row, RowKind, make_row
from penstock.engine.operators.operator import Operator, OperatorContext
from penstock.engine.operators.sources.source_operator import CHUNK_RECORDS, Budget, Reader, Source
from penstock.engine.records.columns import Columns
from penstock.engine.records.elements import Chunk, Receiver, Timestamps, Values
from penstock.engine.records.failures import USER_ERRORS
from penstock.errors import TypeMismatch
from penstock.table.logical.nodes import ROWTIME
from penstock.table.logical.nodes import Columns as PlanColumns
from penstock.table.operators.base.query_batches import UPDATE_BEFORE, kinds_of, make_batch
from penstock.table.operators.base.update_pairs import upserts, with_pairs_of_keys
from penstock.table.types import data_types as t
from penstock.table.types.arrow_forms import array_of, arrow_schema, values_of

_KINDS = tuple(RowKind)
_SAME_IN_STREAMS = (
    t.BooleanType,
    t.TinyIntType,
    t.SmallIntType,
    t.IntType,
    t.BigIntType,
    t.DoubleType,
    t.CharType,
    t.VarCharType,
    t.DateType,
    t.TimestampType,
)
"""Types whose values have the same form in a stream and in a column of Arrow."""


class BatchesSource(Source):
    """A source of batches that the program holds, with one subtask."""

    parallel = False

    def __init__(self, batch: pa.RecordBatch) -> None:
        self.whole = batch

    def reader(self, context: OperatorContext, position: Any = None) -> Reader:
        return _BatchesReader(self.whole, position or 0)


class _BatchesReader(Reader):
    def __init__(self, batch: pa.RecordBatch, start: int) -> None:
        self._batch = batch
        self._next = start

    def poll(self, output: Receiver, budget: Budget) -> int:
        part = self._batch.slice(self._next, min(CHUNK_RECORDS, budget.records))
        if part.num_rows:
            output.chunk(Chunk.of(Columns(part)))
        self._next += part.num_rows
        self.finished = self._next >= self._batch.num_rows
        return int(part.num_rows)

    def position(self) -> int:
        return self._next


def values_batch(columns: PlanColumns, rows: Sequence[Sequence[Any]]) -> pa.RecordBatch:
    """Return rows of a query as a batch."""
    by_column = list(zip(*rows, strict=True)) if rows else [()] * len(columns)
    arrays = [array_of(values, column.type) for values, column in zip(by_column, columns, strict=True)]
    return make_batch(arrays, arrow_schema(columns), len(rows))


class FromValues(Operator):
    """Converts the values of a stream to batches: rows by name or position, or single values."""

    wants_declared_form = True

    def __init__(
        self,
        columns: PlanColumns,
        metadata: Sequence[tuple[int, str]],
        changelog: bool,
        key: tuple[int, ...] = (),
        versions: bool = False,
    ) -> None:
        """Create an operator. `key` are the columns of the primary key.

        With `versions`, rows are versions of a table, so that each -U is dropped.
        """
        super().__init__()
        self.columns = columns
        self.metadata = dict(metadata)
        self.changelog = changelog
        self.key = key
        self.versions = versions

    def open(self, context: OperatorContext) -> None:
        super().open(context)
        self._schema = arrow_schema(self.columns, self.changelog)
        self._fields = [index for index in range(len(self.columns)) if index not in self.metadata]
        self._names = [self.columns[index].name for index in self._fields]

        self._single_raw = len(self._fields) == 1 and isinstance(self.columns[self._fields[0]].type, t.RawType)

    def chunk(self, chunk: Chunk) -> None:
        try:
            batch = None if chunk.columns is None or self.changelog else self._in_columns(chunk.columns)
        except USER_ERRORS as error:
            raise self.failure(error, []) from error
        if batch is None:
            super().chunk(chunk)
        else:
            self.emit_chunk(Chunk.of(Columns(batch)))

    def _in_columns(self, columns: Columns) -> pa.RecordBatch | None:
        """Return columns of a stream if they have the names and types of the table.

        Return None if values must be converted.
        """
        found, arrays = columns.batch.schema, list[pa.Array]()
        for index, field in enumerate(self._schema):
            if index in self.metadata:
                arrays.append(self._metadata(index, columns.timestamps(), len(columns)))
            elif found.get_field_index(field.name) < 0 or found.field(field.name).type != field.type:
                return None
            else:
                arrays.append(columns.batch.column(field.name))
        return make_batch(arrays, self._schema, len(columns))

    def records(self, values: Values, timestamps: Timestamps) -> None:
        try:
            batch = self._batch(values, timestamps)
        except USER_ERRORS as error:
            raise self.failure(error, []) from error
        batch = self._with_pairs(batch)
        if batch.num_rows:
            self.emit_chunk(Chunk.of(Columns(batch)))

    def _with_pairs(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Place the rows of an update side by side. A source may send them in any order."""
        if not self.changelog:
            return batch
        if self.versions:
            return batch.filter(pc.not_equal(kinds_of(batch), UPDATE_BEFORE))
        return with_pairs_of_keys(batch, self.key)

    def _batch(self, values: Values, timestamps: Timestamps) -> pa.RecordBatch:
        found = iter(zip(*self._rows(values), strict=True))
        arrays: list[pa.Array] = []
        for index, column in enumerate(self.columns):
            if index in self.metadata:
                arrays.append(self._metadata(index, timestamps, len(values)))
            else:
                arrays.append(array_of(next(found), column.type))
        if self.changelog:
            arrays.append(pa.array([_kind(value) for value in values], pa.int8()))
        elif any(isinstance(value, Row) and value.get_row_kind() is not RowKind.INSERT for value in values):
            raise TypeMismatch(
                "a row of a kind other than insert came into a table that accepts only inserts: "
                "use from_changelog_stream"
            )
        return make_batch(arrays, self._schema, len(values))

    def _rows(self, values: Values) -> Iterator[Sequence[Any]]:
        names, width = self._names, len(self._names)
        for value in values:
            if isinstance(value, Row) and not self._single_raw:
                known = value.get_field_names()
                by_name = known is not None and set(known) >= set(names)
                row: Sequence[Any] = value.get_fields_by_names(names) if by_name else list(value)
            elif isinstance(value, tuple | list) and not self._single_nested():
                row = value
            else:
                row = (value,)
            if len(row) != width:
                raise TypeMismatch(f"{value!r} has {len(row)} fields, and the table {width}: {', '.join(names)}")
            yield row

    def _single_nested(self) -> bool:
        return len(self._fields) == 1 and isinstance(self.columns[self._fields[0]].type, t.ArrayType | t.RawType)

    def _metadata(self, index: int, timestamps: Timestamps, count: int) -> pa.Array:
        key, declared = self.metadata[index], self.columns[index].type
        if key.lower() not in {"rowtime", "timestamp"}:
            raise TypeMismatch(f"a stream has no metadata '{key}'; only 'rowtime' is allowed")
        stamps = list(timestamps or repeat(None, count))
        return millis_column(pa.array(stamps, pa.int64()), declared)


def millis_column(stamps: pa.Array, declared: t.DataType) -> pa.Array:
    """Return milliseconds as a column of a type that can hold them."""
    if isinstance(declared, t.TimestampType | t.LocalZonedTimestampType):
        moments = stamps.cast(pa.timestamp("ms")).cast(pa.timestamp("us"))
        return moments.cast(pa.int64()).cast(array_of([], declared).type)
    return stamps.cast(array_of([], declared).type)


def millis_of(column: pa.Array) -> pa.Array:
    """Return a column of TIMESTAMP in whole milliseconds, rounded down."""
    if not pa.types.is_timestamp(column.type) or column.type.unit != "us":
        return column.cast(pa.int64())
    least = pc.min(column.cast(pa.int64())).as_py()
    if least is not None and least < 0:
        column = pc.floor_temporal(column, unit="millisecond")
    return pc.divide(column.cast(pa.int64()), 1000)


def _kind(value: Any) -> int:
    return int(value.get_row_kind().value) if isinstance(value, Row) else 0


class ToRows(Operator):
    """Converts batches to Rows with kinds. If there is a rowtime, it becomes the timestamp of the row."""

    def __init__(self, columns: PlanColumns, changelog: bool, stamped: bool = False, key: tuple[int, ...] = ()) -> None:
        """Create an operator. `key` is the key of a table with one row of each key, which receives +I, +U and -D."""
        super().__init__()
        self.columns = columns
        self.changelog = changelog
        self.stamped = stamped
        self.key = key

    def chunk(self, chunk: Chunk) -> None:
        assert chunk.columns is not None
        batch = chunk.columns.batch
        try:
            if self.key:
                batch = upserts(batch, self.key)
            if not batch.num_rows:
                return
            if self._stays_columns():
                self.emit_chunk(Chunk.of(self._as_columns(batch)))
            else:
                self.emit(self._rows(batch), self._stamps(batch))
        except USER_ERRORS as error:
            raise self.failure(error, []) from error

    def _stays_columns(self) -> bool:
        """Return True if a stream can use the columns as they are, so that rows are made only on demand."""
        names = [column.name for column in self.columns]
        plain = all(isinstance(column.type, _SAME_IN_STREAMS) for column in self.columns)
        return bool(names) and not self.changelog and plain and len(set(names)) == len(names)

    def _as_columns(self, batch: pa.RecordBatch) -> Columns:
        names = [column.name for column in self.columns]
        times = self._times(batch)
        return Columns(pa.RecordBatch.from_arrays(batch.columns[: len(names)], names), times)

    def _rows(self, batch: pa.RecordBatch) -> list[Row]:
        names = tuple(column.name for column in self.columns)
        columns = [values_of(batch.column(i), column.type) for i, column in enumerate(self.columns)]
        values = zip(*columns, strict=True) if columns else repeat((), batch.num_rows)
        if not self.changelog:
            return [make_row(names, row) for row in values]
        kinds = batch.column(len(self.columns)).to_pylist()
        return [make_row(names, row, _KINDS[kind]) for row, kind in zip(values, kinds, strict=True)]

    def _stamps(self, batch: pa.RecordBatch) -> Timestamps:
        times = self._times(batch)
        return None if times is None else list(times.to_pylist())

    def _times(self, batch: pa.RecordBatch) -> pa.Array | None:
        found = [index for index, column in enumerate(self.columns) if column.time == ROWTIME]
        return millis_of(batch.column(found[0])) if self.stamped and found else None
