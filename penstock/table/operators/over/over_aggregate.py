"""OVER windows of streams in order of time: aggregates over the rows before each row."""

from __future__ import annotations

from operator import itemgetter
from typing import Any

import numpy as np
import pyarrow as pa

from penstock.engine.operators.operator import OperatorContext
from penstock.engine.records.columns import Columns
from penstock.engine.records.elements import MIN_TIMESTAMP
from penstock.table.logical.nodes import Columns as PlanColumns
from penstock.table.logical.rex import OverSpec
from penstock.table.operators.aggregate.functions.positions import over_folds
from penstock.table.operators.base.folding_operator import FoldingOperator
from penstock.table.operators.base.output_form import OutputForm
from penstock.table.operators.base.query_batches import Held, column_of, state_rows
from penstock.table.operators.base.query_state import store
from penstock.table.operators.base.table_operator import HoldingTableOperator
from penstock.table.operators.io.row_conversions import millis_of
from penstock.table.operators.over.over_frames import arguments_of
from penstock.table.operators.over.running_aggregates import Ready, Sequences, Waiting, results


class StreamingOver(FoldingOperator, HoldingTableOperator):
    """Holds rows until the watermark, and then processes them in order of their time.

    State of a key: [time of the last output, waiting rows, accumulators, rows in the frame as (time, arguments)]. With
    RANGE and a start, it also has a list of alarms and the watermark when they were set last. It does not expire while
    rows wait. A key has a timer for its first waiting row.

    Late rows are those of Flink. Without a start, they are behind the watermark. With a start, they are not after the
    last output of their key. With RANGE, Flink also sets alarms for the cleanup. An alarm before the last one counts as
    output; the last one clears the state, and then no row is late. Alarms are checked when rows come, because they
    matter only then.
    """

    def __init__(
        self, window: OverSpec, time: int | None, columns: PlanColumns, form: OutputForm, ttl: int = 0
    ) -> None:
        super().__init__(window.partition, form)
        self.frame = window.frame
        self.time = time
        self.ttl = ttl
        self.folds = over_folds(window.calls, columns, leaving=window.frame.start is not None)

    def open(self, context: OperatorContext) -> None:
        super().open(context)
        assert self.keyed is not None
        self._partitions = store(self.keyed, "partitions", self.ttl, in_use=lambda state: bool(state[1]))
        self._late = context.metrics.counter("numLateRecordsDropped")
        self._due: dict[Any, tuple[Any, list[Waiting]]] = {}

    # --- input ---
    def whole(self, batch: pa.RecordBatch) -> None:
        found = Columns(batch).keys(self.key_selector)  # type: ignore[arg-type]
        assert found is not None
        if self.time is None:
            times = [self.context.clock.now] * batch.num_rows
        else:
            times = millis_of(batch.column(self.time)).to_pylist()
        by_key: dict[int, list[Waiting]] = {}
        rows = zip(times, state_rows(batch), arguments_of(self.folds, batch), strict=True)
        for code, row in zip(found.which.to_pylist(), rows, strict=True):
            by_key.setdefault(code, []).append(row)
        keys = [found.distinct[code] for code in by_key]
        states = [
            [MIN_TIMESTAMP, [], [fold.new() for fold in self.folds], []] if state is None else state
            for state in self._partitions.get_all(keys)
        ]
        if self.time is None:
            self._process(states, list(by_key.values()))
        else:
            for key, state, arrived in zip(keys, states, by_key.values(), strict=True):
                self._keep(key, state, arrived)
        self._partitions.put_all(keys, states)

    def _keep(self, key: Any, state: list[Any], arrived: list[Waiting]) -> None:
        if self._has_alarms():
            self._ring(state)
        limit = self.current_watermark if self._is_unbounded() else state[0]
        in_time = [row for row in arrived if row[0] is not None and row[0] > limit]
        self._late.inc(len(arrived) - len(in_time))
        if self._has_alarms():
            self._set_alarms(state[4], in_time)
            state[5] = self.current_watermark
        if in_time:
            first = min(map(itemgetter(0), in_time))
            if not state[1] or first < min(map(itemgetter(0), state[1])):
                self.timers.event_time.register(first, key)
            state[1] += in_time

    def _ring(self, state: list[Any]) -> None:
        """Process the alarms that the watermark has passed since they were set. The last one clears the state."""
        state += [[], MIN_TIMESTAMP][len(state) - 4 :]  # a new state has fewer parts
        alarms: list[int] = state[4]
        if self.current_watermark <= state[5]:
            return
        while alarms and alarms[0] <= self.current_watermark:
            rung = alarms.pop(0)
            if alarms:
                state[0] = max(state[0], rung)
            else:
                state[0], state[2], state[3] = MIN_TIMESTAMP, [fold.new() for fold in self.folds], []

    def _set_alarms(self, alarms: list[int], rows: list[Waiting]) -> None:
        """Set an alarm for each row at one and a half times the frame's length after it.

        A row needs no alarm if there is one after the row has left all frames.
        """
        assert self.frame.start is not None
        length = -self.frame.start
        for time, _, _ in rows:
            if not alarms or alarms[-1] <= time + length:
                alarms.append(time + length * 3 // 2 + 1)

    def _has_alarms(self) -> bool:
        return not self.frame.rows and not self._is_unbounded()

    def _is_unbounded(self) -> bool:
        return self.frame.start is None

    # --- time ---
    def watermark(self, timestamp: int) -> None:
        self.do(self.release)
        self.current_watermark = self.timers.watermark = timestamp
        self.do(self._advance, timestamp)
        self.output.watermark(timestamp)

    def _advance(self, timestamp: int) -> None:
        """Process the rows of all timers that are due together."""
        self.timers.event_time.fire(timestamp, self.on_event_time)
        if self._due:
            due, self._due = self._due, {}
            states = [state for state, _ in due.values()]
            self._process(states, [rows for _, rows in due.values()])
            self._partitions.put_all(list(due), states)

    def on_event_time(self, time: int, key: Any, namespace: Any) -> None:
        """Collect the rows of a key up to the watermark. Later timers may then find no rows."""
        if key in self._due:
            return
        state: Any = self._partitions.get(key)
        until = self.current_watermark
        due = [] if state is None else [row for row in state[1] if row[0] <= until]
        if not due:
            return
        due.sort(key=itemgetter(0))
        state[0], state[1] = max(state[0], due[-1][0]), [row for row in state[1] if row[0] > until]
        if state[1]:
            self.timers.event_time.register(min(map(itemgetter(0), state[1])), key)
        self._due[key] = (state, due)

    # --- aggregating ---
    def _process(self, states: list[Any], due: list[list[Waiting]]) -> None:
        """Process rows of keys, in order of their times. With RANGE, rows of the same time see each other."""
        ready = [Ready(state[3], rows) for state, rows in zip(states, due, strict=True)]
        rows = Sequences(ready, self.frame, peers=not self.frame.rows and self.time is not None)
        columns = []
        for number, fold in enumerate(self.folds):
            values, now = results(fold, number, rows, self.frame, [state[2][number] for state in states])
            columns.append(values)
            for state, accumulator in zip(states, now, strict=True):
                state[2][number] = accumulator
        if not self._is_unbounded():
            for state, framed in zip(states, rows.rows_in_frame(), strict=True):
                state[3] = framed
        self._tell([row[1] for own in due for row in own], columns, rows.times)

    def _tell(self, rows: list[Held], columns: list[list[Any]], times: np.ndarray[Any, Any]) -> None:
        """Send rows in the order of their times."""
        fields = list(self.schema)[: len(self.schema) - len(self.folds)]
        by_column = zip(*rows, strict=True)
        arrays = [column_of(values, field.type) for values, field in zip(by_column, fields, strict=True)]
        arrays += [fold.column(values) for fold, values in zip(self.folds, columns, strict=True)]
        order = pa.array(np.argsort(times, kind="stable"))
        self.send(pa.RecordBatch.from_arrays([array.take(order) for array in arrays], schema=self.schema))
