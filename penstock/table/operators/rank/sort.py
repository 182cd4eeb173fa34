"""ORDER BY: all rows at the end in BATCH mode, and rows in order of event time in a stream."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from penstock.engine.operators.operator import OperatorContext
from penstock.engine.records.elements import MIN_TIMESTAMP
from penstock.table.logical.rex import SortKey
from penstock.table.operators.base.output_form import OutputForm
from penstock.table.operators.base.query_batches import concatenate, state_rows
from penstock.table.operators.base.query_state import store
from penstock.table.operators.base.sort_order import order_of, sort_positions
from penstock.table.operators.base.table_operator import KeyedTableOperator
from penstock.table.operators.io.row_conversions import millis_of


class SortAtEnd(KeyedTableOperator):
    """BATCH mode: collects all rows, and sends the wanted ones in order."""

    def __init__(self, order: Sequence[SortKey], offset: int, limit: int | None, form: OutputForm) -> None:
        super().__init__((), form)
        self.order = tuple(order)
        self.offset = offset
        self.limit = limit

    def open(self, context: OperatorContext) -> None:
        super().open(context)
        self._held: list[pa.RecordBatch] = []

    def batch(self, batch: pa.RecordBatch) -> None:
        self._held.append(batch)

    def at_end(self) -> None:
        if not self._held:
            return
        whole, self._held = concatenate(self._held), []
        if self.order:
            whole = whole.take(sort_positions(whole, self.order))
        self.send(whole.slice(self.offset, self.limit))


class TemporalSort(KeyedTableOperator):
    """Sends rows in order of event time when the watermark has reached them.

    Rows not after the last sent row are dropped.

    State: [time of the last sent row, waiting rows as (time, row)].
    """

    def __init__(self, time: int, order: Sequence[SortKey], form: OutputForm) -> None:
        super().__init__((), form)
        self.time = time
        self.order = tuple(order)

    def open(self, context: OperatorContext) -> None:
        super().open(context)
        assert self.keyed is not None
        self._waiting = store(self.keyed, "waiting")
        order = order_of(self.order)
        self._place = lambda entry: (entry[0], order(entry[1]))
        self._late = context.metrics.counter("numLateRecordsDropped")

    def batch(self, batch: pa.RecordBatch) -> None:
        state = self._waiting.get(()) or [MIN_TIMESTAMP, []]
        times = millis_of(batch.column(self.time)).to_pylist()
        for time, row in zip(times, state_rows(batch), strict=True):
            if time is None or time <= state[0]:
                self._late.inc()
                continue
            state[1].append((time, row))
            self.timers.event_time.register(time, ())
        self._waiting.put((), state)

    def on_event_time(self, time: int, key: Any, namespace: Any) -> None:
        state: Any = self._waiting.get(())
        state[1].sort(key=self._place)
        count = bisect_right(state[1], time, key=lambda entry: entry[0])
        self.gathered += [row for _, row in state[1][:count]]
        self._waiting.put((), [time, state[1][count:]])
