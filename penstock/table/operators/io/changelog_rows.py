"""TO_CHANGELOG and FROM_CHANGELOG: the kinds of changes as a column of codes, and codes as the kinds of changes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from penstock.errors import RecordError
from penstock.table.operators.base.output_form import OutputForm
from penstock.table.operators.base.query_batches import INSERT, kinds_of
from penstock.table.operators.base.table_operator import TableOperator
from penstock.table.operators.base.update_pairs import with_pairs


class ChangesAsRows(TableOperator):
    """Sends each change as a row with the code of its kind in front. Changes of a kind without a code are left out.

    `changelog` tells whether the input has kinds; otherwise its rows are inserts.
    """

    def __init__(self, codes: Mapping[int, str], form: OutputForm, changelog: bool) -> None:
        super().__init__(form)
        self.codes = dict(codes)
        self.changelog = changelog

    def batch(self, batch: pa.RecordBatch) -> None:
        if not self.changelog:
            if INSERT in self.codes:
                op = pa.repeat(pa.scalar(self.codes[INSERT], pa.string()), batch.num_rows)
                self.send(self._rows(op, batch.columns))
            return
        words = pa.array([self.codes.get(kind) for kind in range(4)], pa.string())
        op = words.take(kinds_of(batch))
        rows = self._rows(op, batch.columns[:-1])
        self.send(rows.filter(pc.is_valid(op)) if op.null_count else rows)

    def _rows(self, op: pa.Array, columns: list[Any]) -> pa.RecordBatch:
        return pa.RecordBatch.from_arrays([op.cast(self.schema.field(0).type), *columns], schema=self.schema)


class RowsAsChanges(TableOperator):
    """Sends each row as a change. The column `op` holds a code, and `kinds` gives the kind of change for each code."""

    def __init__(self, op: int, kinds: Mapping[str, int], form: OutputForm) -> None:
        super().__init__(form)
        self.op = op
        self.kinds = dict(kinds)

    def batch(self, batch: pa.RecordBatch) -> None:
        codes = batch.column(self.op).to_pylist()
        kinds = [self.kinds.get(code) for code in codes]
        if None in kinds:
            raise RecordError(self._problem(codes[kinds.index(None)]))
        columns = [column for place, column in enumerate(batch.columns) if place != self.op]
        paired = with_pairs(pa.array(kinds, pa.int8()))
        self.send(pa.RecordBatch.from_arrays([*columns, paired], schema=self.schema))

    def _problem(self, code: str | None) -> str:
        if code is None:
            return "Received NULL op code. Every row of FROM_CHANGELOG has a code of its change."
        return f"Received invalid op code '{code}'. Defined op codes are: {', '.join(self.kinds)}."
