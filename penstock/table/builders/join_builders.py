"""Builders of joins and set operations."""

from __future__ import annotations

from collections.abc import Sequence

from penstock.table.builders.builder import Build, Builder, label_of
from penstock.table.builders.leaf_builders import union_all
from penstock.table.builders.lookup_builder import lookup_join
from penstock.table.builders.physical import Physical
from penstock.table.functions import resolve
from penstock.table.logical.nodes import PROCTIME, ROWTIME, Join, Relation, SetOperation
from penstock.table.logical.rex import Rex, shift_refs
from penstock.table.operators.io.set_operation import SetOperationOperator
from penstock.table.operators.join.append_join import AppendJoin
from penstock.table.operators.join.interval_join_operator import Interval, IntervalJoin
from penstock.table.operators.join.regular_join import Join as JoinOperator
from penstock.table.operators.join.regular_join import JoinSpec
from penstock.table.operators.join.temporal_join import TemporalJoin
from penstock.table.operators.window.window_join import WindowJoin
from penstock.table.rules.join_conditions import JoinKeys, join_keys, time_bounds
from penstock.table.rules.upsert_keys import upsert_keys
from penstock.table.rules.versioned import version_time, with_every_version
from penstock.table.rules.window_columns import END, START, window_bounds
from penstock.table.types.arrow_forms import arrow_schema


def join(builder: Builder, relation: Join) -> Physical:
    """Build a temporal, window, interval or regular join."""
    keys = join_keys(relation)
    if relation.temporal is not None:
        return _temporal(builder, relation, keys)
    if builder.batch:
        return _regular(builder, relation, keys)
    bounds = _window_bounds(relation, keys)
    if bounds is not None:
        return _window_join(builder, relation, keys, bounds)
    return _interval(builder, relation, keys) or _regular(builder, relation, keys)


# --- interval ---
def _interval(builder: Builder, relation: Join, keys: JoinKeys) -> Physical | None:
    """Build an interval join, or return None if the condition does not bound both times, or an input is a changelog."""
    found = time_bounds(relation, _with_equal_times(relation, keys))
    if found is None or relation.kind in {"SEMI", "ANTI"}:
        return None
    bounds, rest = found
    inputs = builder.build(relation.left), builder.build(relation.right)
    if any(input.changelog for input in inputs):
        return None
    keys.rest = rest
    kinds = {relation.left.columns[bounds.left].time, relation.right.columns[bounds.right].time}
    if len(kinds) > 1:
        return None
    spec = join_spec(builder, relation, keys, inputs)
    interval = Interval((bounds.left, bounds.right), bounds.lower, bounds.upper, kinds == {PROCTIME})
    operator = IntervalJoin(spec, interval, arrow_schema(relation.columns))
    stream = builder.two_inputs(inputs, spec.keys, relation, "Interval Join", operator)
    return Physical(stream, relation.columns, False, label_of(relation, "IntervalJoin"), inputs)


def _with_equal_times(relation: Join, keys: JoinKeys) -> list[Rex]:
    """Return the conditions that are not keys. Equal times are a bound, and a key too."""
    width = len(relation.left.columns)
    times = [
        resolve("=", (relation.left.ref(left), shift_refs(relation.right.ref(right), width)))
        for left, right in zip(keys.left, keys.right, strict=True)
        if relation.left.columns[left].time == ROWTIME and relation.right.columns[right].time == ROWTIME
    ]
    return [*keys.rest, *times]


# --- windows ---
Bounds = tuple[tuple[int, int], tuple[int, int]]


def _window_bounds(relation: Join, keys: JoinKeys) -> Bounds | None:
    """Return start and end on both sides, or None if the windows differ or the condition does not make them equal."""
    left, right = window_bounds(relation.left), window_bounds(relation.right)
    if left is None or right is None or left.spec != right.spec:
        return None
    pairs = set(zip(keys.left, keys.right, strict=True))
    bounds = []
    for role in (START, END):
        one, other = left.of(role), right.of(role)
        if one is None or other is None or (one, other) not in pairs:
            return None
        bounds.append((one, other))
    (start, other_start), (end, other_end) = bounds
    return (start, end), (other_start, other_end)


