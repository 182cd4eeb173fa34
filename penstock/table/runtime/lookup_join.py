"""Lookup joins: every row asks an outside system for the rows that belong to it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from penstock.common.types import Row
from penstock.runtime.core.operator import OperatorContext
from penstock.table.arrow import array_of, values_of
from penstock.table.plan.nodes import Columns
from penstock.table.plan.rex import Rex
from penstock.table.runtime.batches import kinds_of
from penstock.table.runtime.expressions import evaluator, moment_of, truth
from penstock.table.runtime.table_operator import TableOperator


class LookupJoin(TableOperator):
    """Looks each different key of a batch up once. Rows that nothing belongs to are padded by a LEFT JOIN."""

    def __init__(
        self,
        lookup: Any,
        keys: Sequence[int],
        sides: tuple[Columns, Columns],
        conditions: tuple[Rex | None, Rex | None],
        outer: bool,
        schema: pa.Schema,
    ) -> None:
        """`conditions` are over the right side alone, before columns are computed, and over both sides."""
        super().__init__(schema)
        self.lookup = lookup
        self.keys = tuple(keys)
        self.sides = sides
        self.condition = conditions[1]
        self.outer = outer
        self.changelog = False
        self.zone = "UTC"

    def open(self, context: OperatorContext) -> None:
        super().open(context)
        self._accepts = None if self.condition is None else evaluator(self.condition)
        self.lookup.open()

    def close(self) -> None:
        if hasattr(self, "context"):
            self.lookup.close()

    def batch(self, batch: pa.RecordBatch) -> None:
        columns = [values_of(batch.column(key), self.sides[0][key].type) for key in self.keys]
        known: dict[tuple[Any, ...], list[Any]] = {}
        positions: list[int] = []
        found: list[Any] = []
        for position, key in enumerate(zip(*columns, strict=True)):
            if key not in known:
                known[key] = [] if None in key else [_plain(row, self.sides[1]) for row in self.lookup.lookup(key)]
            positions += [position] * len(known[key])
            found += known[key]
        joined = self._joined(batch, positions, found)
        if self._accepts is not None and joined.num_rows:
            mask = truth(self._accepts(joined, moment_of(self, self.zone)))
            positions = [position for position, kept in zip(positions, mask.to_pylist(), strict=True) if kept]
            joined = joined.filter(mask)
        if self.outer:
            missing = sorted(set(range(batch.num_rows)) - set(positions))
            padded = self._joined(batch, missing, [(None,) * len(self.sides[1])] * len(missing))
            whole = pa.concat_batches([joined, padded])
            order = pa.array(sorted(range(len(whole)), key=[*positions, *missing].__getitem__))
            joined = whole.take(order) if len(whole) else whole
        self.send(joined)

    def _joined(self, batch: pa.RecordBatch, positions: list[int], rows: list[Any]) -> pa.RecordBatch:
        left = batch.take(pa.array(positions, pa.int64()))
        by_column = list(zip(*rows, strict=True)) if rows else [()] * len(self.sides[1])
        right = [array_of(values, column.type) for values, column in zip(by_column, self.sides[1], strict=True)]
        width = len(self.sides[0])
        rest = [kinds_of(left)] if self.changelog else []
        return pa.RecordBatch.from_arrays([*left.columns[:width], *right, *rest], schema=self.schema)


def _plain(row: Any, columns: Columns) -> tuple[Any, ...]:
    if isinstance(row, Row):
        return tuple(row.get_fields_by_names([column.name for column in columns]))
    return tuple(row)
