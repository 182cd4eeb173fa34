"""Aggregation in two phases: before and after the exchange by key."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from penstock.engine.operators.operator import Operator
from penstock.table.builders.builder import Builder, label_of
from penstock.table.builders.physical import Physical
from penstock.table.logical.nodes import Aggregate
from penstock.table.operators.aggregate.functions import Fold, VectorFold
from penstock.table.operators.aggregate.group_aggregate import LocalAggregate, part_schema


def in_two_phases(builder: Builder, folds: Sequence[Fold]) -> bool:
    """Return True if rows are also aggregated before the exchange: with several subtasks, if every fold supports it."""
    return builder.is_parallel and all(isinstance(fold, VectorFold) for fold in folds)


def local(
    builder: Builder, relation: Aggregate, input: Physical, folds: Sequence[Fold], first: Operator | None = None
) -> Physical:
    """Build the first phase: `first`, or an operator that groups by the keys of the relation."""
    plain = LocalAggregate(relation.keys, folds, input.changelog, local_schema(relation, input, folds))
    stream = builder.then(input, relation, "Local Group Aggregate", first or plain)
    for ref in stream.refs:  # a DataFrame has no refs
        ref.node.is_numbered = False  # a plan with a parallelism of 1 lacks this operator
    label = label_of(relation, "LocalGroupAggregate")
    return Physical(stream, input.columns, False, label, (input,))


def local_schema(relation: Aggregate, input: Physical, folds: Sequence[Fold]) -> pa.Schema:
    """Return the schema of the first phase's output: keys, then parts."""
    return part_schema([input.schema.field(key) for key in relation.keys], folds, input.changelog)
