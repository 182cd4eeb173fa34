"""A filter over a changelog whose condition can change its value between two calls, such as CURRENT_TIMESTAMP."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from penstock.engine.operators.operator import OperatorContext
from penstock.table.functions.user_functions import close_functions, open_functions
from penstock.table.logical.rex import Rex
from penstock.table.operators.base.compiled_expressions import evaluator, moment_of, truth
from penstock.table.operators.base.function_context import function_context
from penstock.table.operators.base.output_form import OutputForm
from penstock.table.operators.base.query_batches import DELETE, INSERT, adds, make_batch
from penstock.table.operators.base.table_operator import TableOperator


class MovingFilter(TableOperator):
    """Makes upserts: +I of each added row for which the condition is TRUE, and -D of the key of every other row.

    The condition does not decide about retractions, because its value may have changed since the row came.
    """

    def __init__(self, condition: Rex, form: OutputForm, zone: str = "UTC") -> None:
        super().__init__(form)
        self.condition = condition
        self.zone = zone

    def open(self, context: OperatorContext) -> None:
        super().open(context)
        self._keeps = evaluator(self.condition)
        open_functions([self.condition], function_context(context))

    def close(self) -> None:
        if hasattr(self, "context"):
            close_functions([self.condition])

    def batch(self, batch: pa.RecordBatch) -> None:
        stays = pc.and_(adds(batch), truth(self._keeps(batch, moment_of(self, self.zone))))
        kinds = pc.if_else(stays, pa.scalar(INSERT, pa.int8()), pa.scalar(DELETE, pa.int8()))
        self.send(make_batch([*batch.columns[:-1], kinds], self.schema, batch.num_rows))
