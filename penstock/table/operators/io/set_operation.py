"""INTERSECT and EXCEPT, with and without ALL. The counts of a row on both sides give its count in the result."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from penstock.engine.operators.operator import OperatorContext
from penstock.engine.records.columns import Columns
from penstock.table.logical.kinds import SetKind
from penstock.table.operators.base.output_form import OutputForm
from penstock.table.operators.base.query_batches import DELETE, INSERT, adds
from penstock.table.operators.base.query_state import store
from penstock.table.operators.base.table_operator import TwoInputTableOperator


class SetOperationOperator(TwoInputTableOperator):
    """State of a row: [count in the left, count in the right]. The whole row is the key."""

    def __init__(
        self, kind: str, all: bool, form: OutputForm, changelogs: tuple[bool, bool], width: int, ttl: int
    ) -> None:
        super().__init__((range(width), range(width)), form)
        self.kind = kind
        self.all = all
        self.changelogs = changelogs
        self.width = width
        self.ttl = ttl

    def open(self, context: OperatorContext) -> None:
        super().open(context)
        assert self.keyed is not None
        self._counts = store(self.keyed, "counts", self.ttl)
        self.only_final = context.batch

    def left(self, batch: pa.RecordBatch) -> None:
        self._take(0, batch)

    def right(self, batch: pa.RecordBatch) -> None:
        self._take(1, batch)

    def _take(self, side: int, batch: pa.RecordBatch) -> None:
        found = Columns(batch).keys(self.selectors[side])
        assert found is not None
        signs = pc.if_else(adds(batch), 1, -1) if self.changelogs[side] else pa.array([1] * batch.num_rows)
        grouped = pa.table([found.which, signs], names=["row", "sign"]).group_by("row", use_threads=False)
        for each in grouped.aggregate([("sign", "sum")]).to_pylist():
            self._change(found.distinct[each["row"]], side, each["sign_sum"])

    def _change(self, key: object, side: int, by: int) -> None:
        counts: list[int] = list(self._counts.get(key) or (0, 0))
        before = self._copies(counts)
        counts[side] += by
        now = self._copies(counts)
        if any(counts):
            self._counts.put(key, counts)
        else:
            self._counts.remove(key)
        row = (key,) if self.width == 1 else key
        for _ in range(abs(now - before)):
            self.gather(INSERT if now > before else DELETE, row)  # type: ignore[arg-type]

    def _copies(self, counts: list[int]) -> int:
        left, right = (max(count, 0) for count in counts)
        if self.kind == SetKind.INTERSECT:
            return min(left, right) if self.all else int(left > 0 and right > 0)
        return max(left - right, 0) if self.all else int(left > 0 and right == 0)
