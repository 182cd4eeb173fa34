"""Filter and projection in one operator, without a look at single rows."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from penstock.runtime.core.operator import OperatorContext
from penstock.table.functions.user_functions import close_functions, open_functions
from penstock.table.plan.rex import Rex
from penstock.table.runtime.batches import kinds_of, made
from penstock.table.runtime.expressions import evaluator, evaluators, moment_of, truth
from penstock.table.runtime.function_context import function_context
from penstock.table.runtime.table_operator import TableOperator


class Calc(TableOperator):
    """Keeps the rows for which a condition is TRUE, and computes expressions over them. Kinds of change stay."""

    def __init__(self, exprs: Sequence[Rex], condition: Rex | None, schema: pa.Schema, changelog: bool) -> None:
        super().__init__(schema)
        self.exprs = tuple(exprs)
        self.condition = condition
        self.changelog = changelog
        self.zone = "UTC"

    def open(self, context: OperatorContext) -> None:
        super().open(context)
        self._keeps = None if self.condition is None else evaluator(self.condition)
        self._columns = evaluators(self.exprs)
        open_functions(self._rexes(), function_context(context))

    def close(self) -> None:
        if hasattr(self, "context"):
            close_functions(self._rexes())

    def _rexes(self) -> list[Rex]:
        return [*self.exprs, *([] if self.condition is None else [self.condition])]

    def batch(self, batch: pa.RecordBatch) -> None:
        moment = moment_of(self, self.zone)
        if self._keeps is not None:
            batch = batch.filter(truth(self._keeps(batch, moment)))
            if not batch.num_rows:
                return
        arrays = [compute(batch, moment) for compute in self._columns]
        if self.changelog:
            arrays.append(kinds_of(batch))
        self.send(made(arrays, self.schema, batch.num_rows))
