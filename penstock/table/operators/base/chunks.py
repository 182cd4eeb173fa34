"""Columns of rows that wait for the ends of their windows. Checkpoints hold them in the state table."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.table.operators.window.slices import Times

Smaller = Callable[[pa.RecordBatch], pa.RecordBatch]
"""A function that returns fewer rows with the same effect."""
MOST_CHUNKS = 32
LEAST_ROWS = 1 << 16


class Chunks:
    """Batches of one schema. Settled batches are also in the state table, fresh ones came after the last snapshot.

    The first column is a time in milliseconds: the end of the row's window, or of its slice.
    """

    def __init__(self, schema: pa.Schema, smaller: Smaller | None = None) -> None:
        self.schema = schema
        self._smaller = smaller
        self._settled: list[pa.RecordBatch] = []
        self.fresh: list[pa.RecordBatch] = []
        self._small = 0
        """Number of fresh rows after their last reduction."""

    def add(self, batch: pa.RecordBatch) -> None:
        """Add rows. Reduce the fresh ones from time to time, so that their number follows the number of groups."""
        if not batch.num_rows:
            return
        self.fresh.append(batch)
        if len(self.fresh) > MOST_CHUNKS:
            self._merge_small()
        rows = sum(one.num_rows for one in self.fresh)
        if self._smaller is not None and rows > 2 * self._small + LEAST_ROWS:
            self.fresh = [self._smaller(self._together(self.fresh))]
            self._small = self.fresh[0].num_rows

    def _merge_small(self) -> None:
        """Concatenate the last batches, as long as they are small compared with the batches after them."""
        rows, first = 0, len(self.fresh)
        while first and self.fresh[first - 1].num_rows <= 2 * rows + 1024:
            first -= 1
            rows += self.fresh[first].num_rows
        self.fresh[first:] = [self._together(self.fresh[first:])]

    def settle(self, away: Times) -> pa.RecordBatch:
        """Reduce the fresh rows, mark them as settled and return them.

        Rows whose time is in `away` are then stored only in the table.
        """
        fresh = self._together(self.fresh)
        if self._smaller is not None and len(self.fresh) != 1:
            fresh = self._smaller(fresh)
        self._settled.append(fresh.filter(pa.array(~among(times_of(fresh), away))) if len(away) else fresh)
        if len(self._settled) > MOST_CHUNKS:
            whole = self._together(self._settled)
            self._settled = [whole if self._smaller is None else self._smaller(whole)]
        self.fresh, self._small = [], 0
        return fresh

    def restore(self, batch: pa.RecordBatch) -> None:
        """Add rows that are in the table."""
        self._settled.append(batch)

    def leave(self) -> None:
        """Forget all settled rows. They remain in the table."""
        self._settled.clear()

    @property
    def nbytes(self) -> int:
        """The size of all rows in memory, in bytes."""
        return sum(chunk.nbytes for chunk in (*self._settled, *self.fresh))

    def take(self, ends: Times, keep: Times) -> pa.RecordBatch:
        """Return all rows with one of `ends`. Of all rows, only those with a time in `keep` remain. Both are sorted."""
        taken = []
        for chunks in (self._settled, self.fresh):
            for index, chunk in enumerate(chunks):
                own = times_of(chunk)
                taken.append(chunk.filter(pa.array(among(own, ends))))
                chunks[index] = chunk.filter(pa.array(among(own, keep)))
            chunks[:] = [chunk for chunk in chunks if chunk.num_rows]
        return self._together(taken)

    def rename(self, renamed: Callable[[Times], Times]) -> None:
        """Change the times of rows, and merge those that have become equal."""
        for chunks in (self._settled, self.fresh):
            for index, chunk in enumerate(chunks):
                chunks[index] = chunk.set_column(0, self.schema.field(0), pa.array(renamed(times_of(chunk))))
            if chunks and self._smaller is not None:
                chunks[:] = [self._smaller(self._together(chunks))]

    def ends(self) -> Times:
        """Return the different times, sorted."""
        return different([chunk.column(0) for chunk in (*self._settled, *self.fresh)])

    def _together(self, chunks: list[pa.RecordBatch]) -> pa.RecordBatch:
        if len(chunks) == 1:
            return chunks[0]
        return pa.concat_batches(chunks) if chunks else empty(self.schema)


def empty(schema: pa.Schema) -> pa.RecordBatch:
    """Return a batch without rows. Names of columns may repeat."""
    return pa.RecordBatch.from_arrays([pa.array([], field.type) for field in schema], schema=schema)


def different(columns: Sequence[pa.Array]) -> Times:
    """Return the different times in some columns, sorted."""
    found = [pc.unique(column).to_numpy(zero_copy_only=False) for column in columns]
    return np.unique(np.concatenate(found)) if found else np.empty(0, "int64")


def times_of(chunk: pa.RecordBatch) -> Times:
    """Return the first column."""
    times: Times = chunk.column(0).to_numpy(zero_copy_only=False)
    return times


def among(values: Times, wanted: Times) -> Times:
    """Return for each value whether it is in `wanted`, which is sorted."""
    if not len(wanted):
        return np.zeros(len(values), bool)
    found: Times = wanted[np.minimum(np.searchsorted(wanted, values), len(wanted) - 1)] == values
    return found
