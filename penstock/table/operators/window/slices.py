"""Slices: the pieces of windows. A row is aggregated into one slice, however many windows it belongs to.

A slice ends wherever a window starts or ends, so that it is either completely inside a window or outside. Slices do not
overlap, so the end of a slice identifies it. All times are in milliseconds.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from penstock.table.logical.kinds import WindowKind
from penstock.table.operators.base.output_form import OutputForm
from penstock.table.operators.base.table_operator import TableOperator
from penstock.table.operators.base.update_pairs import with_pairs_of_rows
from penstock.table.operators.window.window_assignment import WindowSpec, instant_of, local_millis, moments

Times = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Slicing(WindowSpec):
    """The slices of windows. A window of TUMBLE is one slice, and a window of HOP or CUMULATE has several."""

    given: bool = False
    """True if rows come with their windows, so that each window is a slice, whatever its kind."""

    @property
    def is_shared(self) -> bool:
        """Return True if a slice can belong to several windows."""
        return not self.given and self.kind != WindowKind.TUMBLE

    def slice_ends(self, times: Times) -> Times:
        """Return the end of the slice of each time."""
        if self.kind == WindowKind.TUMBLE:
            return self._floor(times, self.size) + self.size
        if self.kind == WindowKind.CUMULATE:
            start = self._floor(times, self.size)
            within = times - start
            ends: Times = start + np.minimum(within - within % self.slide + self.slide, self.size)
            return ends
        start = self._floor(times, self.slide)
        inner = self.size % self.slide
        return np.where(times - start < inner, start + inner, start + self.slide)

    def window_ends(self, ends: Times) -> tuple[Times, Times]:
        """Return for each slice the possible ends of its windows, in order, and a mask of those that exist."""
        if not self.is_shared:
            return ends[:, None], np.ones((len(ends), 1), bool)
        if self.kind == WindowKind.CUMULATE:
            start = self.starts(ends)
            steps = np.arange(1, -(-self.size // self.slide) + 1) * self.slide
            found = np.minimum(start[:, None] + steps, start[:, None] + self.size)
            return found, found >= ends[:, None]
        first = ends + (self.offset + self.size - ends) % self.slide
        found = first[:, None] + np.arange(-(-self.size // self.slide)) * self.slide
        return found, found < ends[:, None] + self.size

    def starts(self, ends: Times) -> Times:
        """Return the starts of windows with these ends."""
        return self._floor(ends - 1, self.size) if self.kind == WindowKind.CUMULATE else ends - self.size

    def later_alike(self, ends: Times, over: Times) -> Times:
        """Replace the ends of slices that all later windows treat alike by one common end.

        With CUMULATE, these are all slices of a window that is over. `over` has the sorted ends of windows that are
        over.
        """
        if not self.is_shared or self.kind != WindowKind.CUMULATE:
            return ends
        starts = self.starts(over)
        latest = np.searchsorted(starts, self.starts(ends), "right") - 1
        found = over[np.maximum(latest, 0)]
        alike = (latest >= 0) & (self.starts(found) == self.starts(ends)) & (ends <= found)
        return np.where(alike, found, ends)


def last_moments(ends: Times, zone: str, shifted: bool) -> Times:
    """Return the last milliseconds of windows with these ends, in event time."""
    if not shifted or zone == "UTC":
        return ends - 1
    lasts: Times = np.vectorize(lambda end: instant_of(int(end), zone, True) - 1, otypes=["int64"])(ends)
    return lasts


class SliceTableOperator(TableOperator):
    """Replaces a window table before an aggregate: a row is sent once, and its three bounds are all the same time.

    Rows without a time are dropped.
    """

    def __init__(
        self,
        end_of: Callable[[Times], Times],
        time: int | None,
        form: OutputForm,
        changelog: bool,
        zone: str = "UTC",
    ) -> None:
        """Create an operator.

        `time` is the column, or None for processing time. `end_of` returns the bound of each time.
        """
        super().__init__(form)
        self.end_of = end_of
        self.time = time
        self.changelog = changelog
        self.zone = zone

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


def same_times(times: Times) -> Times:
    """Return the times themselves, as bounds of rows whose window is not known yet, as in a session."""
    return times
