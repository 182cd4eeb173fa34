"""GROUP BY with windows that share slices, for aggregates that see rows. A row is folded once, into its slice."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import itemgetter
from typing import Any

import numpy as np
import pyarrow as pa

from penstock.api.functions.key_selectors import ColumnKeys
from penstock.engine.operators.operator import OperatorContext
from penstock.engine.records.elements import MIN_TIMESTAMP
from penstock.engine.snapshots.snapshot_parts import SubtaskSnapshot
from penstock.engine.state.tables import Layout
from penstock.table.operators.aggregate.functions.fold import Fold
from penstock.table.operators.aggregate.group_aggregate import fold_groups, key_columns, row_folds
from penstock.table.operators.aggregate.local_aggregate import group_rows
from penstock.table.operators.base.folding_operator import FoldingOperator
from penstock.table.operators.base.output_form import OutputForm
from penstock.table.operators.base.query_state import store
from penstock.table.operators.base.table_operator import HoldingTableOperator
from penstock.table.operators.window.slices import Slicing, Times, last_moments
from penstock.table.operators.window.window_aggregate import WindowKeys
from penstock.table.operators.window.window_assignment import MICROS, moments


class SharedSliceAggregate(FoldingOperator, HoldingTableOperator):
    """State of a key and the end of a slice: accumulators. When a window is over, those of its slices are merged.

    The input has only inserts, and windows are in event time.
    """

    def __init__(
        self, keys: Sequence[int], windows: WindowKeys, slicing: Slicing, folds: Sequence[Fold], form: OutputForm
    ) -> None:
        """Create an operator. `keys` are all keys in the order of the output. The bounds are those of slices."""
        super().__init__([keys[position] for position in windows.plain], form)
        self.all_keys = ColumnKeys(tuple(keys))
        self.windows = windows
        self.slicing = slicing
        self.folds = list(folds)
        self.zone = windows.zone

    def open(self, context: OperatorContext) -> None:
        super().open(context)
        assert self.keyed is not None
        self._panes = store(self.keyed, "slices", layout=Layout.PANE)
        self._late = context.metrics.counter("numLateRecordsDropped")
        plain = self.windows.plain
        self._key_of: Callable[[Any], Any] = itemgetter(*plain) if plain else lambda whole: ()
        self._end_of = itemgetter(self.windows.end)
        self._slices: dict[int, dict[Any, None]] = {}
        """For each end of a slice, its keys."""
        self._complete: list[tuple[int, Any, list[Any]]] = []
        self._closed = MIN_TIMESTAMP
        """Time, in milliseconds, up to which windows have been sent."""
        if context.restored is not None and not context.restored.drained:
            self._closed = max(
                (own.get("closed", MIN_TIMESTAMP) for own in context.restored.all_own()), default=self._closed
            )
        for key, end in self._panes.table.addresses():
            self._slices.setdefault(end, {})[key] = None
        self._next = self._next_end()

    def snapshot(self, into: SubtaskSnapshot) -> None:
        into.own("closed", self._closed)
        super().snapshot(into)

    # --- input ---
    def whole(self, batch: pa.RecordBatch) -> None:
        found = group_rows(batch, self.all_keys, self.folds, None)
        rows = None if found.positions is None else row_folds(self.folds, batch, None)
        ends = [int(self._end_of(key)) // MICROS for key in found.keys]
        addresses = list(zip(map(self._key_of, found.keys), ends, strict=True))
        entries = self._panes.get_all(addresses)
        before = [
            [fold.new() if entry is None else entry[number] for entry in entries]
            for number, fold in enumerate(self.folds)
        ]
        now = list(zip(*fold_groups(self.folds, before, found, rows), strict=True))
        alive = self._alive(set(ends))
        kept = [index for index, end in enumerate(ends) if end in alive]
        self._late.inc(len(ends) - len(kept))
        self._panes.put_all([addresses[index] for index in kept], [now[index] for index in kept])
        for index in kept:
            if entries[index] is None:
                self._slices.setdefault(ends[index], {})[addresses[index][0]] = None
        self._next = self._next_end()

    def _alive(self, ends: set[int]) -> set[int]:
        """Return the slices that belong to a window that is not over."""
        found = np.array(sorted(ends), "int64")
        _, there, lasts = self._windows_of(found)
        return set(found[(there & (lasts > self.current_watermark)).any(axis=1)].tolist())

    def _windows_of(self, ends: Times) -> tuple[Times, Times, Times]:
        """Return for each slice the ends of its windows, a mask of the windows that exist, and their last moments."""
        windows, there = self.slicing.window_ends(ends)
        return windows, there, last_moments(windows, self.zone, self.windows.shifted)

    # --- time ---
    def watermark(self, timestamp: int) -> None:
        self.do(self.release)
        self.current_watermark = self.timers.watermark = timestamp
        if self._next is not None and timestamp >= self._next:
            self.do(self._close, timestamp)
        self._closed = max(self._closed, timestamp)
        self.output.watermark(timestamp)

    def _next_end(self) -> int | None:
        """Return the end of the next window, or None if nothing waits."""
        if not self._slices:
            return None
        _, there, lasts = self._windows_of(np.array(list(self._slices), "int64"))
        return min(lasts[there & (lasts > self._closed)].tolist(), default=None)

    def _close(self, until: int) -> None:
        """Close windows that are over, in the order of their ends, and remove slices that no window needs any more."""
        ends = np.array(sorted(self._slices), "int64")
        windows, there, lasts = self._windows_of(ends)
        now = there & (lasts <= until) & (lasts > self._closed)
        for window in np.unique(windows[now]).tolist():
            self._put_together(window, ends[(now & (windows == window)).any(axis=1)].tolist())
        for end in ends[~(there & (lasts > until)).any(axis=1)].tolist():
            self._panes.remove_all([(key, end) for key in self._slices.pop(end)])
        self._closed = max(self._closed, until)
        self._next = self._next_end()

    def _put_together(self, window: int, slices: list[int]) -> None:
        """Add an output row for each key that has rows in the slices of a window."""
        for key in dict.fromkeys(key for end in slices for key in self._slices[end]):
            parts = [part for part in self._panes.get_all([(key, end) for end in slices]) if part is not None]
            merged = []
            for number, fold in enumerate(self.folds):
                whole = fold.new()
                for part in parts:
                    whole = fold.merge(whole, fold.copy_accumulator(part[number]))
                merged.append(fold.value(whole))
            self._complete.append((window, key, merged))

    # --- output ---
    def flush(self) -> None:
        if not self._complete:
            return
        complete, self._complete = self._complete, []
        ends = np.array([window for window, _, _ in complete], "int64")
        bounds = {"start": self.slicing.starts(ends), "end": ends, "time": ends - 1}
        fields = [self.schema.field(position) for position in self.windows.plain]
        plain = key_columns([key for _, key, _ in complete], fields) if fields else []
        arrays: dict[int, pa.Array] = dict(zip(self.windows.plain, plain, strict=True))
        for position, role in zip(self.windows.window, self.windows.roles, strict=True):
            arrays[position] = moments(bounds[role], self.schema.field(position).type)
        keys = [arrays[position] for position in range(len(self.all_keys.positions))]
        results = [fold.column([row[number] for _, _, row in complete]) for number, fold in enumerate(self.folds)]
        self.send(pa.RecordBatch.from_arrays([*keys, *results], schema=self.schema))
