"""Top-N and deduplication within windows: the rows of a window come out, ranked, when it ends."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from penstock.runtime.core.columns import Columns
from penstock.runtime.core.operator import OperatorContext
from penstock.state.tables import Layout
from penstock.table.runtime.batches import INSERT, Held, held_rows
from penstock.table.runtime.sorting import order_of
from penstock.table.runtime.state import store
from penstock.table.runtime.table_operator import HoldingTableOperator
from penstock.table.runtime.top_n import TopNSpec
from penstock.table.runtime.windows import MICROS, instant_of


class WindowTopN(HoldingTableOperator):
    """State of a key and window: the rows that may come out, in no order. Rows of windows that are over are dropped."""

    processing_time = False
    shifted = False
    zone = "UTC"

    def __init__(self, keys: Sequence[int], bounds: Sequence[int], end: int, spec: TopNSpec, schema: pa.Schema) -> None:
        super().__init__(keys, schema)
        self.bounds = tuple(bounds)
        self.end = end
        self.spec = spec

    def open(self, context: OperatorContext) -> None:
        super().open(context)
        assert self.keyed is not None
        self._panes = store(self.keyed, "panes", layout=Layout.PANE)
        self._order = order_of(self.spec.order)
        self._late = context.metrics.counter("numLateRecordsDropped")

    def whole(self, batch: pa.RecordBatch) -> None:
        found = Columns(batch).keys(self.key_selector)  # type: ignore[arg-type]
        assert found is not None
        groups: dict[tuple[Any, Any], list[Held]] = {}
        for code, row in zip(found.which.to_pylist(), held_rows(batch), strict=True):
            bounds = tuple([row[position] for position in self.bounds])
            groups.setdefault((found.distinct[code], bounds), []).append(row)
        for (key, bounds), rows in groups.items():
            self._add(key, bounds, rows)

    def _add(self, key: Any, bounds: Any, rows: list[Held]) -> None:
        last = instant_of(rows[0][self.end] // MICROS, self.zone, self.shifted) - 1
        if not self.processing_time and last <= self.current_watermark:
            self._late.inc(len(rows))
            return
        held = self._panes.get((key, bounds))
        if held is None:
            queue = self.timers.processing_time if self.processing_time else self.timers.event_time
            queue.register(last, key, bounds)
        self._panes.put((key, bounds), self._first([*(held or []), *rows]))

    def _first(self, rows: list[Held]) -> list[Held]:
        return sorted(rows, key=self._order)[: self.spec.last]

    def on_event_time(self, time: int, key: Any, namespace: Any) -> None:
        held = self._panes.get((key, namespace)) or []
        self._panes.remove((key, namespace))
        for number, row in enumerate(held[self.spec.first - 1 :]):
            self.gather(INSERT, (*row, self.spec.first + number) if self.spec.rank_column else row)

    on_processing_time = on_event_time