def _window_join(builder: Builder, relation: Join, keys: JoinKeys, bounds: Bounds) -> Physical:
    inputs = builder.build(relation.left), builder.build(relation.right)
    if any(input.changelog for input in inputs):
        return _regular(builder, relation, keys)
    plain = JoinKeys(rest=keys.rest)
    for left, right, safe in zip(keys.left, keys.right, keys.null_safe, strict=True):
        if left not in bounds[0]:
            plain.left.append(left)
            plain.right.append(right)
            plain.null_safe.append(safe)
    spec = join_spec(builder, relation, plain, inputs)
    operator = WindowJoin(spec, bounds, arrow_schema(relation.columns))
    windows = window_bounds(relation.left)
    assert windows is not None
    operator.zone, operator.shifted = builder.zone, windows.shifted
    operator.processing_time = windows.processing_time
    stream = builder.two_inputs(inputs, spec.keys, relation, "Window Join", operator)
    return Physical(stream, relation.columns, False, label_of(relation, "WindowJoin"), inputs)


# --- versions ---
def _temporal(builder: Builder, relation: Join, keys: JoinKeys) -> Physical:
    assert relation.temporal is not None
    if relation.left.columns[relation.temporal].time == PROCTIME:
        return lookup_join(builder, relation, keys)
    time = version_time(relation, keys)
    inputs = builder.build(relation.left), builder.build(with_every_version(relation.right))
    spec = join_spec(builder, relation, keys, inputs)
    changelog = inputs[0].changelog
    operator = TemporalJoin(spec, (relation.temporal, time), arrow_schema(relation.columns, changelog), builder.ttl)
    stream = builder.two_inputs(inputs, spec.keys, relation, "Temporal Join", operator)
    return Physical(stream, relation.columns, changelog, label_of(relation, "TemporalJoin"), inputs)


# --- regular ---


def _regular(builder: Builder, relation: Join, keys: JoinKeys) -> Physical:
    inputs = builder.build(relation.left), builder.build(relation.right)
    spec = join_spec(builder, relation, keys, inputs)
    changes = relation.kind not in {"INNER", "SEMI"} or any(input.changelog for input in inputs)
    changelog = changes and not builder.batch
    schema = arrow_schema(relation.columns, changelog)
    left, right = (builder.ttl_of(own) for own in relation.ttl)
    only_grows = relation.kind == "INNER" and not changes and not (left or right)
    operator = AppendJoin(spec, schema) if only_grows else JoinOperator(spec, schema, (left, right))
    stream = builder.two_inputs(inputs, spec.keys, relation, "Join", operator)
    return Physical(stream, relation.columns, changelog, label_of(relation, "Join"), inputs)


def join_spec(builder: Builder, relation: Join, keys: JoinKeys, inputs: tuple[Physical, Physical]) -> JoinSpec:
    """Return the description of a join for its operator."""
    return JoinSpec(
        relation.kind,
        (tuple(keys.left), tuple(keys.right)),
        tuple(keys.null_safe),
        keys.residual(),
        (arrow_schema(relation.left.columns), arrow_schema(relation.right.columns)),
        (inputs[0].changelog, inputs[1].changelog),
        builder.zone,
        (_keep_updates(relation.left, keys.left), _keep_updates(relation.right, keys.right)),
    )


def _keep_updates(side: Relation, keys: Sequence[int]) -> bool:
    """Return True if an update of a side never changes the columns of the join key."""
    return any(key >= set(keys) for key in upsert_keys(side))


def set_operation(builder: Builder, relation: SetOperation) -> Physical:
    """Build UNION, INTERSECT or EXCEPT."""
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
