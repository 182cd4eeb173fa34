"""LIMIT without ORDER BY: the first rows that come."""

from __future__ import annotations

import pyarrow as pa

from penstock.engine.operators.operator import OperatorContext
from penstock.table.operators.base.output_form import OutputForm
from penstock.table.operators.base.query_state import store
from penstock.table.operators.base.table_operator import KeyedTableOperator


class Limit(KeyedTableOperator):
    """State: the number of rows that have come."""

    def __init__(self, offset: int, limit: int | None, form: OutputForm) -> None:
        super().__init__((), form)
        self.offset = offset
        self.limit = limit

    def open(self, context: OperatorContext) -> None:
        super().open(context)
        assert self.keyed is not None
        self._counts = store(self.keyed, "count")

    def batch(self, batch: pa.RecordBatch) -> None:
        count: int = self._counts.get(()) or 0
        self._counts.put((), count + batch.num_rows)
        first = max(self.offset - count, 0)
        if self.limit is None:
            self.send(batch.slice(first))
        else:
            last = self.offset + self.limit - count
            self.send(batch.slice(first, max(last - first, 0)))
