"""Builders of group aggregates."""

from __future__ import annotations

from collections.abc import Sequence

from penstock.errors import TableException
from penstock.table.arrow import arrow_schema
from penstock.table.plan.nodes import PROCTIME, Aggregate, Expand, GroupWindow, WindowTable
from penstock.table.planning.builder import Build, Builder, label_of
from penstock.table.planning.physical import Physical
from penstock.table.planning.window_columns import END, START, windowed
from penstock.table.runtime.aggregates import Fold, VectorFold, folds_for
from penstock.table.runtime.count_windows import CountWindows
from penstock.table.runtime.expand import ExpandOperator
from penstock.table.runtime.group_aggregate import GroupAggregate, LocalAggregate, part_schema
from penstock.table.runtime.window_aggregate import WindowAggregate, WindowKeys
from penstock.table.runtime.windows import SessionTableOperator, WindowSpec, WindowTableOperator


def aggregate(builder: Builder, relation: Aggregate) -> Physical:
    keys = None if builder.batch else window_keys(relation)
    return _group_aggregate(builder, relation) if keys is None else _window_aggregate(builder, relation, keys)


def window_keys(relation: Aggregate) -> WindowKeys | None:
    """How the keys of a window aggregate are divided; None for an aggregate that is none."""
    windows = windowed(relation.input)
    roles = {} if windows is None else dict(windows.roles)
    found = {position: roles[key] for position, key in enumerate(relation.keys) if key in roles}
    if windows is None or not {START, END} <= set(found.values()):
        return None
    end = next(position for position, role in found.items() if role == END)
    plain = tuple(position for position in range(len(relation.keys)) if position not in found)
    return WindowKeys(plain, tuple(found), end, windows.processing_time, windows.shifted)


def _window_aggregate(builder: Builder, relation: Aggregate, windows: WindowKeys) -> Physical:
    input = builder.build(relation.input)
    folds = folds_for(relation.calls, relation.input.columns, input.changelog)
    schema = arrow_schema(relation.columns)
    operator = WindowAggregate(relation.keys, windows, folds, input.changelog, schema)
    operator.zone = builder.zone
    before, keys = input, [relation.keys[position] for position in windows.plain]
    if in_two_phases(builder, folds):
        before, keys = local(builder, relation, input, folds), list(windows.plain)
        operator.parts_come = True
    stream = builder.keyed(before, keys, relation, "Window Aggregate", operator)
    return Physical(stream, relation.columns, False, label_of(relation, "WindowAggregate"), (before,))


def _group_aggregate(builder: Builder, relation: Aggregate) -> Physical:
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


def window_table(builder: Builder, relation: WindowTable) -> Physical:
    input = builder.build(relation.input)
    schema = arrow_schema(relation.columns, input.changelog)
    time = None if relation.input.columns[relation.time].time == PROCTIME else relation.time
    label = label_of(relation, "WindowTableFunction")
    if relation.kind == "SESSION":
        sessions = SessionTableOperator(relation.partition, relation.size, time, schema, input.changelog, builder.zone)
        stream = builder.keyed(input, relation.partition, relation, "Session Table", sessions)
        return Physical(stream, relation.columns, input.changelog, label, (input,))
    spec = WindowSpec(relation.kind, relation.size, relation.slide, relation.offset)
    operator = WindowTableOperator(spec, time, schema, input.changelog, builder.zone)
    stream = builder.then(input, relation, "Window Table", operator)
    return Physical(stream, relation.columns, input.changelog, label, (input,))


def count_windows(builder: Builder, relation: GroupWindow) -> Physical:
    """Windows of numbers of rows; all other group windows have become window tables."""
    input = builder.build(relation.input)
    if input.changelog:
        raise TableException("windows of numbers of rows need rows that stay, and this input changes rows")
    folds = folds_for(relation.calls, relation.input.columns, False)
    sizes = relation.size, relation.slide or relation.size
    operator = CountWindows(relation.keys, sizes, folds, arrow_schema(relation.columns))
    stream = builder.keyed(input, relation.keys, relation, "Count Windows", operator)
    return Physical(stream, relation.columns, False, label_of(relation, "GroupWindowAggregate"), (input,))


BUILDERS: dict[type, Build] = {
    Aggregate: aggregate,
    Expand: expand,
    WindowTable: window_table,
    GroupWindow: count_windows,
}
