"""Builders of group aggregates."""

from __future__ import annotations

from penstock.errors import TableException
from penstock.table.builders.builder import Build, Builder, label_of
from penstock.table.builders.phases import in_two_phases, local
from penstock.table.builders.physical import Physical
from penstock.table.builders.window_aggregate_builders import slice_table, window_aggregate, window_keys
from penstock.table.logical.nodes import PROCTIME, Aggregate, Expand, GroupWindow, WindowTable
from penstock.table.operators.aggregate.functions import folds_for
from penstock.table.operators.aggregate.group_aggregate import GroupAggregate
from penstock.table.operators.io.expand import ExpandOperator
from penstock.table.operators.window.count_windows import CountWindows
from penstock.table.operators.window.window_assignment import SessionTableOperator, WindowSpec, WindowTableOperator
from penstock.table.physical.physical_nodes import SliceTable
from penstock.table.types.arrow_forms import arrow_schema


def aggregate(builder: Builder, relation: Aggregate) -> Physical:
    """Build an aggregate over windows, or over groups."""
    keys = None if builder.batch else window_keys(relation)
    return _group_aggregate(builder, relation) if keys is None else window_aggregate(builder, relation, keys)


def _group_aggregate(builder: Builder, relation: Aggregate) -> Physical:
    if not builder.batch and any(call.function == "APPROX_COUNT_DISTINCT" for call in relation.calls):
        raise TableException("APPROX_COUNT_DISTINCT aggregate function does not support yet for streaming.")
    input = builder.build(relation.input)
    signed = input.changelog
    folds = folds_for(relation.calls, relation.input.columns, signed)
    changelog = not builder.batch and (signed or bool(relation.calls))
    schema = arrow_schema(relation.columns, changelog)
    operator = GroupAggregate(relation.keys, folds, signed, schema, builder.ttl_of(relation.ttl))
    before, keys = input, relation.keys
    if in_two_phases(builder, folds):
        before, keys = local(builder, relation, input, folds), tuple(range(len(relation.keys)))
        operator.parts_come = True
    stream = builder.then_by_key(before, keys, relation, "Group Aggregate", operator)
    upsert_key = tuple(range(len(relation.keys)))
    return Physical(stream, relation.columns, changelog, label_of(relation, "GroupAggregate"), (before,), upsert_key)


def expand(builder: Builder, relation: Expand) -> Physical:
    """Build the operator of grouping sets."""
    input = builder.build(relation.input)
    schema = arrow_schema(relation.columns, input.changelog)
    operator = ExpandOperator(relation.keys, relation.sets, schema, input.changelog)
    stream = builder.then(input, relation, "Expand", operator)
    return Physical(stream, relation.columns, input.changelog, label_of(relation, "Expand"), (input,))


def window_table(builder: Builder, relation: WindowTable) -> Physical:
    """Build a window table function."""
    input = builder.build(relation.input)
    schema = arrow_schema(relation.columns, input.changelog)
    time = None if relation.input.columns[relation.time].time == PROCTIME else relation.time
    label = label_of(relation, "WindowTableFunction")
    if relation.kind == "SESSION" and builder.batch:
        raise TableException("Unaligned windows like session are not supported in batch mode yet.")
    if relation.kind == "SESSION":
        sessions = SessionTableOperator(relation.partition, relation.size, time, schema, input.changelog, builder.zone)
        stream = builder.then_by_key(input, relation.partition, relation, "Session Table", sessions)
        return Physical(stream, relation.columns, input.changelog, label, (input,))
    spec = WindowSpec(relation.kind, relation.size, relation.slide, relation.offset)
    operator = WindowTableOperator(spec, time, schema, input.changelog, builder.zone)
    stream = builder.then(input, relation, "Window Table", operator)
    return Physical(stream, relation.columns, input.changelog, label, (input,))


def count_windows(builder: Builder, relation: GroupWindow) -> Physical:
    """Build windows of a number of rows. All other group windows have become window tables."""
    input = builder.build(relation.input)
    if input.changelog:
        raise TableException("windows of numbers of rows need rows that stay, and this input changes rows")
    folds = folds_for(relation.calls, relation.input.columns, False)
    sizes = relation.size, relation.slide or relation.size
    operator = CountWindows(relation.keys, sizes, folds, arrow_schema(relation.columns))
    stream = builder.then_by_key(input, relation.keys, relation, "Count Windows", operator)
    return Physical(stream, relation.columns, False, label_of(relation, "GroupWindowAggregate"), (input,))


BUILDERS: dict[type, Build] = {
    Aggregate: aggregate,
    Expand: expand,
    WindowTable: window_table,
    SliceTable: slice_table,
    GroupWindow: count_windows,
}
