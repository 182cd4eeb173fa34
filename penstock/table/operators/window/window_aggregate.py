"""GROUP BY with windows. A group is sent once, when the watermark reaches the end of its window."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import Any

import pyarrow as pa

from penstock.api.functions.key_selectors import ColumnKeys
from penstock.engine.operators.operator import OperatorContext
from penstock.engine.state.tables import Layout
from penstock.table.operators.aggregate.functions.fold import Fold, VectorFold
from penstock.table.operators.aggregate.group_aggregate import fold_groups, key_columns, row_folds, with_counter
from penstock.table.operators.aggregate.local_aggregate import Groups, group_rows, regroup_parts, signs_of
from penstock.table.operators.base.due_times import Due
from penstock.table.operators.base.folding_operator import FoldingOperator
from penstock.table.operators.base.output_form import OutputForm
from penstock.table.operators.base.query_state import store
from penstock.table.operators.base.table_operator import HoldingTableOperator
from penstock.table.operators.window.window_assignment import MICROS, instant_of


@dataclass(frozen=True)
class WindowKeys:
    """The keys of an aggregate that belong to its window, and the others. All positions are among the keys."""

    plain: tuple[int, ...]
    """Keys that do not belong to the window."""
    window: tuple[int, ...]
    """The keys that are the start, the end or the time of the window."""
    end: int
    """The end: one of `window`."""
    processing_time: bool = False
    shifted: bool = False
    """True if bounds are times on the clock of a time zone."""
    roles: tuple[str, ...] = ()
    """For each key of `window`: "start", "end" or "time"."""
    zone: str = "UTC"
    """The time zone of the session."""


class WindowAggregate(FoldingOperator, HoldingTableOperator):
    """State of a key and window: accumulators. Rows of windows that are over are dropped."""

    def __init__(
        self,
        keys: Sequence[int],
        windows: WindowKeys,
        folds: Sequence[Fold],
        signed: bool,
        form: OutputForm,
        parts_come: bool = False,
    ) -> None:
        """Create an operator. `keys` are all keys in the order of the output.

        `parts_come` is True if the first phase runs before the exchange.
        """
        super().__init__([keys[position] for position in windows.plain], form)
        self.all_keys = ColumnKeys(tuple(keys))
        self.windows = windows
        self.folds = with_counter(folds, signed)
        self.results = list(folds)
        self.signed = signed
        self.zone = windows.zone
        self.parts_come = parts_come

    def open(self, context: OperatorContext) -> None:
        super().open(context)
        assert self.keyed is not None
        self._panes = store(self.keyed, "panes", layout=Layout.PANE)
        self._late = context.metrics.counter("numLateRecordsDropped")
        self._complete: list[tuple[Any, tuple[Any, ...]]] = []
        windows = self.windows
        self._key_of: Callable[[Any], Any] = itemgetter(*windows.plain) if windows.plain else lambda whole: ()
        self._window_of = itemgetter(*windows.window)
        self._end = windows.window.index(windows.end)
        self._due = Due()
        for address in self._panes.table.addresses():
            self._due.add(self._last_moment(address[1]), address)

    # --- input ---
    def whole(self, batch: pa.RecordBatch) -> None:
        rows: list[Any] | None = None
        if self.parts_come:
            vectors = [fold for fold in self.folds if isinstance(fold, VectorFold)]
            found = regroup_parts(batch, len(self.all_keys.positions), vectors)
        else:
            signs = signs_of(batch, self.signed)
            found = group_rows(batch, self.all_keys, self.folds, signs)
            rows = None if found.positions is None else row_folds(self.folds, batch, signs)
        self._fold(found, rows)

    def _fold(self, found: Groups, rows: list[Any] | None) -> None:
        namespaces = [self._window_of(key) for key in found.keys]
        open_until = self._open_windows(namespaces)
        addresses = [
            (key_of_whole, namespace)
            for key_of_whole, namespace in zip(map(self._key_of, found.keys), namespaces, strict=True)
        ]
        entries = self._panes.get_all(addresses)
        before = [
            [fold.new() if entry is None else entry[number] for entry in entries]
            for number, fold in enumerate(self.folds)
        ]
        now = fold_groups(self.folds, before, found, rows)
        accumulators = list(zip(*now, strict=True)) if now else [()] * len(entries)
        if len(open_until) < len(set(namespaces)):
            kept = [index for index, namespace in enumerate(namespaces) if namespace in open_until]
            self._late.inc(len(namespaces) - len(kept))
            addresses = [addresses[index] for index in kept]
            entries = [entries[index] for index in kept]
            accumulators = [accumulators[index] for index in kept]
        self._panes.put_all(addresses, accumulators)
        new: dict[int, list[Any]] = {}
        for address, entry in zip(addresses, entries, strict=True):
            if entry is None:
                new.setdefault(open_until[address[1]], []).append(address)
        for time, own in new.items():
            self._due.extend(time, own)

    def _open_windows(self, namespaces: list[Any]) -> dict[Any, int]:
        """Return the windows that are not over, with their last moments."""
        found = {}
        for namespace in set(namespaces):
            if namespace[self._end] is not None:
                last = self._last_moment(namespace)
                if self.windows.processing_time or last > self.current_watermark:
                    found[namespace] = last
        return found

    def _last_moment(self, namespace: tuple[Any, ...]) -> int:
        """Return the last millisecond of a window."""
        return instant_of(namespace[self._end] // MICROS, self.zone, self.windows.shifted) - 1

    # --- time ---
    def watermark(self, timestamp: int) -> None:
        self.do(self.release)
        self.current_watermark = self.timers.watermark = timestamp
        if not self.windows.processing_time:
            self.do(self._close, timestamp)
        self.output.watermark(timestamp)

    def advance_processing_time(self, now: int) -> None:
        """Close windows whose last millisecond is over. Rows of the current millisecond may still come."""
        if self.windows.processing_time:
            self.do(self._close, now - 1)

    def next_due(self) -> int | None:
        last = self._due.next_time() if self.windows.processing_time else None
        return None if last is None else last + 1

    def _close(self, until: int) -> None:
        """Close windows that are over, in the order of their ends."""
        for _, addresses in self._due.pop(until):
            for address, accumulators in zip(addresses, self._panes.get_all(addresses), strict=True):
                self._panes.remove(address)
                if accumulators is not None and not (self.signed and accumulators[-1] == 0):
                    self._complete.append((self._whole_key(*address), accumulators))

    # --- output ---
    def _whole_key(self, key: Any, namespace: tuple[Any, ...]) -> tuple[Any, ...]:
        windows = self.windows
        parts = dict(zip(windows.window, namespace, strict=True))
        parts.update(zip(windows.plain, (key,) if len(windows.plain) == 1 else key, strict=True))
        return tuple([parts[position] for position in range(len(self.all_keys.positions))])

    def flush(self) -> None:
        if not self._complete:
            return
        complete, self._complete = self._complete, []
        width = len(self.all_keys.positions)
        keys = [key if width != 1 else key[0] for key, _ in complete]
        arrays = key_columns(keys, list(self.schema)[:width])
        for number, fold in enumerate(self.results):
            arrays.append(fold.column(fold.values([accumulators[number] for _, accumulators in complete])))
        self.send(pa.RecordBatch.from_arrays(arrays, schema=self.schema))
