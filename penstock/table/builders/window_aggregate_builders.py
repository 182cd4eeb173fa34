"""Builders of aggregates over windows: in slices or sessions if Arrow can group them, else window by window."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields

from penstock.table.builders.builder import Builder, label_of
from penstock.table.builders.phases import in_two_phases, local, local_schema
from penstock.table.builders.physical import Physical
from penstock.table.logical.nodes import PROCTIME, Aggregate, Expand, Relation, WindowTable, walk_plan
from penstock.table.logical.rex import InputRef, refs
from penstock.table.operators.aggregate.column_groups import groups_in_arrow
from penstock.table.operators.aggregate.functions import Fold, VectorFold, folds_for
from penstock.table.operators.window.local_slices import LocalSlices
from penstock.table.operators.window.session_aggregate import SessionAggregate
from penstock.table.operators.window.shared_slices import SharedSliceAggregate
from penstock.table.operators.window.slice_aggregate import SliceAggregate
from penstock.table.operators.window.slices import SliceTableOperator, Slicing, same_times
from penstock.table.operators.window.window_aggregate import WindowAggregate, WindowKeys
from penstock.table.physical.physical_nodes import Calc, SliceTable
from penstock.table.rules.window_columns import END, START, window_bounds
from penstock.table.types.arrow_forms import arrow_schema

WINDOW_BY_WINDOW = "Window Aggregate"
IN_SLICES = "Sliced Window Aggregate"
IN_SHARED_SLICES = "Shared Window Aggregate"
IN_SESSIONS = "Session Window Aggregate"
"""Names of operators. Their states differ, so their uids must differ too, and uids follow from names."""


def window_keys(relation: Aggregate) -> WindowKeys | None:
    """Return the keys of a window aggregate, divided into window and other keys, or None for another aggregate."""
    windows = window_bounds(relation.input)
    roles = {} if windows is None else dict(windows.roles)
    found = {position: roles[key] for position, key in enumerate(relation.keys) if key in roles}
    if windows is None or not {START, END} <= set(found.values()):
        return None
    end = next(position for position, role in found.items() if role == END)
    plain = tuple(position for position in range(len(relation.keys)) if position not in found)
    bounds = tuple(found.values())
    return WindowKeys(plain, tuple(found), end, windows.processing_time, windows.shifted, bounds)


def window_aggregate(builder: Builder, relation: Aggregate, keys: WindowKeys) -> Physical:
    """Build an aggregate over windows: in slices, in sessions, or window by window."""
    windows = window_bounds(relation.input)
    assert windows is not None
    below = _above_slices(relation)
    changelog = builder.build(relation.input if below is None else _rows_of(below)).changelog
    folds = folds_for(relation.calls, relation.input.columns, changelog)
    vectors = [fold for fold in folds if isinstance(fold, VectorFold)]
    in_sessions = windows.spec[0] == "SESSION"
    if (
        not groups_in_arrow([relation.columns[position].type for position in keys.plain], folds)
        or not _bounds_stay(relation.input)
        or (in_sessions and (below is None or not _is_partitioned_alike(relation, keys)))
    ):
        slicing = Slicing(*windows.spec)
        if below is not None and not (changelog or keys.processing_time) and _share(relation, folds, slicing):
            return _in_shared_slices(builder, relation, keys, builder.build(below), folds)
        return _by_window(builder, relation, keys, folds)
    if in_sessions:
        assert below is not None
        return _in_sessions(builder, relation, keys, builder.build(below), vectors)
    slicing = Slicing(*windows.spec, given=below is None)
    schema = arrow_schema(relation.columns)
    operator = SliceAggregate(relation.keys, keys, slicing, vectors, changelog, schema)
    input = builder.build(relation.input if below is None else below)
    return _group_by_key(builder, relation, input, folds, operator, WINDOW_BY_WINDOW if below is None else IN_SLICES)


# --- operators ---
def _by_window(builder: Builder, relation: Aggregate, keys: WindowKeys, folds: Sequence[Fold]) -> Physical:
    """Build an aggregate of each window, for functions that see rows, and for keys that Arrow does not group."""
    input = builder.build(relation.input)
    operator = WindowAggregate(relation.keys, keys, folds, input.changelog, arrow_schema(relation.columns))
    return _group_by_key(builder, relation, input, folds, operator, WINDOW_BY_WINDOW)


def _share(relation: Aggregate, folds: Sequence[Fold], slicing: Slicing) -> bool:
    """Return True if windows can be computed by merging the accumulators of slices."""
    return (
        slicing.is_shared
        and slicing.kind != "SESSION"
        and _bounds_stay(relation.input)
        and all(fold.in_any_order for fold in folds)
    )


def _in_shared_slices(
    builder: Builder, relation: Aggregate, keys: WindowKeys, input: Physical, folds: Sequence[Fold]
) -> Physical:
    """Build an aggregate over shared slices, for functions that see rows."""
    windows = window_bounds(relation.input)
    assert windows is not None
    schema = arrow_schema(relation.columns)
    operator = SharedSliceAggregate(relation.keys, keys, Slicing(*windows.spec), folds, schema)
    operator.zone = builder.zone
    own = [relation.keys[position] for position in keys.plain]
    stream = builder.then_by_key(input, own, relation, IN_SHARED_SLICES, operator)
    return Physical(stream, relation.columns, False, label_of(relation, "WindowAggregate"), (input,))


def _group_by_key(
    builder: Builder,
    relation: Aggregate,
    input: Physical,
    folds: Sequence[Fold],
    operator: WindowAggregate | SliceAggregate,
    name: str,
) -> Physical:
    operator.zone = builder.zone
    plain = operator.windows.plain
    before, keys = input, [relation.keys[position] for position in plain]
    if in_two_phases(builder, folds):
        in_columns = isinstance(operator, SliceAggregate)
        first = _local_slices(relation, input, folds, operator.windows) if in_columns else None
        before, keys = local(builder, relation, input, folds, first), list(plain)
        operator.parts_come = True
    stream = builder.then_by_key(before, keys, relation, name, operator)
    return Physical(stream, relation.columns, False, label_of(relation, "WindowAggregate"), (before,))


def _local_slices(relation: Aggregate, input: Physical, folds: Sequence[Fold], keys: WindowKeys) -> LocalSlices:
    schema = local_schema(relation, input, folds)
    return LocalSlices(relation.keys, keys, folds, input.changelog, schema)


def _in_sessions(
    builder: Builder, relation: Aggregate, keys: WindowKeys, input: Physical, folds: Sequence[VectorFold]
) -> Physical:
    gap = _table_of(relation.input).size
    operator = SessionAggregate(relation.keys, keys, gap, folds, input.changelog, arrow_schema(relation.columns))
    operator.zone = builder.zone
    own = [relation.keys[position] for position in keys.plain]
    stream = builder.then_by_key(input, own, relation, IN_SESSIONS, operator)
    return Physical(stream, relation.columns, False, label_of(relation, "WindowAggregate"), (input,))


def slice_table(builder: Builder, relation: SliceTable) -> Physical:
    """Build the table of slices that replaces a window table before an aggregate."""
    input = builder.build(relation.input)
    slicing = Slicing(relation.kind, relation.size, relation.slide, relation.offset)
    time = None if relation.input.columns[relation.time].time == PROCTIME else relation.time
    schema = arrow_schema(relation.columns, input.changelog)
    end_of = same_times if relation.kind == "SESSION" else slicing.slice_ends
    operator = SliceTableOperator(end_of, time, schema, input.changelog)
    operator.zone = builder.zone
    stream = builder.then(input, relation, "Slice Table", operator)
    label = label_of(relation, "WindowTableFunction")
    return Physical(stream, relation.columns, input.changelog, label, (input,))


# --- relations between the window table and the aggregate ---
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
        if relation.kind == "TUMBLE":
            return None
        return SliceTable(**{part.name: getattr(relation, part.name) for part in fields(relation)})
    if not isinstance(relation, Calc | Expand) or not _leaves_bounds_alone(relation):
        return None
    below = _with_slices(relation.input)
    return None if below is None else relation.with_inputs([below])


def _leaves_bounds_alone(relation: Calc | Expand) -> bool:
    """Return True if a relation only passes window bounds on.

    A filter over sessions does not, as it changes sessions.
    """
    windows = window_bounds(relation.input)
    if windows is None:
        return False
    if isinstance(relation, Expand):
        return windows.spec[0] != "SESSION"
    bounds = {position for position, _ in windows.roles}
    if relation.condition is not None and (windows.spec[0] == "SESSION" or refs(relation.condition) & bounds):
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
