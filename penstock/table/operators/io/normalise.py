"""The conversion of upserts to a changelog. State gives the previous row, so that it can be retracted."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from penstock.engine.operators.operator import OperatorContext
from penstock.engine.records.columns import Columns
from penstock.table.operators.base.output_form import OutputForm
from penstock.table.operators.base.query_batches import DELETE, INSERT, UPDATE_AFTER, UPDATE_BEFORE, state_rows
from penstock.table.operators.base.query_state import store
from penstock.table.operators.base.table_operator import HoldingTableOperator


class ChangelogNormalize(HoldingTableOperator):
    """State of a key: its row. Of several rows of a key in an epoch, only the last one counts."""

    def __init__(
        self,
        keys: Sequence[int],
        form: OutputForm,
        ttl: int = 0,
        every_version: bool = False,
        dated_deletions: bool = False,
    ) -> None:
        """Create an operator. `every_version` and `dated_deletions` are for temporal joins, which need all versions.

        With `every_version`, each row of a key in an epoch counts. With `dated_deletions`, a deletion is sent with its
        own time.
        """
        super().__init__(keys, form)
        self.ttl = ttl
        self.every_version = every_version
        self.dated_deletions = dated_deletions

    def open(self, context: OperatorContext) -> None:
        super().open(context)
        assert self.keyed is not None
        self._rows_by_key = store(self.keyed, "rows", self.ttl)
        self.only_final = context.batch

    def whole(self, batch: pa.RecordBatch) -> None:
        found = Columns(batch).keys(self.key_selector)  # type: ignore[arg-type]
        assert found is not None
        codes = found.which.to_numpy(zero_copy_only=False)
        last = np.full(len(found.distinct), -1)
        last[codes] = np.arange(len(codes))
        picked = np.arange(len(codes)) if self.every_version else np.sort(last[last >= 0])
        for code, (*row, kind) in zip(codes[picked], state_rows(batch.take(pa.array(picked))), strict=True):
            self._change(found.distinct[code], tuple(row), kind)

    def _change(self, key: object, row: tuple[object, ...], kind: int) -> None:
        before = self._rows_by_key.get(key)
        if kind in {DELETE, UPDATE_BEFORE}:
            if before is not None:
                self._rows_by_key.remove(key)
                self.gather(DELETE, _fill(row, before) if self.dated_deletions else before)
            return
        self._rows_by_key.put(key, row)
        if before is None:
            self.gather(INSERT, row)
        elif before != row:
            self.gather(UPDATE_BEFORE, before)
            self.gather(UPDATE_AFTER, row)


def _fill(row: tuple[object, ...], before: tuple[object, ...]) -> tuple[object, ...]:
    """Return a deletion, which may have only its key and its time, with the other values of the deleted row."""
    return tuple(old if new is None else new for new, old in zip(row, before, strict=True))
