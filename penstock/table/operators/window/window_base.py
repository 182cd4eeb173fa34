"""The base of operators that keep columns until windows end, and then process all of them at once."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from penstock.engine.operators.operator import OperatorContext
from penstock.engine.records.elements import MIN_TIMESTAMP
from penstock.engine.snapshots.snapshot_parts import SubtaskSnapshot
from penstock.engine.state.tables import HeapTables, Layout
from penstock.table.logical.kinds import WindowKind
from penstock.table.operators.base.chunks import Chunks, among, different, times_of
from penstock.table.operators.base.query_state import Store, store
from penstock.table.operators.base.table_operator import KeyedTableOperator
from penstock.table.operators.window.slices import Slicing, Times, last_moments

MOST_BYTES = 64 << 20
"""Maximum size, in bytes, of the columns in memory of one operator if tables are on disk.

Further rows wait in the table.
"""


@dataclass
class Due:
    """The slices of an operator, and the windows that end now."""

    ends: Times
    """The slices in which rows wait, in order. A window without slices counts as one slice."""
    windows: Times
    """For each slice, the ends of its windows, see `Slicing.window_ends`."""
    now: Times
    """A mask of the windows that end now."""
    kept: Times
    """The slices that other windows still need."""

    def slices_to_take(self) -> Times:
        """Return the slices of the windows that end now."""
        return self.ends[self.now.any(axis=1)]


class WindowOperator(KeyedTableOperator, ABC):
    """Keeps rows in columns until their windows end. The first column is the end of a slice. Late rows are dropped.

    The state table gets the rows by key and window only when a snapshot is taken, so that rows that come and go between
    two snapshots never become an entry. Tables on disk also hold rows that are too much for memory. A subclass writes
    fresh rows in `write`, and puts entries back into columns in `put_back`.
    """

    zone = "UTC"
    shifted = False
    """True if bounds are times on the zone's clock."""
    processing_time = False
    slicing = Slicing(WindowKind.TUMBLE, 1, given=True)
    stores: tuple[Chunks, ...]

    def open(self, context: OperatorContext) -> None:
        super().open(context)
        assert self.keyed is not None
        panes = store(self.keyed, "panes", layout=Layout.PANE)
        assert isinstance(panes, Store)
        self.panes = panes
        for queue in (self.timers.event_time, self.timers.processing_time):
            for timer in list(queue.timers()):  # earlier versions had one for each key and window
                queue.delete(*timer)
        self.addresses: dict[int, list[Any]] = {}
        """The addresses of the table, by the end of the slice."""
        self.complete: list[pa.RecordBatch] = []
        self._late = context.metrics.counter("numLateRecordsDropped")
        self._next: int | None = None
        """The time when the next window ends."""
        self._closed = MIN_TIMESTAMP
        """Time, in milliseconds, up to which windows have been sent."""
        self._away: set[int] = set()
        """The ends of slices that are only in the table."""
        if context.restored is not None and not context.restored.drained:
            closed = [own.get("closed", MIN_TIMESTAMP) for own in context.restored.all_own()]
            self._closed = max(closed, default=MIN_TIMESTAMP)

    # --- state ---
    @abstractmethod
    def write(self) -> None:
        """Write fresh rows to the table."""

    @abstractmethod
    def put_back(self, entries: list[tuple[Any, Any]]) -> None:
        """Put entries of the table back into columns."""

    @abstractmethod
    def end_of(self, address: Any, value: Any) -> int:
        """Return the end of the slice of an entry of the table."""

    def restore(self) -> None:
        """Find the entries of the table. A subclass calls it at the end of `open`."""
        for address, value in self.panes.items():
            self.note(self.end_of(address, value), address)
        self._away = set(self.addresses)
        if not self._on_disk():
            self._fetch(self._ends())
        found, there = self.slicing.window_ends(self._ends())
        lasts = self.last_moments(found)
        self._expect(lasts[there & (lasts > self._closed)] if self.slicing.is_shared else lasts[there])

    def note(self, end: int, address: Any) -> None:
        """Remember an entry of the table."""
        self.addresses.setdefault(end, []).append(address)

    def away(self) -> Times:
        """Return the sorted ends of slices that are only in the table."""
        return np.array(sorted(self._away), "int64")

    def _fetch(self, ends: Times) -> None:
        """Read the slices that are only in the table."""
        wanted = self._away.intersection(ends.tolist()) if self._away else set()
        addresses = [address for end in sorted(wanted) for address in self.addresses[end]]
        self._away -= wanted
        if addresses:
            self.put_back(list(zip(addresses, self.panes.get_all(addresses), strict=True)))

    def snapshot(self, into: SubtaskSnapshot) -> None:
        self.write()
        into.own("closed", self._closed)
        super().snapshot(into)

    def end_epoch(self) -> None:
        if self._on_disk() and sum(chunks.nbytes for chunks in self.stores) > MOST_BYTES:
            self.do(self._leave)
        super().end_epoch()

    def _leave(self) -> None:
        self.write()
        self._away = set(self.addresses)
        for chunks in self.stores:
            chunks.leave()

    def _on_disk(self) -> bool:
        return not isinstance(self.context.tables, HeapTables)

    # --- input ---
    def in_time(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Return the rows with a window that is not over. The first column is the end of the slice."""
        ends = different([batch.column(0)])
        found, there = self.slicing.window_ends(ends)
        lasts = self.last_moments(found)
        ahead = there & (lasts > self._over_until())
        self._expect(lasts[ahead])
        alive = ahead.any(axis=1)
        if alive.all():
            return batch
        times = times_of(batch)
        self._late.inc(int(among(times, ends[there.any(axis=1) & ~alive]).sum()))
        return batch.filter(pa.array(among(times, ends[alive])))

    def _over_until(self) -> int:
        if not self.processing_time:
            return self.current_watermark
        return self._closed if self.slicing.is_shared else MIN_TIMESTAMP

    def last_moments(self, ends: Times) -> Times:
        """Return the last milliseconds of windows with these ends, in event time."""
        return last_moments(ends, self.zone, self.shifted)

    def _expect(self, lasts: Times) -> None:
        if len(lasts):
            first = int(lasts.min())
            self._next = first if self._next is None else min(first, self._next)

    # --- time ---
    def watermark(self, timestamp: int) -> None:
        self.current_watermark = self.timers.watermark = timestamp
        if not self.processing_time:
            self.do(self._close, timestamp)
        self.output.watermark(timestamp)

    def advance_processing_time(self, now: int) -> None:
        """Close windows whose last millisecond is over: rows of the present one may still come."""
        if self.processing_time:
            self.do(self._close, now - 1)

    def next_due(self) -> int | None:
        return None if self._next is None or not self.processing_time else self._next + 1

    def _close(self, until: int) -> None:
        """Close windows that are over."""
        if self._next is not None and self._next <= until:
            ends = self._ends()
            windows, there = self.slicing.window_ends(ends)
            lasts = self.last_moments(windows)
            ahead = there & (lasts > until)
            now = there & ~ahead & ((lasts > self._closed) | (not self.slicing.is_shared))
            self._next = None
            self._expect(lasts[ahead])
            due = Due(ends, windows, now, ends[ahead.any(axis=1)])
            self._fetch(due.slices_to_take())
            self.fire(due)
            self._forget(due.kept)
        self._closed = until

    @abstractmethod
    def fire(self, due: Due) -> None:
        """Remove the rows of ended windows from the columns, and add the output to `complete`."""

    def _ends(self) -> Times:
        found = [chunks.ends() for chunks in self.stores]
        if len(found) == 1 and not self.addresses:
            return found[0]
        return np.unique(np.concatenate([*found, np.array(list(self.addresses), "int64")]))

    def _forget(self, kept: Times) -> None:
        """Remove slices from the table that no window needs any more."""
        left = set(kept.tolist()) if self.addresses else set()
        for end in [end for end in self.addresses if end not in left]:
            self._away.discard(end)
            self.panes.remove_all(self.addresses.pop(end))

    # --- output ---
    def flush(self) -> None:
        complete, self.complete = self.complete, []
        for batch in complete:
            self.send(batch)
