"""Builders of group aggregates."""

from __future__ import annotations

from collections.abc import Sequence

from penstock.table.arrow import arrow_schema
from penstock.table.plan.nodes import Aggregate, Expand, Relation
from penstock.table.planning.builder import Build, Builder, label_of
from penstock.table.planning.physical import Physical
from penstock.table.runtime.aggregates import Fold, VectorFold, folds_for
from penstock.table.runtime.expand import ExpandOperator
from penstock.table.runtime.group_aggregate import GroupAggregate, LocalAggregate, part_schema


def aggregate(builder: Builder, relation: Aggregate) -> Physical:
    input = builder.build(relation.input)
    signed = input.changelog
    folds = folds_for(relation.calls, relation.input.columns, signed)
    changelog = not builder.batch and (signed or bool(relation.calls))
    schema = arrow_schema(relation.columns, changelog)
    operator = GroupAggregate(relation.keys, folds, signed, schema, builder.ttl)
    before, keys = input, relation.keys
    if in_two_phases(builder, folds):
        before, keys = local(builder, relation, input, folds), tuple(range(len(relation.keys)))
        operator.parts_come = True
    stream = builder.keyed(before, keys, relation, "Group Aggregate", operator)
    upsert_key = tuple(range(len(relation.keys)))
    return Physical(stream, relation.columns, changelog, label_of(relation, "GroupAggregate"), (before,), upsert_key)


def in_two_phases(builder: Builder, folds: Sequence[Fold]) -> bool:
    """Whether to aggregate before the exchange: if there is one, and every function can."""
    return builder.env.get_parallelism() > 1 and all(isinstance(fold, VectorFold) for fold in folds)


def local(builder: Builder, relation: Aggregate, input: Physical, folds: Sequence[Fold]) -> Physical:
    fields = [input.schema.field(key) for key in relation.keys]
    schema = part_schema(fields, folds, input.changelog)
    operator = LocalAggregate(relation.keys, folds, input.changelog, schema)
    stream = builder.then(input, relation, "Local Group Aggregate", operator)
    label = label_of(relation, "LocalGroupAggregate")
    return Physical(stream, input.columns, False, label, (input,))


def expand(builder: Builder, relation: Expand) -> Physical:
    input = builder.build(relation.input)
    schema = arrow_schema(relation.columns, input.changelog)
    operator = ExpandOperator(relation.keys, relation.sets, schema, input.changelog)
    stream = builder.then(input, relation, "Expand", operator)
    return Physical(stream, relation.columns, input.changelog, label_of(relation, "Expand"), (input,))


def is_aggregate(relation: Relation) -> bool:
    return isinstance(relation, Aggregate)


BUILDERS: dict[type, Build] = {Aggregate: aggregate, Expand: expand}
