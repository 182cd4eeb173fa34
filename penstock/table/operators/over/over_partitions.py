"""OVER windows over whole partitions: once at the end in BATCH mode, and after every change in a stream."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from typing import Any

import pyarrow as pa

from penstock.engine.operators.operator import OperatorContext
from penstock.engine.records.columns import Columns
from penstock.table.logical.nodes import Columns as PlanColumns
from penstock.table.logical.rex import OverSpec
from penstock.table.operators.aggregate.functions.positions import over_folds
from penstock.table.operators.base.function_context import function_context
from penstock.table.operators.base.output_form import OutputForm
from penstock.table.operators.base.query_batches import (
    DELETE,
    INSERT,
    UPDATE_AFTER,
    UPDATE_BEFORE,
    Held,
    batch_of,
    concatenate,
    state_rows,
)
from penstock.table.operators.base.query_state import store
from penstock.table.operators.base.sort_order import order_of, sort_positions
from penstock.table.operators.base.table_operator import HoldingTableOperator, KeyedTableOperator
from penstock.table.operators.over.over_frames import Frames


class OverAtEnd(KeyedTableOperator):
    """BATCH mode: collects all rows before it sends the first one."""

    def __init__(self, window: OverSpec, columns: PlanColumns, form: OutputForm) -> None:
        super().__init__(window.partition, form)
        self.window = window
        self.columns = columns

    def open(self, context: OperatorContext) -> None:
        super().open(context)
        self._held: list[pa.RecordBatch] = []
        self._folds = over_folds(self.window.calls, self.columns)
        for fold in self._folds:
            fold.open(function_context(context))

    def close(self) -> None:
        for fold in getattr(self, "_folds", ()):
            fold.close()
        super().close()

    def batch(self, batch: pa.RecordBatch) -> None:
        self._held.append(batch)

    def at_end(self) -> None:
        if not self._held:
            return
        whole, self._held = concatenate(self._held), []
        if self.window.order:
            whole = whole.take(sort_positions(whole, self.window.order))
        found = Columns(whole).keys(self.key_selector)  # type: ignore[arg-type]
        assert found is not None
        partitions: dict[int, list[int]] = {}
        for position, code in enumerate(found.which.to_pylist()):
            partitions.setdefault(code, []).append(position)
        results = Frames(self.window, self._folds).results(whole, list(partitions.values()))
        columns = [fold.column(values) for fold, values in zip(self._folds, results, strict=True)]
        self.send(pa.RecordBatch.from_arrays([*whole.columns, *columns], schema=self.schema))


class ChangingOver(HoldingTableOperator):
    """An OVER window in any order over a changelog. A change may change the values of the rows behind it.

    State of a partition: [its rows in order, the values of the calls for each]. Every change computes all values again.
    """

    def __init__(self, window: OverSpec, columns: PlanColumns, signed: bool, form: OutputForm, ttl: int) -> None:
        super().__init__(window.partition, form)
        self.window = window
        self.columns = columns
        self.signed = signed
        self.ttl = ttl

    def open(self, context: OperatorContext) -> None:
        super().open(context)
        assert self.keyed is not None
        self._partitions = store(self.keyed, "partitions", self.ttl)
        self._folds = over_folds(self.window.calls, self.columns)
        for fold in self._folds:
            fold.open(function_context(context))
        self._order = order_of(self.window.order)
        self._input = pa.schema(list(self.schema)[: len(self.columns)])

    def close(self) -> None:
        for fold in getattr(self, "_folds", ()):
            fold.close()
        super().close()

    def whole(self, batch: pa.RecordBatch) -> None:
        found = Columns(batch).keys(self.key_selector)  # type: ignore[arg-type]
        assert found is not None
        width = len(self.columns)
        kinds = batch.column(width).to_pylist() if self.signed else [INSERT] * batch.num_rows
        by_key: dict[int, list[tuple[Held, int]]] = {}
        for code, row, kind in zip(found.which.to_pylist(), state_rows(batch, range(width)), kinds, strict=True):
            by_key.setdefault(code, []).append((row, kind))
        for code, changes in by_key.items():
            self._change(found.distinct[code], changes)

    def _change(self, key: Any, changes: list[tuple[Held, int]]) -> None:
        rows, values = self._partitions.get(key) or ([], [])
        before = list(zip(rows, values, strict=True))
        rows = list(rows)
        for row, kind in changes:
            if kind in {INSERT, UPDATE_AFTER}:
                rows.insert(bisect_right(rows, self._order(row), key=self._order), row)
            else:
                self._remove(rows, row)
        values = self._values(rows)
        if rows:
            self._partitions.put(key, (rows, values))
        else:
            self._partitions.remove(key)
        self._tell(before, list(zip(rows, values, strict=True)))

    def _remove(self, rows: list[Held], row: Held) -> None:
        place = self._order(row)
        first, last = bisect_left(rows, place, key=self._order), bisect_right(rows, place, key=self._order)
        if row in rows[first:last]:
            del rows[rows.index(row, first, last)]

    def _values(self, rows: list[Held]) -> list[tuple[Any, ...]]:
        if not rows:
            return []
        results = Frames(self.window, self._folds).results(batch_of(rows, self._input), [range(len(rows))])
        return list(zip(*results, strict=True))

    def _tell(self, before: list[Any], now: list[Any]) -> None:
        """Send the changes of a partition.

        A row with new values is an update. Deletions are sent before other changes.
        """
        old: dict[Held, list[Any]] = {}
        for row, values in before:
            old.setdefault(row, []).append(values)
        come = list[tuple[tuple[int, Held], ...]]()
        for row, values in now:
            known = old.get(row)
            if not known:
                come.append(((INSERT, row + values),))
                continue
            was = known.pop(known.index(values) if values in known else 0)
            if was != values:
                come.append(((UPDATE_BEFORE, row + was), (UPDATE_AFTER, row + values)))
        for row, left in old.items():
            for values in left:
                self.gather(DELETE, row + values)
        for changes in come:
            for kind, changed in changes:
                self.gather(kind, changed)
