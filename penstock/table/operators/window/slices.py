"""Slices: the pieces that windows are put together of, so that a row is aggregated once however many windows it is in.

A slice ends wherever some window starts or ends, so that it lies in a window as a whole or not at all. Slices do not
overlap: the end of one says which it is. All times are in milliseconds.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from penstock.table.operators.base.table_operator import TableOperator
from penstock.table.operators.base.update_pairs import with_pairs_of_rows
from penstock.table.operators.window.window_assignment import WindowSpec, instant_of, local_millis, moments

Times = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Slicing(WindowSpec):
    """How windows consist of slices: those of TUMBLE of one, and those of HOP and CUMULATE of several."""

    given: bool = False
    """Whether rows come with their windows, so that each of these is a slice, whatever the kind."""

    @property
    def shared(self) -> bool:
        """Whether a slice can belong to several windows."""
        return not self.given and self.kind != "TUMBLE"

    def slice_ends(self, times: Times) -> Times:
        """The end of the slice of each time."""
        if self.kind == "TUMBLE":
            return self._floor(times, self.size) + self.size
        if self.kind == "CUMULATE":
            start = self._floor(times, self.size)
            within = times - start
            ends: Times = start + np.minimum(within - within % self.slide + self.slide, self.size)
            return ends
        start = self._floor(times, self.slide)
        inner = self.size % self.slide
        return np.where(times - start < inner, start + inner, start + self.slide)

    def window_ends(self, ends: Times) -> tuple[Times, Times]:
        """By slice, the ends of the windows that it belongs to, in order; and which of these there are."""
        if not self.shared:
            return ends[:, None], np.ones((len(ends), 1), bool)
        if self.kind == "CUMULATE":
            start = self.starts(ends)
            steps = np.arange(1, -(-self.size // self.slide) + 1) * self.slide
            found = np.minimum(start[:, None] + steps, start[:, None] + self.size)
            return found, found >= ends[:, None]
        first = ends + (self.offset + self.size - ends) % self.slide
        found = first[:, None] + np.arange(-(-self.size // self.slide)) * self.slide
        return found, found < ends[:, None] + self.size

    def starts(self, ends: Times) -> Times:
        """The starts of windows that have these ends."""
        return self._floor(ends - 1, self.size) if self.kind == "CUMULATE" else ends - self.size

    def later_alike(self, ends: Times, over: Times) -> Times:
        """Slices by the end of another one that all later windows treat alike, once windows are over.

        Of CUMULATE these are all slices of a window that is over. `over` is sorted.
        """
        if not self.shared or self.kind != "CUMULATE":
            return ends
        starts = self.starts(over)
        latest = np.searchsorted(starts, self.starts(ends), "right") - 1
        found = over[np.maximum(latest, 0)]
        alike = (latest >= 0) & (self.starts(found) == self.starts(ends)) & (ends <= found)
        return np.where(alike, found, ends)


def last_moments(ends: Times, zone: str, shifted: bool) -> Times:
    """The last milliseconds of windows with these ends, as event time counts them."""
    if not shifted or zone == "UTC":
        return ends - 1
    lasts: Times = np.vectorize(lambda end: instant_of(int(end), zone, True) - 1, otypes=["int64"])(ends)
    return lasts


class SliceTableOperator(TableOperator):
    """Stands for a window table below an aggregate: a row comes once, and its three bounds all are the same time.

    Rows without a time are dropped.
    """

    def __init__(self, end_of: Callable[[Times], Times], time: int | None, schema: pa.Schema, changelog: bool) -> None:
        """`time` is the column, None for processing time; `end_of` finds the bound of each time."""
        super().__init__(schema)
        self.end_of = end_of
        self.time = time
        self.changelog = changelog
        self.zone = "UTC"

    def batch(self, batch: pa.RecordBatch) -> None:
        if self.time is None:
            times = np.full(batch.num_rows, self.context.clock.now, "int64")
        else:
            if batch.column(self.time).null_count:
                valid = batch.column(self.time).is_valid()
                batch = batch.filter(valid)
                batch = with_pairs_of_rows(batch, np.flatnonzero(valid)) if self.changelog else batch
            times = local_millis(batch.column(self.time), self.zone).to_numpy(zero_copy_only=False)
        ends = self.end_of(times)
        width = len(self.schema) - 3 - (1 if self.changelog else 0)
        kinds = [self.schema.field(width + number).type for number in range(3)]
        made = {kind: moments(ends, kind) for kind in kinds}
        arrays = [*batch.columns[:width], *(made[kind] for kind in kinds), *batch.columns[width:]]
        self.send(pa.RecordBatch.from_arrays(arrays, schema=self.schema))


def unchanged(times: Times) -> Times:
    """The bound of a row whose window nobody knows yet, as in a session: its own time."""
    return times
