"""Rows that were read as a record batch of Arrow. They stay a batch until a row is needed."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from typing import Any, overload

from penstock.common.composite_types import RowTypeInfo
from penstock.common.types import Row, rows_from_columns
from penstock.formats.format_libraries import pyarrow

RecordBatch = Any
"""A pyarrow.RecordBatch."""


class BatchOfRows(Sequence[Row]):
    """The rows of a batch."""

    timestamps: Sequence[int | None] | None = None
    """Event times of the rows, for writers."""

    def __init__(self, batch: RecordBatch, rows: Callable[[], list[Row]] | None = None) -> None:
        """Take `rows`, a function that makes the rows. Without it, the types of the columns determine them."""
        self.batch = batch
        self._rows = rows

    def __len__(self) -> int:
        return int(self.batch.num_rows)

    def __iter__(self) -> Iterator[Row]:
        return iter(self.rows())

    @overload
    def __getitem__(self, index: int) -> Row: ...
    @overload
    def __getitem__(self, index: slice) -> BatchOfRows: ...
    def __getitem__(self, index: int | slice) -> Row | BatchOfRows:
        """Return a row, or neighbouring rows, which are not copied."""
        if isinstance(index, slice):
            begin, end, _ = index.indices(len(self))
            rows = None if self._rows is None else lambda: self.rows()[begin:end]
            return BatchOfRows(self.batch.slice(begin, max(0, end - begin)), rows)
        return self.rows()[index]

    def rows(self) -> list[Row]:
        """Return all rows."""
        from penstock.formats.columnar import Projection

        if self._rows is not None:
            return self._rows()
        return Projection(self.batch.schema, None).rows(self.batch)


class GatheredRows(BatchOfRows):
    """Rows whose fields have been gathered in lists. The batch and the Rows are made only on demand."""

    def __init__(self, row_type: RowTypeInfo, columns: Sequence[Sequence[Any]]) -> None:
        self.row_type = row_type
        self._columns = columns

    def __len__(self) -> int:
        return len(self._columns[0])

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return GatheredRows(self.row_type, [column[index] for column in self._columns])
        return self.rows()[index]

    @cached_property
    def batch(self) -> RecordBatch:
        from penstock.formats.arrow_types import convert_column, to_arrow
        from penstock.formats.columnar import schema_of

        arrow, schema = pyarrow(), schema_of(self.row_type)
        arrays = [
            arrow.array(convert_column(column, to_arrow(declared)), field.type)
            for column, declared, field in zip(self._columns, self.row_type.field_types, schema, strict=True)
        ]
        return arrow.RecordBatch.from_arrays(arrays, schema=schema)

    def rows(self) -> list[Row]:
        return rows_from_columns((tuple(self.row_type.get_field_names()), None, self._columns))
