"""OVER windows of streams in order of time: aggregates over the rows before each row."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from penstock.runtime.core.columns import Columns
from penstock.runtime.core.elements import MIN_TIMESTAMP
from penstock.runtime.core.operator import OperatorContext
from penstock.table.plan.nodes import Columns as PlanColumns
from penstock.table.plan.rex import OverSpec
from penstock.table.runtime.aggregates.positions import over_folds
from penstock.table.runtime.batches import Held, column_of, held_rows
from penstock.table.runtime.frames import Arguments, arguments_of
from penstock.table.runtime.function_context import function_context
from penstock.table.runtime.scans import millis_of
from penstock.table.runtime.state import store
from penstock.table.runtime.table_operator import HoldingTableOperator

Waiting = tuple[int, Held, Arguments]


class StreamingOver(HoldingTableOperator):
    """Rows wait for the watermark, and are then processed in order of their time.

    State of a key: [time of the last output, waiting rows, accumulators, rows in the frame as (time, arguments)].
    """

    def __init__(self, window: OverSpec, time: int | None, columns: PlanColumns, schema: pa.Schema) -> None:
        super().__init__(window.partition, schema)
        self.frame = window.frame
        self.time = time
        self.folds = over_folds(window.calls, columns)

    def open(self, context: OperatorContext) -> None:
        super().open(context)
        assert self.keyed is not None
        self._partitions = store(self.keyed, "partitions")
        self._late = context.metrics.counter("numLateRecordsDropped")
        self._rows_out: list[tuple[Held, tuple[Any, ...]]] = []
        for fold in self.folds:
            fold.open(function_context(context))

    def close(self) -> None:
        for fold in self.folds:
            fold.close()
        super().close()

    # --- input ---
    def whole(self, batch: pa.RecordBatch) -> None:
        found = Columns(batch).keys(self.key_selector)  # type: ignore[arg-type]
        assert found is not None
        if self.time is None:
            times = [self.context.clock.now] * batch.num_rows
        else:
            times = millis_of(batch.column(self.time)).to_pylist()
        by_key: dict[int, list[Waiting]] = {}
        rows = zip(found.which.to_pylist(), times, held_rows(batch), arguments_of(self.folds, batch), strict=True)
        for code, *row in rows:
            by_key.setdefault(code, []).append(tuple(row))  # type: ignore[arg-type]
        for code, arrived in by_key.items():
            self._take(found.distinct[code], arrived)

    def _take(self, key: Any, arrived: list[Waiting]) -> None:
        state = self._partitions.get(key) or [MIN_TIMESTAMP, [], [fold.new() for fold in self.folds], []]
        if self.time is None:
            self._process(state, arrived)
        else:
            limit = self.current_watermark if self._unbounded() else state[0]
            for row in arrived:
                if row[0] is None or row[0] <= limit:
                    self._late.inc()
                else:
                    state[1].append(row)
                    self.timers.event_time.register(row[0], key)
        self._partitions.put(key, state)

    def _unbounded(self) -> bool:
        return self.frame.start is None

    def on_event_time(self, time: int, key: Any, namespace: Any) -> None:
        state: Any = self._partitions.get(key)
        due = [row for row in state[1] if row[0] <= time]
        state[1] = [row for row in state[1] if row[0] > time]
        state[0] = time
        self._process(state, due)
        self._partitions.put(key, state)

    # --- aggregating ---
    def _process(self, state: list[Any], rows: list[Waiting]) -> None:
        """Process rows of one time after those of all earlier times. With RANGE, peers see each other."""
        together = not self.frame.rows and self.time is not None
        for group in [rows] if together else [[row] for row in rows]:
            if not group:
                continue
            for time, _, args in group:
                self._add(state, time, args)
            self._shrink(state, group[-1][0])
            values = tuple([fold.value(own) for fold, own in zip(self.folds, state[2], strict=True)])
            self._rows_out += [(row, values) for _, row, _ in group]

    def _add(self, state: list[Any], time: int, args: Arguments) -> None:
        for number, (fold, own) in enumerate(zip(self.folds, args, strict=True)):
            if own is not None:
                state[2][number] = fold.add(state[2][number], own, 1)
        if not self._unbounded():
            state[3].append((time, args))

    def _shrink(self, state: list[Any], time: int) -> None:
        """Take out the rows that have left the frame."""
        if self.frame.start is None:
            return
        frame, count = state[3], 0
        if self.frame.rows:
            count = max(len(frame) - (1 - self.frame.start), 0)
        else:
            while count < len(frame) and frame[count][0] < time + self.frame.start:
                count += 1
        for _, args in frame[:count]:
            for number, (fold, own) in enumerate(zip(self.folds, args, strict=True)):
                if own is not None:
                    state[2][number] = fold.add(state[2][number], own, -1)
        del frame[:count]

    def flush(self) -> None:
        if not self._rows_out:
            return
        out, self._rows_out = self._rows_out, []
        width = len(self.schema) - len(self.folds)
        arrays = [
            column_of(values, field.type)
            for values, field in zip(zip(*(row for row, _ in out), strict=True), list(self.schema)[:width], strict=True)
        ]
        by_call = zip(*(values for _, values in out), strict=True)
        arrays += [fold.column(values) for fold, values in zip(self.folds, by_call, strict=True)]
        self.send(pa.RecordBatch.from_arrays(arrays, schema=self.schema))
