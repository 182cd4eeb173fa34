"""Unused columns are removed as early as possible, so that less is sent and stored."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from penstock.table.logical.kinds import JoinKind, SetKind
from penstock.table.logical.nodes import (
    ROWTIME,
    Aggregate,
    Columns,
    Filter,
    Join,
    Over,
    Project,
    Relation,
    SetOperation,
    Sort,
    StreamScan,
    Values,
    Watermark,
    WindowTable,
)
from penstock.table.logical.rex import AggregateCall, InputRef, OverSpec, Rex, SortKey, refs, rewritten

Mapping = dict[int, int]
"""The new position of each column of the original relation."""
Pruned = tuple[Relation, Mapping]


def prune(relation: Relation) -> Relation:
    """Return the same query without unused columns."""
    made, mapping = _prune(relation, set(range(len(relation.columns))))
    wanted = [mapping[index] for index in range(len(relation.columns))]
    if wanted == list(range(len(made.columns))):
        return made
    return Project(relation.columns, made, tuple(InputRef(made.columns[i].type, i) for i in wanted))


def _prune(relation: Relation, needed: set[int]) -> Pruned:
    """Return a relation with at least the needed columns, in their order."""
    match relation:
        case Project():
            return _project(relation, needed)
        case Filter():
            input, mapping = _prune(relation.input, needed | refs(relation.condition))
            return Filter(input.columns, input, _move(relation.condition, mapping)), mapping
        case Watermark():
            return _watermark(relation, needed)
        case Aggregate():
            return _aggregate(relation, needed)
        case WindowTable():
            return _window_table(relation, needed)
        case Over():
            return _over(relation, needed)
        case Sort():
            input, mapping = _prune(relation.input, needed | {key.index for key in relation.keys})
            keys = tuple(_sort_key(key, mapping) for key in relation.keys)
            return replace(relation, columns=input.columns, input=input, keys=keys), mapping
        case Join():
            return _join(relation, needed)
        case SetOperation() if relation.kind == SetKind.UNION and relation.all:
            return _union(relation, needed)
        case StreamScan() | Values():
            return _narrow(relation, needed)
    parts = [prune(part) for part in relation.inputs()]
    return (relation.with_inputs(parts) if parts else relation), _same(len(relation.columns))


def _exactly(relation: Relation, needed: set[int]) -> Pruned:
    """Return a relation with only the needed columns, before an exchange or state.

    Filters below may have needed more.
    """
    made, mapping = _prune(relation, needed)
    kept = sorted(needed) or [next(iter(mapping))]
    if len(kept) == len(made.columns):
        return made, mapping
    wanted = [mapping[index] for index in kept]
    columns = tuple(made.columns[index] for index in wanted)
    return Project(columns, made, tuple(made.ref(index) for index in wanted)), _positions(kept)


def _same(width: int) -> Mapping:
    return {index: index for index in range(width)}


def _positions(kept: Iterable[int]) -> Mapping:
    return {index: position for position, index in enumerate(kept)}


def _move(rex: Rex, mapping: Mapping) -> Rex:
    return rewritten(rex, lambda one: InputRef(one.type, mapping[one.index]) if isinstance(one, InputRef) else None)


def _sort_key(key: SortKey, mapping: Mapping) -> SortKey:
    return replace(key, index=mapping[key.index])


def _call(call: AggregateCall, mapping: Mapping) -> AggregateCall:
    return replace(
        call,
        args=tuple(mapping[index] for index in call.args),
        filter=None if call.filter is None else mapping[call.filter],
        order=tuple(_sort_key(key, mapping) for key in call.order),
    )


def _read(calls: Sequence[AggregateCall]) -> set[int]:
    """Return the columns that calls read."""
    found = {index for call in calls for index in call.args}
    found |= {call.filter for call in calls if call.filter is not None}
    return found | {key.index for call in calls for key in call.order}


def _narrow(relation: Relation, needed: set[int]) -> Pruned:
    """Add a projection to the needed columns above a leaf."""
    kept = sorted(needed) or [0]
    if len(kept) == len(relation.columns):
        return relation, _same(len(relation.columns))
    columns = tuple(relation.columns[index] for index in kept)
    return Project(columns, relation, tuple(relation.ref(index) for index in kept)), _positions(kept)


def _project(relation: Project, needed: set[int]) -> Pruned:
    kept = sorted(needed) or ([0] if relation.exprs else [])
    read = {index for position in kept for index in refs(relation.exprs[position])}
    input, mapping = _prune(relation.input, read)
    exprs = tuple(_move(relation.exprs[position], mapping) for position in kept)
    return Project(tuple(relation.columns[position] for position in kept), input, exprs), _positions(kept)


def _watermark(relation: Watermark, needed: set[int]) -> Pruned:
    read = needed | {relation.rowtime} | (set() if relation.expr is None else refs(relation.expr))
    input, mapping = _prune(relation.input, read)
    back = {new: old for old, new in mapping.items()}
    columns = tuple(relation.columns[back[new]] if new in back else column for new, column in enumerate(input.columns))
    expr = None if relation.expr is None else _move(relation.expr, mapping)
    return Watermark(columns, input, mapping[relation.rowtime], expr), mapping


def _aggregate(relation: Aggregate, needed: set[int]) -> Pruned:
    """Prune the calls of an aggregate. Keys remain, and one call too, because without calls rows would not change."""
    width = len(relation.keys)
    wanted = [number for number in range(len(relation.calls)) if width + number in needed]
    if not wanted and relation.calls:
        wanted = [0]
    calls = [relation.calls[number] for number in wanted]
    input, mapping = _exactly(relation.input, set(relation.keys) | _read(calls))
    kept = [*range(width), *(width + number for number in wanted)]
    made = Aggregate(
        tuple(relation.columns[position] for position in kept),
        input,
        tuple(mapping[key] for key in relation.keys),
        tuple(_call(call, mapping) for call in calls),
        relation.ttl,
    )
    return made, _positions(kept)


def _window_table(relation: WindowTable, needed: set[int]) -> Pruned:
    width = len(relation.input.columns)
    read = {index for index in needed if index < width} | {relation.time} | set(relation.partition)
    input, mapping = _prune(relation.input, read)
    now = len(input.columns)
    made = replace(
        relation,
        columns=input.columns + relation.columns[width:],
        input=input,
        time=mapping[relation.time],
        partition=tuple(mapping[index] for index in relation.partition),
    )
    return made, {**mapping, **{width + number: now + number for number in range(3)}}


def _over(relation: Over, needed: set[int]) -> Pruned:
    width = len(relation.input.columns)
    read = {index for index in needed if index < width}
    for window in relation.windows:
        read |= set(window.partition) | {key.index for key in window.order} | _read(window.calls)
    input, mapping = _prune(relation.input, read)
    now, calls = len(input.columns), len(relation.columns) - width
    windows = tuple(_window(window, mapping) for window in relation.windows)
    made = Over(input.columns + relation.columns[width:], input, windows)
    return made, {**mapping, **{width + number: now + number for number in range(calls)}}


def _window(window: OverSpec, mapping: Mapping) -> OverSpec:
    return replace(
        window,
        partition=tuple(mapping[index] for index in window.partition),
        order=tuple(_sort_key(key, mapping) for key in window.order),
        calls=tuple(_call(call, mapping) for call in window.calls),
    )


def _join(relation: Join, needed: set[int]) -> Pruned:
    width, one_sided = len(relation.left.columns), relation.kind in {JoinKind.SEMI, JoinKind.ANTI}
    read = needed | (set() if relation.condition is None else refs(relation.condition))
    if relation.temporal is not None:
        times = [index for index, column in enumerate(relation.right.columns) if column.time == ROWTIME]
        read |= {relation.temporal} | {width + index for index in times}
    left, left_map = _exactly(relation.left, {index for index in read if index < width})
    if relation.temporal is not None and not relation.right.inputs():
        right, right_map = relation.right, _same(len(relation.right.columns))
    else:
        right, right_map = _exactly(relation.right, {index - width for index in read if index >= width})
    now = len(left.columns)
    mapping = {**left_map, **{width + index: now + position for index, position in right_map.items()}}
    columns = _columns_of(relation, left, right, mapping)
    made = replace(
        relation,
        columns=columns,
        left=left,
        right=right,
        condition=None if relation.condition is None else _move(relation.condition, mapping),
        temporal=None if relation.temporal is None else mapping[relation.temporal],
    )
    return made, left_map if one_sided else mapping


def _columns_of(relation: Join, left: Relation, right: Relation, mapping: Mapping) -> Columns:
    back = {new: old for old, new in mapping.items()}
    both = left.columns if relation.kind in {JoinKind.SEMI, JoinKind.ANTI} else left.columns + right.columns
    return tuple(
        relation.columns[back[new]] if new in back and back[new] < len(relation.columns) else column
        for new, column in enumerate(both)
    )


def _union(relation: SetOperation, needed: set[int]) -> Pruned:
    kept = sorted(needed) or [0]
    parts = []
    for part in relation.parts:
        made, mapping = _prune(part, set(kept))
        wanted = [mapping[index] for index in kept]
        if wanted != list(range(len(made.columns))):
            columns = tuple(made.columns[index] for index in wanted)
            made = Project(columns, made, tuple(made.ref(index) for index in wanted))
        parts.append(made)
    columns = tuple(relation.columns[index] for index in kept)
    return SetOperation(columns, tuple(parts), relation.kind, True), _positions(kept)
