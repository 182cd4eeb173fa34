"""What a table demands of the rows that are written into it."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

from penstock.errors import RecordError
from penstock.table.runtime.batches import adds
from penstock.table.runtime.table_operator import TableOperator


class NotNull(TableOperator):
    """Rows with NULL where the table allows none: an error, or they are dropped.

    A row that is taken back may have NULL anywhere: its key is all that some sources know of it.
    """

    def __init__(self, columns: Sequence[int], schema: pa.Schema, changelog: bool, drops: bool) -> None:
        super().__init__(schema)
        self.columns = tuple(columns)
        self.changelog = changelog
        self.drops = drops

    def batch(self, batch: pa.RecordBatch) -> None:
        for position in self.columns:
            if not batch.column(position).null_count:
                continue
            right = self._right(batch, position)
            if self.drops:
                batch = batch.filter(right)
            elif right.false_count:
                raise RecordError(
                    f"column '{self.schema.names[position]}' is NOT NULL, and a NULL is written into it; with "
                    "'table.exec.sink.not-null-enforcer' = 'DROP' such rows are left out"
                )
        self.send(batch)

    def _right(self, batch: pa.RecordBatch, position: int) -> pa.BooleanArray:
        valid = pc.is_valid(batch.column(position))
        return pc.or_(valid, pc.invert(adds(batch))) if self.changelog else valid
