"""Grouping sets: every row occurs once for each set."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from penstock.table.operators.base.output_form import OutputForm
from penstock.table.operators.base.query_batches import kinds_of
from penstock.table.operators.base.table_operator import TableOperator


class ExpandOperator(TableOperator):
    """Sends a batch for each set: keys outside of the set are NULL, and one more column has the id of the set.

    The id has a bit for each key, the first key highest. The bit is 1 if the key is not in the set.
    """

    def __init__(self, keys: Sequence[int], sets: Sequence[Sequence[int]], form: OutputForm, changelog: bool) -> None:
        super().__init__(form)
        self.keys = tuple(keys)
        self.sets = tuple(tuple(one) for one in sets)
        self.changelog = changelog

    def batch(self, batch: pa.RecordBatch) -> None:
        count = batch.num_rows
        width = batch.num_columns - (1 if self.changelog else 0)
        for kept in self.sets:
            missing = [key for key in self.keys if key not in kept]
            arrays = [
                pa.nulls(count, batch.column(index).type) if index in missing else batch.column(index)
                for index in range(width)
            ]
            arrays.append(pa.repeat(pa.scalar(set_id(self.keys, kept), self.schema.field(width).type), count))
            if self.changelog:
                arrays.append(kinds_of(batch))
            self.send(pa.RecordBatch.from_arrays(arrays, schema=self.schema))


def set_id(keys: Sequence[int], kept: Sequence[int]) -> int:
    """Return the id of a grouping set.

    It has a bit for each key, the first key highest, that is 1 if the key is not in it.
    """
    return sum(1 << (len(keys) - 1 - place) for place, key in enumerate(keys) if key not in kept)
