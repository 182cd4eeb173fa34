"""Rules for joins and set operations."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from penstock.table.functions import resolve
from penstock.table.logical.kinds import JoinKind, SetKind
from penstock.table.logical.nodes import PROCTIME, ROWTIME, Join, Relation, SetOperation
from penstock.table.logical.rex import Rex, shift_refs
from penstock.table.operators.join.interval_join_operator import Interval
from penstock.table.operators.join.regular_join import JoinSpec
from penstock.table.operators.window.window_assignment import WindowTime
from penstock.table.physical import join_nodes as nodes
from penstock.table.physical.physical_node import PhysicalNode
from penstock.table.rules.implementation.choose_io import choose_union
from penstock.table.rules.implementation.choose_lookups import choose_lookup_join
from penstock.table.rules.implementation.chooser import Chooser, Rule
from penstock.table.rules.join_conditions import JoinKeys, join_keys, time_bounds
from penstock.table.rules.upsert_keys import upsert_keys
from penstock.table.rules.versioned import version_time, with_every_version
from penstock.table.rules.window_columns import END, START, window_bounds
from penstock.table.types.arrow_forms import arrow_schema

Inputs = tuple[PhysicalNode, PhysicalNode]


def choose_join(chooser: Chooser, relation: Join) -> PhysicalNode:
    """Choose a temporal, window, interval or regular join."""
    keys = join_keys(relation)
    if relation.temporal is not None:
        return _choose_temporal(chooser, relation, keys)
    inputs = chooser.choose(relation.left), chooser.choose(relation.right)
    special = None
    if not chooser.settings.batch and not any(input.changelog for input in inputs):
        bounds = _window_bounds(relation, keys)
        if bounds is None:
            special = _choose_interval(chooser, relation, keys, inputs)
        else:
            special = _window_join(chooser, relation, keys, bounds, inputs)
    return special or _regular(chooser, relation, keys, inputs)


# --- interval ---
def _choose_interval(chooser: Chooser, relation: Join, keys: JoinKeys, inputs: Inputs) -> PhysicalNode | None:
    """Return an interval join, or None if the condition does not bound the distance of two times of one kind."""
    found = time_bounds(relation, _with_equal_times(relation, keys))
    if found is None or relation.kind in {JoinKind.SEMI, JoinKind.ANTI}:
        return None
    bounds, rest = found
    kinds = {relation.left.columns[bounds.left].time, relation.right.columns[bounds.right].time}
    if len(kinds) > 1:
        return None
    spec = _join_spec(chooser, relation, replace(keys, rest=rest), inputs)
    interval = Interval((bounds.left, bounds.right), bounds.lower, bounds.upper, kinds == {PROCTIME})
    return nodes.IntervalJoin(relation, inputs, False, spec, interval)


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


def _window_join(chooser: Chooser, relation: Join, keys: JoinKeys, bounds: Bounds, inputs: Inputs) -> PhysicalNode:
    plain = JoinKeys(rest=keys.rest)
    for left, right, safe in zip(keys.left, keys.right, keys.null_safe, strict=True):
        if left not in bounds[0]:
            plain.left.append(left)
            plain.right.append(right)
            plain.null_safe.append(safe)
    spec = _join_spec(chooser, relation, plain, inputs)
    windows = window_bounds(relation.left)
    assert windows is not None
    time = WindowTime(chooser.settings.zone, windows.shifted, windows.processing_time)
    return nodes.WindowJoin(relation, inputs, False, spec, bounds, time)


# --- versions ---
def _choose_temporal(chooser: Chooser, relation: Join, keys: JoinKeys) -> PhysicalNode:
    assert relation.temporal is not None
    if relation.left.columns[relation.temporal].time == PROCTIME:
        return choose_lookup_join(chooser, relation, keys)
    time = version_time(relation, keys)
    inputs = chooser.choose(relation.left), chooser.choose(with_every_version(relation.right))
    spec = _join_spec(chooser, relation, keys, inputs)
    times = (relation.temporal, time)
    return nodes.TemporalJoin(relation, inputs, inputs[0].changelog, spec, times, chooser.settings.ttl)


# --- regular ---
def _regular(chooser: Chooser, relation: Join, keys: JoinKeys, inputs: Inputs) -> PhysicalNode:
    settings, spec = chooser.settings, _join_spec(chooser, relation, keys, inputs)
    changes = relation.kind not in {JoinKind.INNER, JoinKind.SEMI} or any(input.changelog for input in inputs)
    left, right = (settings.ttl_of(own) for own in relation.ttl)
    if relation.kind == JoinKind.INNER and not changes and not (left or right):
        return nodes.AppendJoin(relation, inputs, False, spec)
    return nodes.Join(relation, inputs, changes and not settings.batch, spec, (left, right))


def _join_spec(chooser: Chooser, relation: Join, keys: JoinKeys, inputs: Inputs) -> JoinSpec:
    """Return the description of a join for its operator."""
    return JoinSpec(
        relation.kind,
        (tuple(keys.left), tuple(keys.right)),
        tuple(keys.null_safe),
        keys.residual(),
        (arrow_schema(relation.left.columns), arrow_schema(relation.right.columns)),
        (inputs[0].changelog, inputs[1].changelog),
        chooser.settings.zone,
        (_keep_updates(relation.left, keys.left), _keep_updates(relation.right, keys.right)),
    )


def _keep_updates(side: Relation, keys: Sequence[int]) -> bool:
    """Return True if an update of a side never changes the columns of the join key."""
    return any(key >= set(keys) for key in upsert_keys(side))


# --- sets ---
def choose_set_operation(chooser: Chooser, relation: SetOperation) -> PhysicalNode:
    """Choose the nodes of UNION, INTERSECT or EXCEPT."""
    if relation.kind == SetKind.UNION:
        return choose_union(chooser, relation)
    first, *others = relation.parts
    settings, node = chooser.settings, chooser.choose(first)
    for other in others:
        inputs = node, chooser.choose(other)
        changes = relation.kind == SetKind.EXCEPT or any(input.changelog for input in inputs)
        node = nodes.SetOperation(relation, inputs, changes and not settings.batch, settings.ttl)
    return node


RULES: dict[type, Rule] = {Join: choose_join, SetOperation: choose_set_operation}
