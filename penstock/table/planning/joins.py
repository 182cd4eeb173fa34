"""Builders of joins and set operations."""

from __future__ import annotations

from penstock.table.arrow import arrow_schema
from penstock.table.plan.nodes import Join, Relation, SetOperation
from penstock.table.planning.builder import Build, Builder, label_of
from penstock.table.planning.join_conditions import JoinKeys, join_keys
from penstock.table.planning.physical import Physical
from penstock.table.planning.scans import union_all
from penstock.table.runtime.join import Join as JoinOperator
from penstock.table.runtime.join import JoinSpec
from penstock.table.runtime.set_operation import SetOperationOperator


def join(builder: Builder, relation: Join) -> Physical:
    return _regular(builder, relation, join_keys(relation))


def _regular(builder: Builder, relation: Join, keys: JoinKeys) -> Physical:
    inputs = builder.build(relation.left), builder.build(relation.right)
    spec = join_spec(builder, relation, keys, inputs)
    changes = relation.kind not in {"INNER", "SEMI"} or any(input.changelog for input in inputs)
    changelog = changes and not builder.batch
    operator = JoinOperator(spec, arrow_schema(relation.columns, changelog), builder.ttl)
    stream = builder.two_inputs(inputs, spec.keys, relation, "Join", operator)
    return Physical(stream, relation.columns, changelog, label_of(relation, "Join"), inputs)


def join_spec(builder: Builder, relation: Join, keys: JoinKeys, inputs: tuple[Physical, Physical]) -> JoinSpec:
    return JoinSpec(
        relation.kind,
        (tuple(keys.left), tuple(keys.right)),
        tuple(keys.null_safe),
        keys.residual(),
        (arrow_schema(relation.left.columns), arrow_schema(relation.right.columns)),
        (inputs[0].changelog, inputs[1].changelog),
        builder.zone,
    )


def set_operation(builder: Builder, relation: SetOperation) -> Physical:
    if relation.kind == "UNION":
        return union_all(builder, relation)
    left, *others = relation.parts
    result = builder.build(left)
    for other in others:
        result = _set_operation(builder, relation, result, other)
    return result


def _set_operation(builder: Builder, relation: SetOperation, left: Physical, other: Relation) -> Physical:
    inputs = left, builder.build(other)
    changes = relation.kind == "EXCEPT" or any(input.changelog for input in inputs)
    changelog, width = changes and not builder.batch, len(relation.columns)
    schema = arrow_schema(relation.columns, changelog)
    changelogs = inputs[0].changelog, inputs[1].changelog
    operator = SetOperationOperator(relation.kind, relation.all, schema, changelogs, width, builder.ttl)
    keys = range(width), range(width)
    name = relation.details().title()
    stream = builder.two_inputs(inputs, keys, relation, name, operator)
    return Physical(stream, relation.columns, changelog, label_of(relation, "SetOperation"), inputs)


BUILDERS: dict[type, Build] = {Join: join, SetOperation: set_operation}
