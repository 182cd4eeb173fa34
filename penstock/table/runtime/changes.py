"""Small operators on the kinds of change of rows."""

from __future__ import annotations

import pyarrow as pa

from penstock.table.runtime.batches import inserts
from penstock.table.runtime.table_operator import TableOperator


class WithKinds(TableOperator):
    """Makes a changelog of rows that are all inserts."""

    def batch(self, batch: pa.RecordBatch) -> None:
        self.send(pa.RecordBatch.from_arrays([*batch.columns, inserts(batch.num_rows)], schema=self.schema))
