"""The conversion of connectors' records to batches: batches pass, and rows are gathered."""

from __future__ import annotations

from penstock.engine.records.columns import Columns
from penstock.engine.records.elements import Chunk
from penstock.table.operators.io.row_conversions import FromValues


class FromRecords(FromValues):
    """Converts the records of a source to batches. Batches with the right schema pass unchanged."""

    def chunk(self, chunk: Chunk) -> None:
        columns = chunk.columns
        if columns is not None and columns.batch.schema.equals(self._schema):
            self.emit_chunk(Chunk.of(Columns(self._with_pairs(columns.batch))) if self.changelog else chunk)
        else:
            super().chunk(chunk)
