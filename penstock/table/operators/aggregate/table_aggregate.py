"""The operators of flat_aggregate: a table aggregate function returns any number of rows for each group."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from penstock.api.functions.key_selectors import ColumnKeys
from penstock.common.types import Row
from penstock.engine.operators.operator import OperatorContext
from penstock.errors import TableException
from penstock.table.logical.rex import AggregateCall
from penstock.table.operators.aggregate.functions.user_aggregates import UserAggregate, freeze_result
from penstock.table.operators.aggregate.group_aggregate import fold_rows, key_columns, row_folds, with_counter
from penstock.table.operators.aggregate.local_aggregate import group_rows, signs_of
from penstock.table.operators.base.function_context import function_context
from penstock.table.operators.base.output_form import OutputForm
from penstock.table.operators.base.query_batches import DELETE, INSERT, column_of
from penstock.table.operators.base.query_state import store
from penstock.table.operators.base.table_operator import HoldingTableOperator
from penstock.table.operators.window.window_aggregate import WindowAggregate, WindowKeys
from penstock.table.types.arrow_forms import array_of
from penstock.table.types.data_types import DataType


class TableAggregate(HoldingTableOperator):
    """State of a key: [accumulator, number of rows, rows that were sent last]. BATCH mode sends all rows at the end."""

    def __init__(
        self,
        keys: Sequence[int],
        call: AggregateCall,
        types: tuple[Sequence[DataType], Sequence[DataType]],
        signed: bool,
        form: OutputForm,
        ttl: int = 0,
    ) -> None:
        """Create an operator. `types` are the types of the arguments and of the results."""
        super().__init__(keys, form)
        self.aggregate = call
        self.result_types = tuple(types[1])
        self.fold = UserAggregate(call, types[0])
        self.signed = signed
        self.ttl = ttl

    def open(self, context: OperatorContext) -> None:
        super().open(context)
        assert self.keyed is not None
        self._groups = store(self.keyed, "groups", self.ttl)
        self.fold.open(function_context(context))
        self._changes: list[tuple[int, Any, tuple[Any, ...]]] = []

    def close(self) -> None:
        self.fold.close()
        super().close()

    def whole(self, batch: pa.RecordBatch) -> None:
        assert isinstance(self.key_selector, ColumnKeys)
        signs = signs_of(batch, self.signed)
        folds = with_counter([self.fold], True)
        found = group_rows(batch, self.key_selector, folds, signs if signs is not None else pa.array([1] * len(batch)))
        rows = row_folds([self.fold], batch, signs)
        assert found.positions is not None
        counts = found.parts[1]
        assert counts is not None
        for index, key in enumerate(found.keys):
            state = self._groups.get(key) or [self.fold.new(), 0, []]
            state[0] = fold_rows(self.fold, state[0], rows[0], found.positions[index])
            state[1] += counts[0][index]
            self._groups.put(key, state)
            if not self.context.batch:
                self._change(key, state)

    def _change(self, key: Any, state: list[Any]) -> None:
        now = self._rows_of(state) if state[1] > 0 else []
        before, after = Counter(state[2]), Counter(now)
        self._changes += [(DELETE, key, row) for row in (before - after).elements()]
        self._changes += [(INSERT, key, row) for row in (after - before).elements()]
        if state[1] > 0:
            self._groups.put(key, [state[0], state[1], now])
        else:
            self._groups.remove(key)

    def _rows_of(self, state: list[Any]) -> list[tuple[Any, ...]]:
        return emit_rows(self.fold, state[0])

    def at_end(self) -> None:
        super().at_end()
        if self.context.batch:
            for key, state in self._groups.items():
                self._changes += [(INSERT, key, row) for row in self._rows_of(state)]

    def flush(self) -> None:
        if not self._changes:
            return
        changes, self._changes = self._changes, []
        assert isinstance(self.key_selector, ColumnKeys)
        width = len(self.key_selector.positions)
        arrays = key_columns([key for _, key, _ in changes], list(self.schema)[:width])
        columns = zip(*(row for _, _, row in changes), strict=True)
        arrays += [array_of(values, kind) for values, kind in zip(columns, self.result_types, strict=True)]
        if self.changelog:
            arrays.append(pa.array([kind for kind, _, _ in changes], pa.int8()))
        self.send(pa.RecordBatch.from_arrays(arrays, schema=self.schema))


class WindowTableAggregate(WindowAggregate):
    """A table aggregate over windows. It sends the rows of a group once, when the window ends."""

    def __init__(
        self,
        keys: Sequence[int],
        windows: WindowKeys,
        fold: UserAggregate,
        results: tuple[Sequence[DataType], Sequence[int]],
        signed: bool,
        form: OutputForm,
    ) -> None:
        """Create an operator.

        `results` are the types of the function's results, and the numbers of the window properties behind them: 0 for
        start, 1 for end, 2 for time.
        """
        super().__init__(keys, windows, [fold], signed, form)
        self.fold = fold
        self.result_types = tuple(results[0])
        self.properties = tuple(results[1])

    def flush(self) -> None:
        complete, self._complete = self._complete, []
        rows = [(key, row) for key, own in complete for row in emit_rows(self.fold, own[0])]
        if not rows:
            return
        width = len(self.windows.plain)
        keys = zip(*(key for key, _ in rows), strict=True)
        by_key = list(keys)
        arrays = [column_of(by_key[index], self.schema.field(index).type) for index in range(width)]
        made = zip(*(row for _, row in rows), strict=True)
        arrays += [array_of(values, kind) for values, kind in zip(made, self.result_types, strict=True)]
        for number in self.properties:
            arrays.append(column_of(by_key[width + number], self.schema.field(len(arrays)).type))
        self.send(pa.RecordBatch.from_arrays(arrays, schema=self.schema))


def emit_rows(fold: UserAggregate, accumulator: Any) -> list[tuple[Any, ...]]:
    """Return the rows that a function emits for a group."""
    try:
        emitted = list(fold.function.emit_value(accumulator))
    except Exception as error:
        raise TableException(f"the function {fold.call.function} failed: {error!r}") from error
    return [
        tuple(freeze_result(row)) if isinstance(row, Row | tuple | list) else (freeze_result(row),) for row in emitted
    ]
