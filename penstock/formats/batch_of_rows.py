"""Rows that were read as a record batch of Arrow, and stay one until somebody looks at them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, overload

from penstock.common.types import Row

RecordBatch = Any
"""A pyarrow.RecordBatch."""


class BatchOfRows(Sequence[Row]):
    """The rows of a batch."""

    def __init__(self, batch: RecordBatch, rows: Callable[[], list[Row]] | None = None) -> None:
        """`rows` makes them; without it they are what the types of the columns say."""
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
        """A row, or neighbouring rows, which are not copied."""
        if isinstance(index, slice):
            begin, end, _ = index.indices(len(self))
            rows = None if self._rows is None else lambda: self.rows()[begin:end]
            return BatchOfRows(self.batch.slice(begin, max(0, end - begin)), rows)
        return self.rows()[index]

    def rows(self) -> list[Row]:
        """All of them."""
        from penstock.formats.columnar import Projection

        if self._rows is not None:
            return self._rows()
        return Projection(self.batch.schema, None).rows(self.batch)
