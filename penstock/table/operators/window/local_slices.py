"""The first phase of window aggregates before the exchange, in columns."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from penstock.engine.operators.operator import OperatorContext
from penstock.table.operators.aggregate.column_groups import combine_parts
from penstock.table.operators.aggregate.functions.fold import Fold, VectorFold
from penstock.table.operators.aggregate.group_aggregate import with_counter
from penstock.table.operators.aggregate.local_aggregate import signs_of
from penstock.table.operators.base.output_form import OutputForm
from penstock.table.operators.base.table_operator import HoldingLocalOperator
from penstock.table.operators.window.window_aggregate import WindowKeys


class LocalSlices(HoldingLocalOperator):
    """Sends the keys and the parts of every fold, as SliceAggregate expects them. All bounds are the end of the slice.

    Rows are held back until the watermark advances or the epoch ends.
    """

    def __init__(
        self, keys: Sequence[int], windows: WindowKeys, folds: Sequence[Fold], signed: bool, form: OutputForm
    ) -> None:
        super().__init__(form)
        self.keys = tuple(keys)
        self.windows = windows
        self.folds = [fold for fold in with_counter(folds, signed) if isinstance(fold, VectorFold)]
        self.signed = signed

    def open(self, context: OperatorContext) -> None:
        super().open(context)
        self._grouped_by = (self.windows.end, *self.windows.plain)
        parts = [self.schema.field(index) for index in range(len(self.keys), len(self.schema))]
        self._form = pa.schema([*(self.schema.field(position) for position in self._grouped_by), *parts])

    def whole(self, batch: pa.RecordBatch) -> None:
        signs = signs_of(batch, self.signed)
        keys = [batch.column(self.keys[position]) for position in self._grouped_by]
        made = combine_parts(keys, [part for fold in self.folds for part in fold.parts(batch, signs)], self._form)
        found = dict(zip(self._grouped_by, made.columns, strict=False))
        for position in self.windows.window:
            found[position] = made.column(0).cast(pa.int64()).cast(self.schema.field(position).type)
        arrays = [*(found[position] for position in range(len(self.keys))), *made.columns[len(self._grouped_by) :]]
        self.send(pa.RecordBatch.from_arrays(arrays, schema=self.schema))
