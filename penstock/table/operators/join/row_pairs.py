"""Pairs of rows of two inputs, and the condition that accepts them."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from penstock.engine.operators.operator import Operator
from penstock.table.logical.rex import Rex
from penstock.table.operators.base.compiled_expressions import evaluator, moment_of, truth
from penstock.table.operators.base.query_batches import Held, batch_of


class Condition:
    """A condition over the columns of a left and a right row. Without a condition, every pair is accepted."""

    def __init__(self, rex: Rex | None, schema: pa.Schema, zone: str) -> None:
        """Create a condition. `schema` has the columns of both sides."""
        self._evaluate = None if rex is None else evaluator(rex)
        self._schema = schema
        self._zone = zone

    def __bool__(self) -> bool:
        return self._evaluate is not None

    def accept(self, pairs: Sequence[Held], operator: Operator) -> list[bool]:
        """Return for each pair, given as a row of both sides, whether it is accepted."""
        if self._evaluate is None or not pairs:
            return [True] * len(pairs)
        found: list[bool] = self.mask(batch_of(pairs, self._schema), operator).to_pylist()
        return found

    def mask(self, batch: pa.RecordBatch, operator: Operator) -> pa.Array:
        """Return the mask of accepted pairs, given as a batch with the columns of both sides.

        There must be a condition.
        """
        assert self._evaluate is not None
        return truth(self._evaluate(batch, moment_of(operator, self._zone)))


def both_sides(left: pa.Schema, right: pa.Schema) -> pa.Schema:
    """Return the columns of both sides. Their names may repeat."""
    return pa.schema([*left, *right])
