"""Rules for aggregates over windows: in slices or sessions if Arrow can group them, else window by window."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields

from penstock.table.logical.kinds import WindowKind
from penstock.table.logical.nodes import Aggregate, Expand, Relation, WindowTable, walk_plan
from penstock.table.logical.optimised_nodes import Calc, SliceTable, WindowTableAggregate
from penstock.table.logical.rex import InputRef, refs
from penstock.table.operators.aggregate.column_groups import groups_in_arrow
from penstock.table.operators.aggregate.functions import Fold, VectorFold, folds_for
from penstock.table.operators.window.slices import Slicing
from penstock.table.operators.window.window_aggregate import WindowKeys
from penstock.table.physical import aggregate_nodes as nodes
from penstock.table.physical.physical_node import PhysicalNode
from penstock.table.rules.implementation.chooser import Chooser, Rule
from penstock.table.rules.window_columns import END, START, window_bounds


def window_keys(relation: Aggregate, zone: str) -> WindowKeys | None:
    """Return the keys of a window aggregate, divided into window and other keys, or None for another aggregate."""
    windows = window_bounds(relation.input)
    roles = {} if windows is None else dict(windows.roles)
    found = {position: roles[key] for position, key in enumerate(relation.keys) if key in roles}
    if windows is None or not {START, END} <= set(found.values()):
        return None
    end = next(position for position, role in found.items() if role == END)
    plain = tuple(position for position in range(len(relation.keys)) if position not in found)
    bounds = tuple(found.values())
    return WindowKeys(plain, tuple(found), end, windows.processing_time, windows.shifted, bounds, zone)


def choose_window_aggregate(chooser: Chooser, relation: Aggregate, keys: WindowKeys) -> PhysicalNode:
    """Choose the nodes of an aggregate over windows: in slices, in sessions, or window by window."""
    windows = window_bounds(relation.input)
    assert windows is not None
    below = _above_slices(relation)
    changelog = chooser.choose(relation.input if below is None else _rows_of(below)).changelog
    folds = tuple(folds_for(relation.calls, relation.input.columns, changelog))
    in_sessions = windows.spec[0] == WindowKind.SESSION
    if (
        not groups_in_arrow([relation.columns[position].type for position in keys.plain], folds)
        or not _bounds_stay(relation.input)
        or (in_sessions and (below is None or not _is_partitioned_alike(relation, keys)))
    ):
        slicing = Slicing(*windows.spec)
        if below is not None and not (changelog or keys.processing_time) and _share(relation, folds, slicing):
            input = chooser.choose(below)
            return nodes.SharedSliceAggregate(relation, (input,), False, keys, folds, False, slicing)
        return _window_by_window(chooser, relation, keys, folds)
    vectors = tuple(fold for fold in folds if isinstance(fold, VectorFold))
    if in_sessions:
        assert below is not None
        gap, input = _table_of(relation.input).size, chooser.choose(below)
        return nodes.SessionAggregate(relation, (input,), False, keys, vectors, input.changelog, gap)
    slicing, input = Slicing(*windows.spec, given=below is None), chooser.choose(below or relation.input)
    two_phases = in_two_phases(chooser, folds)
    if two_phases:
        input = nodes.LocalSliceAggregate(relation, (input,), False, folds, input.changelog, keys)
    return nodes.SliceAggregate(relation, (input,), False, keys, vectors, changelog, slicing, two_phases)


def _window_by_window(chooser: Chooser, relation: Aggregate, keys: WindowKeys, folds: tuple[Fold, ...]) -> PhysicalNode:
    """Return the nodes of an aggregate of each window."""
    input = chooser.choose(relation.input)
    signed, two_phases = input.changelog, in_two_phases(chooser, folds)
    if two_phases:
        input = nodes.LocalGroupAggregate(relation, (input,), False, folds, signed)
    return nodes.WindowAggregate(relation, (input,), False, keys, folds, signed, two_phases)


def in_two_phases(chooser: Chooser, folds: Sequence[Fold]) -> bool:
    """Return True if rows are also aggregated before the exchange: with several subtasks, if every fold supports it."""
    return chooser.settings.is_parallel and all(isinstance(fold, VectorFold) for fold in folds)


def choose_window_table_aggregate(chooser: Chooser, relation: WindowTableAggregate) -> PhysicalNode:
    """Choose the node of flat_aggregate over windows."""
    windows, count = window_bounds(relation.input), len(relation.keys)
    assert windows is not None
    bounds = (count, count + 1, count + 2)
    keys = WindowKeys(
        tuple(range(count)),
        bounds,
        count + 1,
        windows.processing_time,
        windows.shifted,
        zone=chooser.settings.zone,
    )
    return nodes.WindowTableAggregate(relation, (chooser.choose(relation.input),), False, keys)


# --- slices ---
def _share(relation: Aggregate, folds: Sequence[Fold], slicing: Slicing) -> bool:
    """Return True if windows can be computed by merging the accumulators of slices."""
    return (
        slicing.is_shared
        and slicing.kind != WindowKind.SESSION
        and _bounds_stay(relation.input)
        and all(fold.in_any_order for fold in folds)
    )


def _above_slices(relation: Aggregate) -> Relation | None:
    """Return the aggregate's input over slices, or over rows for sessions, or None if windows are needed.

    Windows are needed if an operator in between reads their bounds.
    """
    windows = window_bounds(relation.input)
    bounds = set() if windows is None else {position for position, _ in windows.roles}
    seen = {position for call in relation.calls for position in (*call.args, call.filter)}
    return None if seen & bounds else _with_slices(relation.input)


def _with_slices(relation: Relation) -> Relation | None:
    if isinstance(relation, WindowTable):
        if relation.kind == WindowKind.TUMBLE:
            return None
        return SliceTable(**{part.name: getattr(relation, part.name) for part in fields(relation)})
    if not isinstance(relation, Calc | Expand) or not _leaves_bounds_alone(relation):
        return None
    below = _with_slices(relation.input)
    return None if below is None else relation.with_inputs([below])


def _leaves_bounds_alone(relation: Calc | Expand) -> bool:
    """Return True if a relation passes window bounds on unchanged and does not compute with them.

    Return False for a filter or grouping sets over session windows, because these change the sessions.
    """
    windows = window_bounds(relation.input)
    if windows is None:
        return False
    if isinstance(relation, Expand):
        return windows.spec[0] != WindowKind.SESSION
    bounds = {position for position, _ in windows.roles}
    if relation.condition is not None and (windows.spec[0] == WindowKind.SESSION or refs(relation.condition) & bounds):
        return False
    return all(isinstance(expr, InputRef) or not refs(expr) & bounds for expr in relation.exprs)


def _table_of(relation: Relation) -> WindowTable:
    """Return the window table below projections and grouping sets."""
    while not isinstance(relation, WindowTable):
        assert isinstance(relation, Calc | Expand)
        relation = relation.input
    return relation


def _rows_of(relation: Relation) -> Relation:
    return _table_of(relation).input


def _bounds_stay(relation: Relation) -> bool:
    """Return True if every grouping set has the bounds of its windows, so that an end identifies a window."""
    for part in walk_plan(relation):
        windows = window_bounds(part.input) if isinstance(part, Expand) else None
        if isinstance(part, Expand) and windows is not None:
            bounds = {position for position, _ in windows.roles if position in part.keys}
            if not all(bounds <= set(one) for one in part.sets):
                return False
    return True


def _is_partitioned_alike(relation: Aggregate, keys: WindowKeys) -> bool:
    """Return True if the keys of an aggregate are the partition keys of its sessions."""
    found = {_column_below(relation.input, relation.keys[position]) for position in keys.plain}
    return found == set(_table_of(relation.input).partition)


def _column_below(relation: Relation, position: int) -> int | None:
    """Return the column of the window table from which a column comes, or None if it is computed."""
    while isinstance(relation, Calc):
        expr = relation.exprs[position]
        if not isinstance(expr, InputRef):
            return None
        relation, position = relation.input, expr.index
    return position


RULES: dict[type, Rule] = {WindowTableAggregate: choose_window_table_aggregate}
