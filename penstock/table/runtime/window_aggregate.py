"""GROUP BY with windows: a group is complete, and sent once, when the watermark reaches the end of its window."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from penstock.runtime.core.operator import OperatorContext
from penstock.state.tables import Layout
from penstock.table.runtime.aggregates.fold import Fold, VectorFold
from penstock.table.runtime.function_context import function_context
from penstock.table.runtime.group_aggregate import fold_groups, key_columns, row_folds, with_counter
from penstock.table.runtime.grouping import grouped, regrouped, signs_of
from penstock.table.runtime.state import store
from penstock.table.runtime.table_operator import HoldingTableOperator
from penstock.table.runtime.windows import MICROS, instant_of
from penstock.vocabulary.functions.key_selectors import ColumnKeys


@dataclass(frozen=True)
class WindowKeys:
    """Which of the keys of an aggregate belong to its window. All positions are among the keys."""

    plain: tuple[int, ...]
    """Keys that have nothing to do with the window."""
    window: tuple[int, ...]
    """Start, end and time, as far as they are keys."""
    end: int
    """The end: one of `window`."""
    processing_time: bool = False
    shifted: bool = False
    """Whether bounds are times of a zone's clock."""

    def last_moment(self, key: tuple[Any, ...], zone: str) -> int:
        """The last millisecond of a window."""
        return instant_of(key[self.end] // MICROS, zone, self.shifted) - 1


class WindowAggregate(HoldingTableOperator):
    """State of a key and window: accumulators. Rows of windows that are over are dropped."""

    def __init__(
        self, keys: Sequence[int], windows: WindowKeys, folds: Sequence[Fold], signed: bool, schema: pa.Schema
    ) -> None:
        """`keys` are all keys, in the order in which they come out."""
        super().__init__([keys[position] for position in windows.plain], schema)
        self.all_keys = ColumnKeys(tuple(keys))
        self.windows = windows
        self.folds = with_counter(folds, signed)
        self.results = list(folds)
        self.signed = signed
        self.zone = "UTC"
        self.parts_come = False
        """Whether the first phase has been done before the exchange."""

    def open(self, context: OperatorContext) -> None:
        super().open(context)
        assert self.keyed is not None
        self._panes = store(self.keyed, "panes", layout=Layout.PANE)
        self._late = context.metrics.counter("numLateRecordsDropped")
        self._complete: list[tuple[Any, tuple[Any, ...]]] = []
        for fold in self.folds:
            fold.open(function_context(context))

    def close(self) -> None:
        for fold in self.folds:
            fold.close()
        super().close()

    # --- input ---
    def whole(self, batch: pa.RecordBatch) -> None:
        rows: list[Any] | None = None
        if self.parts_come:
            vectors = [fold for fold in self.folds if isinstance(fold, VectorFold)]
            found = regrouped(batch, len(self.all_keys.positions), vectors)
        else:
            signs = signs_of(batch, self.signed)
            found = grouped(batch, self.all_keys, self.folds, signs)
            rows = None if found.positions is None else row_folds(self.folds, batch, signs)
        addresses = [self._address(self._as_tuple(key)) for key in found.keys]
        entries = [None if address is None else self._panes.get(address) for address in addresses]
        before = [
            [fold.new() if entry is None else entry[number] for entry in entries]
            for number, fold in enumerate(self.folds)
        ]
        now = fold_groups(self.folds, before, found, rows)
        accumulators = list(zip(*now, strict=True)) if now else [()] * len(entries)
        kept = [index for index, address in enumerate(addresses) if address is not None]
        self._panes.put_all([addresses[index] for index in kept], [accumulators[index] for index in kept])
        for index in kept:
            if entries[index] is None:
                self._register(addresses[index])

    def _as_tuple(self, key: Any) -> tuple[Any, ...]:
        return key if len(self.all_keys.positions) != 1 else (key,)

    def _address(self, whole: tuple[Any, ...]) -> tuple[Any, tuple[Any, ...]] | None:
        """Where the accumulators of a key and window are; None if the window is over."""
        windows = self.windows
        if whole[windows.end] is None:
            return None
        if not windows.processing_time and windows.last_moment(whole, self.zone) <= self.current_watermark:
            self._late.inc()
            return None
        return self._key(whole), tuple([whole[position] for position in windows.window])

    def _register(self, address: Any) -> None:
        """Wake up when a window is over."""
        key, namespace = address
        windows = self.windows
        end = namespace[windows.window.index(windows.end)]
        queue = self.timers.processing_time if windows.processing_time else self.timers.event_time
        queue.register(instant_of(end // MICROS, self.zone, windows.shifted) - 1, key, namespace)

    def _key(self, whole: tuple[Any, ...]) -> Any:
        plain = self.windows.plain
        return whole[plain[0]] if len(plain) == 1 else tuple([whole[position] for position in plain])

    # --- output ---
    def on_event_time(self, time: int, key: Any, namespace: Any) -> None:
        accumulators = self._panes.get((key, namespace))
        self._panes.remove((key, namespace))
        if accumulators is not None and not (self.signed and accumulators[-1] <= 0):
            self._complete.append((self._whole_key(key, namespace), accumulators))

    on_processing_time = on_event_time

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
