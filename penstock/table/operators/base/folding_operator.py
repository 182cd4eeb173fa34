"""The base of operators that fold rows into accumulators. It opens and closes the users' functions in folds."""

from __future__ import annotations

from collections.abc import Sequence

from penstock.engine.operators.operator import OperatorContext
from penstock.table.operators.aggregate.functions.fold import Fold
from penstock.table.operators.base.function_context import function_context
from penstock.table.operators.base.table_operator import KeyedTableOperator


class FoldingOperator(KeyedTableOperator):
    """The first base of an operator, so that it opens folds before another base restores state."""

    folds: Sequence[Fold]

    def open(self, context: OperatorContext) -> None:
        super().open(context)
        for fold in self.folds:
            fold.open(function_context(context))

    def close(self) -> None:
        for fold in self.folds:
            fold.close()
        super().close()
