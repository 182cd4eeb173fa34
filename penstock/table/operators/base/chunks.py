"""Rows in columns that wait for the ends of their windows, beside the state table that checkpoints hold them in."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.table.operators.window.slices import Times

Smaller = Callable[[pa.RecordBatch], pa.RecordBatch]
"""Makes fewer rows of some, which say the same."""
MOST_CHUNKS = 32
LEAST_ROWS = 1 << 16


class Chunks:
    """Batches of one form: those that the state table has as well, and those that are fresh since the last snapshot.

    The first column is a time in milliseconds: the end of the row's window, or of its slice.
    """

    def __init__(self, schema: pa.Schema, smaller: Smaller | None = None) -> None:
        self.schema = schema
        self._smaller = smaller
        self._settled: list[pa.RecordBatch] = []
        self.fresh: list[pa.RecordBatch] = []
        self._small = 0
        """How many rows the fresh ones had after they were made fewer."""

    def add(self, batch: pa.RecordBatch) -> None:
        """Take rows. Now and then what has come is made smaller, so that its size follows the number of groups."""
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
        """Put the last batches together, as long as they are small beside what came after them."""
        rows, first = 0, len(self.fresh)
        while first and self.fresh[first - 1].num_rows <= 2 * rows + 1024:
            first -= 1
            rows += self.fresh[first].num_rows
        self.fresh[first:] = [self._together(self.fresh[first:])]

    def settle(self, away: Times) -> pa.RecordBatch:
        """What is fresh, made as small as it can be; it counts as held by the table from now on.

        Rows with one of the times that are away are in the table alone then.
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
        """Take rows that the table holds."""
        self._settled.append(batch)

    def leave(self) -> None:
        """Forget the rows that the table holds."""
        self._settled.clear()

    @property
    def nbytes(self) -> int:
        return sum(chunk.nbytes for chunk in (*self._settled, *self.fresh))

    def take(self, ends: Times, keep: Times) -> pa.RecordBatch:
        """All rows with one of these ends; only those whose ends are to be kept stay. Both are sorted."""
        taken = []
        for chunks in (self._settled, self.fresh):
            for index, chunk in enumerate(chunks):
                own = times_of(chunk)
                taken.append(chunk.filter(pa.array(among(own, ends))))
                chunks[index] = chunk.filter(pa.array(among(own, keep)))
            chunks[:] = [chunk for chunk in chunks if chunk.num_rows]
        return self._together(taken)

    def rename(self, renamed: Callable[[Times], Times]) -> None:
        """Change the times of rows, and make fewer of those that have become equal."""
        for chunks in (self._settled, self.fresh):
            for index, chunk in enumerate(chunks):
                chunks[index] = chunk.set_column(0, self.schema.field(0), pa.array(renamed(times_of(chunk))))
            if chunks and self._smaller is not None:
                chunks[:] = [self._smaller(self._together(chunks))]

    def ends(self) -> Times:
        """The different times, sorted."""
        return different([chunk.column(0) for chunk in (*self._settled, *self.fresh)])

    def _together(self, chunks: list[pa.RecordBatch]) -> pa.RecordBatch:
        if len(chunks) == 1:
            return chunks[0]
        return pa.concat_batches(chunks) if chunks else empty(self.schema)


def empty(schema: pa.Schema) -> pa.RecordBatch:
    """No rows. Names of columns may repeat."""
    return pa.RecordBatch.from_arrays([pa.array([], field.type) for field in schema], schema=schema)


def different(columns: Sequence[pa.Array]) -> Times:
    """The different times in some columns, sorted."""
    found = [pc.unique(column).to_numpy(zero_copy_only=False) for column in columns]
    return np.unique(np.concatenate(found)) if found else np.empty(0, "int64")


def times_of(chunk: pa.RecordBatch) -> Times:
    """The first column."""
    times: Times = chunk.column(0).to_numpy(zero_copy_only=False)
    return times


def among(values: Times, wanted: Times) -> Times:
    """For each value whether it is one of the wanted ones, which are sorted."""
    if not len(wanted):
        return np.zeros(len(values), bool)
    found: Times = wanted[np.minimum(np.searchsorted(wanted, values), len(wanted) - 1)] == values
    return found
