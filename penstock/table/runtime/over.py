"""OVER windows: aggregates over the rows around each row."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from penstock.runtime.core.columns import Columns, held_values
from penstock.runtime.core.elements import MIN_TIMESTAMP
from penstock.runtime.core.operator import OperatorContext
from penstock.table.plan.nodes import Columns as PlanColumns
from penstock.table.plan.rex import OverSpec
from penstock.table.runtime.aggregates.fold import Fold
from penstock.table.runtime.aggregates.positions import over_folds, ranks_of
from penstock.table.runtime.batches import Held, column_of, held_rows, joined
from penstock.table.runtime.function_context import function_context
from penstock.table.runtime.scans import millis_of
from penstock.table.runtime.sorting import sort_positions
from penstock.table.runtime.state import store
from penstock.table.runtime.table_operator import HoldingTableOperator, KeyedTableOperator

Arguments = tuple[Any, ...]
"""For each fold, the arguments of a row; None where FILTER leaves it out."""
Waiting = tuple[int, Held, Arguments]


def arguments_of(folds: Sequence[Fold], batch: pa.RecordBatch) -> list[Arguments]:
    """For each row what the folds take of it."""
    by_fold = []
    for fold in folds:
        rows, chosen = fold.rows(batch), fold.chosen(batch)
        by_fold.append(
            rows if chosen is None else [row if own else None for row, own in zip(rows, chosen, strict=True)]
        )
    return list(zip(*by_fold, strict=True))


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


class OverAtEnd(KeyedTableOperator):
    """BATCH mode: any order, any frame; all rows are there before the first comes out."""

    def __init__(self, window: OverSpec, columns: PlanColumns, schema: pa.Schema) -> None:
        super().__init__(window.partition, schema)
        self.window = window
        self.columns = columns

    def open(self, context: OperatorContext) -> None:
        super().open(context)
        self._held: list[pa.RecordBatch] = []
        self._folds = over_folds(self.window.calls, self.columns)

    def batch(self, batch: pa.RecordBatch) -> None:
        self._held.append(batch)

    def at_end(self) -> None:
        if not self._held:
            return
        whole, self._held = joined(self._held), []
        if self.window.order:
            whole = whole.take(sort_positions(whole, self.window.order))
        found = Columns(whole).keys(self.key_selector)  # type: ignore[arg-type]
        assert found is not None
        partitions: dict[int, list[int]] = {}
        for position, code in enumerate(found.which.to_pylist()):
            partitions.setdefault(code, []).append(position)
        results = self._results(whole, list(partitions.values()))
        columns = [fold.column(values) for fold, values in zip(self._folds, results, strict=True)]
        self.send(pa.RecordBatch.from_arrays([*whole.columns, *columns], schema=self.schema))

    def _results(self, whole: pa.RecordBatch, partitions: list[list[int]]) -> list[list[Any]]:
        orders = [held_values(whole.column(key.index)) for key in self.window.order]
        places = list(zip(*orders, strict=True)) if orders else [()] * whole.num_rows
        args = arguments_of(self._folds, whole)
        results: list[list[Any]] = [[None] * whole.num_rows for _ in self._folds]
        for positions in partitions:
            own = [places[position] for position in positions]
            inside = [args[position] for position in positions]
            for number, fold in enumerate(self._folds):
                values = ranks_of(fold.call, own, [one[number] for one in inside])
                if values is None:
                    values = self._framed(fold, own, [one[number] for one in inside])
                for position, value in zip(positions, values, strict=True):
                    results[number][position] = value
        return results

    def _framed(self, fold: Fold, places: list[Any], args: list[Any]) -> list[Any]:
        """An aggregate over the frame of each row, which only moves forward."""
        accumulator, first, last, values = fold.new(), 0, 0, []
        for index in range(len(places)):
            start, stop = self._frame(places, index)
            if start < first or stop < last:
                accumulator, first, last = fold.new(), start, start
            while last < stop:
                if args[last] is not None:
                    accumulator = fold.add(accumulator, args[last], 1)
                last += 1
            while first < min(start, last):
                if args[first] is not None:
                    accumulator = fold.add(accumulator, args[first], -1)
                first += 1
            first = max(first, start)
            last = max(last, first)
            values.append(fold.value(accumulator))
        return values

    def _frame(self, places: list[Any], index: int) -> tuple[int, int]:
        """The rows of a frame, as a range of positions in the partition."""
        frame, count = self.window.frame, len(places)
        if frame.rows:
            start = 0 if frame.start is None else index + frame.start
            stop = count if frame.end is None else index + frame.end + 1
            return min(max(start, 0), count), min(max(stop, 0), count)
        return self._range(places, index, frame.start, before=True), self._range(places, index, frame.end, before=False)

    def _range(self, places: list[Any], index: int, bound: int | None, before: bool) -> int:
        if bound is None or not self.window.order:
            return 0 if before else len(places)
        own = places[index]
        if bound == 0 or own[0] is None:
            matching = [position for position, place in enumerate(places) if place == own]
            return matching[0] if before else matching[-1] + 1
        descending = self.window.order[0].descending
        sign = -1 if descending else 1
        keys = [None if place[0] is None else sign * place[0] for place in places]
        there = [key for key in keys if key is not None]
        offset = keys.index(there[0])
        aim = sign * own[0] + bound * self._unit()
        found = bisect_left(there, aim) if before else bisect_right(there, aim)
        return offset + found

    def _unit(self) -> int:
        """Bounds on time are milliseconds, and times are held as microseconds."""
        kind = self.schema.field(self.window.order[0].index).type
        return 1000 if pa.types.is_timestamp(kind) else 1
