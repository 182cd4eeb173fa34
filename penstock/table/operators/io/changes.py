"""Small operators on the kinds of change of rows, and on the names of columns."""

from __future__ import annotations

import pyarrow as pa

from penstock.table.operators.base.query_batches import inserts, make_batch
from penstock.table.operators.base.table_operator import TableOperator


class WithKinds(TableOperator):
    """Adds the kind INSERT to rows, so that they become a changelog."""

    def batch(self, batch: pa.RecordBatch) -> None:
        self.send(pa.RecordBatch.from_arrays([*batch.columns, inserts(batch.num_rows)], schema=self.schema))


class Renamed(TableOperator):
    """Renames columns."""

    def batch(self, batch: pa.RecordBatch) -> None:
        self.send(make_batch(batch.columns, self.schema, batch.num_rows))
