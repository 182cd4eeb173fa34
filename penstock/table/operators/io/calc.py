"""Filter and projection in one operator, in columns."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from penstock.engine.operators.operator import OperatorContext
from penstock.table.functions.user_functions import close_functions, open_functions
from penstock.table.logical.rex import Rex
from penstock.table.operators.base.compiled_expressions import evaluator, evaluators, moment_of, truth
from penstock.table.operators.base.function_context import function_context
from penstock.table.operators.base.output_form import OutputForm
from penstock.table.operators.base.query_batches import kinds_of, make_batch
from penstock.table.operators.base.table_operator import TableOperator
from penstock.table.operators.base.update_pairs import with_pairs


class Calc(TableOperator):
    """Keeps rows for which a condition is TRUE, and computes expressions.

    An update remains one if both its rows are kept.
    """

    def __init__(
        self, exprs: Sequence[Rex], condition: Rex | None, form: OutputForm, changelog: bool, zone: str = "UTC"
    ) -> None:
        super().__init__(form)
        self.exprs = tuple(exprs)
        self.condition = condition
        self.changelog = changelog
        self.zone = zone

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
        kinds = kinds_of(batch) if self.changelog else None
        if self._keeps is not None:
            mask = truth(self._keeps(batch, moment))
            batch = batch.filter(mask)
            if not batch.num_rows:
                return
            if kinds is not None:
                kinds = with_pairs(kinds.filter(mask), np.flatnonzero(mask))
        arrays = [compute(batch, moment) for compute in self._columns]
        if kinds is not None:
            arrays.append(kinds)
        self.send(make_batch(arrays, self.schema, batch.num_rows))
