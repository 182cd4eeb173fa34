"""Lookup joins: every row looks up the rows of an external system that belong to it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.api.functions.key_selectors import ColumnKeys
from penstock.common.types import Row
from penstock.engine.operators.operator import OperatorContext
from penstock.table.logical.nodes import Columns
from penstock.table.logical.rex import Rex
from penstock.table.operators.base.compiled_expressions import evaluator, evaluators, moment_of, truth
from penstock.table.operators.base.output_form import OutputForm
from penstock.table.operators.base.query_batches import kinds_of, make_batch
from penstock.table.operators.base.state_matching import Keyed, Pairs, pairs_by_key, rows_by_key
from penstock.table.operators.base.table_operator import TableOperator
from penstock.table.operators.base.update_pairs import with_pairs_of_rows
from penstock.table.types.arrow_forms import array_of, arrow_schema, values_of


@dataclass(frozen=True)
class LookedUp:
    """The looked-up columns, and the expressions and the condition of the query over them."""

    columns: Columns
    exprs: tuple[Rex, ...]
    condition: Rex | None = None


class LookupJoin(TableOperator):
    """Looks up each different key of a batch once. A LEFT JOIN pads rows that find nothing."""

    def __init__(
        self,
        lookup: Any,
        keys: Sequence[int],
        left: Columns,
        right: LookedUp,
        condition: Rex | None,
        outer: bool,
        form: OutputForm,
        changelog: bool = False,
        zone: str = "UTC",
    ) -> None:
        """Create an operator. `condition` is over both sides."""
        super().__init__(form)
        self.lookup = lookup
        self.keys = tuple(keys)
        self.left = left
        self.right = right
        self.condition = condition
        self.outer = outer
        self.changelog = changelog
        self.zone = zone

    def open(self, context: OperatorContext) -> None:
        super().open(context)
        self._accepts = None if self.condition is None else evaluator(self.condition)
        self._keeps = None if self.right.condition is None else evaluator(self.right.condition)
        self._computes = evaluators(self.right.exprs)
        self.lookup.open()

    def close(self) -> None:
        if hasattr(self, "context"):
            self.lookup.close()

    def batch(self, batch: pa.RecordBatch) -> None:
        joined, positions = self.join_batch(batch)
        self.send(with_pairs_of_rows(joined, positions) if self.changelog else joined)

    def join_batch(self, batch: pa.RecordBatch) -> tuple[pa.RecordBatch, pa.Array]:
        """Return the output rows, and for each of them the position of its input row."""
        positions, found = self._find_rows(batch)
        positions, columns = self._compute(positions, found)
        joined = self._join_columns(batch, positions, columns)
        if self._accepts is not None and joined.num_rows:
            mask = truth(self._accepts(joined, moment_of(self, self.zone)))
            joined, positions = joined.filter(mask), positions.filter(mask)
        if self.outer:
            joined, positions = self._with_missing(batch, positions, joined)
        return joined, positions

    def _find_rows(self, batch: pa.RecordBatch) -> tuple[pa.Array, pa.RecordBatch]:
        """Return the rows that were found, each with the position of its input row."""
        by_key = rows_by_key(batch, ColumnKeys(self.keys))
        candidates, found = pairs_by_key(by_key.codes, [self._look_up(key) for key in self._keys_to_ask(by_key)])
        pieces = list(found) or [Pairs(np.empty(0, np.int64), np.empty(0, np.int64))]
        declared = self.right.columns
        values = zip(*candidates, strict=True) if candidates else ([] for _ in declared)
        arrays = [array_of(list(column), one.type) for column, one in zip(values, declared, strict=True)]
        whole = make_batch(arrays, arrow_schema(declared), len(candidates))
        picks = np.concatenate([piece.picks for piece in pieces])
        return pa.array(np.concatenate([piece.positions for piece in pieces])), whole.take(pa.array(picks))

    def _keys_to_ask(self, by_key: Keyed) -> Iterator[tuple[Any, ...]]:
        """Return the keys in the form that the connector expects."""
        firsts = pa.array(np.unique(by_key.codes, return_index=True)[1])
        columns = [values_of(by_key.batch.column(key).take(firsts), self.left[key].type) for key in self.keys]
        return zip(*columns, strict=True)

    def _look_up(self, key: tuple[Any, ...]) -> list[tuple[Any, ...]]:
        return [] if None in key else [_plain(row, self.right.columns) for row in self.lookup.lookup(key)]

    def _compute(self, positions: pa.Array, batch: pa.RecordBatch) -> tuple[pa.Array, list[pa.Array]]:
        """Apply the query's condition and expressions to the rows that were found."""
        moment = moment_of(self, self.zone)
        if self._keeps is not None:
            mask = truth(self._keeps(batch, moment))
            batch, positions = batch.filter(mask), positions.filter(mask)
        return positions, [compute(batch, moment) for compute in self._computes]

    def _join_columns(self, batch: pa.RecordBatch, positions: pa.Array, columns: list[pa.Array]) -> pa.RecordBatch:
        left = batch.take(positions)
        rest = [kinds_of(left)] if self.changelog else []
        return pa.RecordBatch.from_arrays([*left.columns[: len(self.left)], *columns, *rest], schema=self.schema)

    def _with_missing(
        self, batch: pa.RecordBatch, positions: pa.Array, joined: pa.RecordBatch
    ) -> tuple[pa.RecordBatch, pa.Array]:
        """Add the rows that found nothing. Return all rows in order, and the positions of their input rows."""
        every = pa.array(range(batch.num_rows), pa.int64())
        missing = every.filter(pc.invert(pc.is_in(every, value_set=positions)))
        kinds = [self.schema.field(len(self.left) + index).type for index in range(len(self.right.exprs))]
        padded = self._join_columns(batch, missing, [pa.nulls(len(missing), kind) for kind in kinds])
        both = pa.concat_arrays([positions, missing])
        order = pc.array_sort_indices(both)
        return pa.concat_batches([joined, padded]).take(order), both.take(order)


def _plain(row: Any, columns: Columns) -> tuple[Any, ...]:
    if isinstance(row, Row):
        return tuple(row.get_fields_by_names([column.name for column in columns]))
    return tuple(row)
