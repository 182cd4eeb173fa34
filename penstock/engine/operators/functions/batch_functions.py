"""The operators of map_batches and filter_batches, whose functions get whole record batches.

They pass on the columns of a stream of columns as they are. A stream of rows needs a declared type, and becomes columns
first.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import compress
from typing import Any

from penstock.common.composite_types import RowTypeInfo
from penstock.common.typeinfo import TypeInformation
from penstock.engine.operators.function_operator import FunctionOperator
from penstock.engine.records.columns import Columns, RecordBatch
from penstock.engine.records.elements import Chunk
from penstock.engine.records.failures import USER_ERRORS
from penstock.errors import SchemaMismatch, TypeMismatch
from penstock.formats.format_libraries import pandas, pyarrow
from penstock.formats.pandas_frames import data_frame_of


@dataclass(frozen=True)
class BatchForm:
    """The form in which a function gets its batches."""

    input_type: TypeInformation | None
    """The declared type of the rows."""
    as_pandas: bool = False
    """True for a pandas.DataFrame in place of a pyarrow.RecordBatch."""
    event_time: str | None = None
    """The name of one more column, with the timestamps of the rows; None for no such column."""

    def columns_of(self, chunk: Chunk) -> Columns:
        """Return a chunk as columns. They have the declared types, if any are declared."""
        declared = self.input_type
        if chunk.columns is not None:
            return chunk.columns if not isinstance(declared, RowTypeInfo) else chunk.columns.in_types_of(declared)
        if not isinstance(declared, RowTypeInfo):
            found = "nothing is declared of them" if declared is None else f"they are {declared.notation}"
            raise TypeMismatch(
                f"only records declared as ROW or ROW_NAMED can become batches, and {found}: give the previous "
                "operator an output_type"
            )
        return Columns.of_rows(chunk.values, chunk.timestamps, declared)

    def batch_of(self, columns: Columns) -> Any:
        """Return the batch in the form for the function."""
        batch = columns.batch if self.event_time is None else _with_column(columns, self.event_time)
        return data_frame_of(batch) if self.as_pandas else batch


def _with_column(columns: Columns, name: str) -> RecordBatch:
    arrow, batch = pyarrow(), columns.batch
    if name in batch.schema.names:
        raise SchemaMismatch(f"event_time='{name}' is a column of the records already: choose another name")
    times = arrow.nulls(len(columns), arrow.int64()) if columns.times is None else columns.times
    schema = batch.schema.append(arrow.field(name, arrow.int64()))
    return arrow.RecordBatch.from_arrays([*batch.columns, times], schema=schema)


class FilterBatchesOperator(FunctionOperator):
    """Keeps the rows for which the function of the batch returns true, with their timestamps."""

    method = "filter_batches"

    def __init__(self, function: Any, form: BatchForm) -> None:
        super().__init__(function)
        self.form = form

    def chunk(self, chunk: Chunk) -> None:
        try:
            columns = self.form.columns_of(chunk)
            mask = _mask(self.call()(self.form.batch_of(columns)), len(columns))
            kept = _keep(chunk, mask)
        except USER_ERRORS as error:
            raise self.failure(error, []) from error
        if len(kept):
            self.emit_chunk(kept)


def _keep(chunk: Chunk, mask: Any) -> Chunk:
    """Return the records for which the mask is true, in the same form: columns or rows."""
    if chunk.columns is not None:
        return Chunk.of(chunk.columns.filter(mask))
    kept, stamps = mask.to_pylist(), chunk.timestamps
    return Chunk(list(compress(chunk.values, kept)), None if stamps is None else list(compress(stamps, kept)))


def _mask(answer: Any, rows: int) -> Any:
    arrow = pyarrow()
    mask = arrow.array(answer) if not isinstance(answer, arrow.Array | arrow.ChunkedArray) else answer
    if not arrow.types.is_boolean(mask.type) or len(mask) != rows:
        raise TypeMismatch(
            f"filter_batches needs one boolean for each of {rows} rows, and the function returned {len(mask)} of type "
            f"{mask.type}"
        )
    return mask.combine_chunks() if isinstance(mask, arrow.ChunkedArray) else mask


class MapBatchesOperator(FunctionOperator):
    """Replaces each batch by the batches that a function makes of it."""

    method = "map_batches"

    def __init__(self, function: Any, form: BatchForm, output_type: RowTypeInfo | None) -> None:
        super().__init__(function, output_type)
        self.form = form

    def chunk(self, chunk: Chunk) -> None:
        results = self._results(chunk)
        while True:
            try:
                result = next(results, None)
            except USER_ERRORS as error:
                raise self.failure(error, []) from error
            if result is None:
                return
            if len(result):
                self.emit_chunk(Chunk.of(result))

    def _results(self, chunk: Chunk) -> Iterator[Columns]:
        columns = self.form.columns_of(chunk)
        for batch in _batches(self.call()(self.form.batch_of(columns)), self.output_type, self.form.event_time):
            yield self._in_declared_types(self._with_timestamps(batch, columns))

    def _with_timestamps(self, batch: RecordBatch, before: Columns) -> Columns:
        """Give results their timestamps.

        The timestamps come from the column of event time, if there is one. Without it, a result with as many rows as
        the input gets the timestamps of the input; all rows of other results get the latest of these.
        """
        if self.form.event_time is not None:
            return _without_column(batch, self.form.event_time)
        if batch.num_rows == len(before) or before.times is None:
            return Columns(batch, before.times)
        latest = pyarrow("pyarrow.compute").max(before.times)
        return Columns(batch, pyarrow().repeat(latest, batch.num_rows))

    def _in_declared_types(self, columns: Columns) -> Columns:
        declared = self.output_type
        if declared is None:
            columns.require_rows()
            return columns
        assert isinstance(declared, RowTypeInfo)
        names, found = declared.get_field_names(), columns.batch.schema.names
        if sorted(found) != sorted(names):
            raise SchemaMismatch(
                f"the function returned columns {_list_names(found)}; output_type has {_list_names(names)}"
            )
        return Columns(columns.batch.select(names), columns.times).in_types_of(declared)


def _list_names(names: list[str]) -> str:
    return ", ".join(map(str, names)) or "of no name"


def _without_column(batch: RecordBatch, name: str) -> Columns:
    arrow = pyarrow()
    if batch.schema.names.count(name) != 1:
        raise SchemaMismatch(f"event_time='{name}': the function returned no such column, only {batch.schema.names}")
    index = batch.schema.get_field_index(name)
    times, rest = batch.column(index), [i for i in range(batch.num_columns) if i != index]
    if not arrow.types.is_integer(times.type) and not arrow.types.is_null(times.type):
        raise SchemaMismatch(f"event_time='{name}' holds milliseconds as whole numbers, not {times.type}")
    return Columns(batch.select(rest), times.cast(arrow.int64()))


# --- what functions return ---
def _batches(answer: Any, declared: TypeInformation | None, event_time: str | None) -> Iterator[RecordBatch]:
    """Iterate over the record batches in the answer of a function.

    The answer is a batch, a table, a DataFrame, None, or an iterable of several of these.
    """
    make = _converter_of(answer)
    if make is not None:
        yield from make(answer, declared, event_time)
    elif isinstance(answer, Iterable) and not isinstance(answer, (str, bytes, dict)):
        for part in answer:
            make = _converter_of(part)
            if make is None:
                raise _unknown(part, "yielded")
            yield from make(part, declared, event_time)
    else:
        raise _unknown(answer, "returned")


def _unknown(answer: Any, verb: str) -> TypeMismatch:
    return TypeMismatch(
        f"the function {verb} {answer if answer is None else type(answer).__name__!r}; allowed are a "
        "pyarrow.RecordBatch, a pyarrow.Table, a pandas.DataFrame, None for nothing, or an iterable of these"
    )


_Make = Callable[[Any, TypeInformation | None, str | None], Iterable[RecordBatch]]


def _converter_of(answer: Any) -> _Make | None:
    arrow = pyarrow()
    if answer is None:
        return lambda *_: ()
    if isinstance(answer, arrow.RecordBatch):
        return lambda batch, *_: (batch.replace_schema_metadata(None),)
    if isinstance(answer, arrow.Table):
        return lambda table, *_: table.replace_schema_metadata(None).combine_chunks().to_batches()
    return _from_pandas if type(answer).__name__ == "DataFrame" and isinstance(answer, pandas().DataFrame) else None


def _from_pandas(frame: Any, declared: TypeInformation | None, event_time: str | None) -> Iterable[RecordBatch]:
    """Convert a DataFrame to batches.

    Columns get the declared types if the frame has exactly the declared columns: pandas knows fewer types than Arrow.
    """
    from penstock.formats.columnar import schema_of

    arrow = pyarrow()
    schema = None
    if isinstance(declared, RowTypeInfo):
        fields = {field.name: field for field in schema_of(declared)}
        if event_time is not None:
            fields[event_time] = arrow.field(event_time, arrow.int64())
        if set(fields) == set(frame.columns):
            schema = arrow.schema([fields[name] for name in frame.columns])
    batch = arrow.RecordBatch.from_pandas(frame, schema=schema, preserve_index=False)
    return (batch.replace_schema_metadata(None),)
