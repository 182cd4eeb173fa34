"""Group windows of a number of rows. A window is complete when it has its rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from penstock.api.functions.key_selectors import ColumnKeys
from penstock.engine.operators.operator import OperatorContext
from penstock.engine.records.columns import Columns
from penstock.table.operators.aggregate.functions.fold import Fold
from penstock.table.operators.aggregate.group_aggregate import key_columns
from penstock.table.operators.base.folding_operator import FoldingOperator
from penstock.table.operators.base.output_form import OutputForm
from penstock.table.operators.base.query_state import store
from penstock.table.operators.over.over_frames import Arguments, arguments_of


class CountWindows(FoldingOperator):
    """A window of `size` rows of a key begins every `slide` rows.

    State of a key: (number of rows that came, the last rows).
    """

    def __init__(self, keys: Sequence[int], sizes: tuple[int, int], folds: Sequence[Fold], form: OutputForm) -> None:
        super().__init__(keys, form)
        self.size, self.slide = sizes
        self.folds = list(folds)

    def open(self, context: OperatorContext) -> None:
        super().open(context)
        assert self.keyed is not None
        self._counted = store(self.keyed, "rows")
        self._complete: list[tuple[Any, list[Any]]] = []

    def batch(self, batch: pa.RecordBatch) -> None:
        found = Columns(batch).keys(self.key_selector)  # type: ignore[arg-type]
        assert found is not None
        rows = arguments_of(self.folds, batch)
        for position, code in enumerate(found.which.to_pylist()):
            self._add(found.distinct[code], rows[position] if rows else ())

    def _add(self, key: Any, row: Arguments) -> None:
        count, rows = self._counted.get(key) or (0, [])
        count, rows = count + 1, [*rows, row][-self.size :]
        if count >= self.size and (count - self.size) % self.slide == 0:
            self._complete.append((key, [self._fold(fold, rows, number) for number, fold in enumerate(self.folds)]))
        self._counted.put(key, (count, rows))

    def _fold(self, fold: Fold, rows: list[Arguments], number: int) -> Any:
        accumulator = fold.new()
        for row in rows:
            if row[number] is not None:
                accumulator = fold.add(accumulator, row[number], 1)
        return fold.value(accumulator)

    def flush(self) -> None:
        if not self._complete:
            return
        complete, self._complete = self._complete, []
        assert isinstance(self.key_selector, ColumnKeys)
        arrays = key_columns([key for key, _ in complete], list(self.schema)[: len(self.key_selector.positions)])
        for number, fold in enumerate(self.folds):
            arrays.append(fold.column([values[number] for _, values in complete]))
        self.send(pa.RecordBatch.from_arrays(arrays, schema=self.schema))
