"""Rules for operators that depend on an order of rows: Top-N, deduplication, ORDER BY, LIMIT."""

from __future__ import annotations

from penstock.errors import TableException
from penstock.table.logical.nodes import PROCTIME, Relation, Sort
from penstock.table.logical.optimised_nodes import Deduplicate, TopN
from penstock.table.logical.rex import SortKey
from penstock.table.operators.rank.top_n import TopNSpec
from penstock.table.operators.window.window_assignment import WindowTime
from penstock.table.physical import order_nodes as nodes
from penstock.table.physical.physical_node import PhysicalNode
from penstock.table.rules.implementation.chooser import Chooser, Rule
from penstock.table.rules.upsert_keys import upsert_keys
from penstock.table.rules.window_columns import END, START, Windowed, window_bounds


def choose_top_n(chooser: Chooser, relation: TopN) -> PhysicalNode:
    """Choose the node of Top-N, within windows if their bounds are in PARTITION BY."""
    input = chooser.choose(relation.input)
    windows = _windows_of_partition(relation.input, relation.partition)
    if windows is not None and not input.changelog:
        return _window_top_n(chooser, relation, input, windows)
    has_keys = any(key >= set(relation.partition) for key in upsert_keys(relation.input))
    spec = TopNSpec(relation.order, relation.first, relation.last, relation.rank_column, input.changelog, has_keys)
    return nodes.Rank(relation, (input,), not chooser.settings.batch, spec, chooser.settings.ttl)


def _windows_of_partition(input: Relation, partition: tuple[int, ...]) -> Windowed | None:
    """Return the windows of an input, or None if their bounds are not in PARTITION BY."""
    windows = window_bounds(input)
    if windows is None:
        return None
    roles = dict(windows.roles)
    return windows if {START, END} <= {roles[position] for position in partition if position in roles} else None


def _window_top_n(chooser: Chooser, relation: TopN, input: PhysicalNode, windows: Windowed) -> PhysicalNode:
    roles, end = dict(windows.roles), windows.of(END)
    assert end is not None
    keys = tuple(position for position in relation.partition if position not in roles)
    bounds = tuple(position for position in relation.partition if position in roles)
    spec = TopNSpec(relation.order, relation.first, relation.last, relation.rank_column, False)
    time = WindowTime(chooser.settings.zone, windows.shifted, windows.processing_time)
    return nodes.WindowRank(relation, (input,), False, spec, keys, bounds, end, time)


def choose_deduplicate(chooser: Chooser, relation: Deduplicate) -> PhysicalNode:
    """Choose the node of a deduplication, or a Top-N of one row for windows and changelogs."""
    input = chooser.choose(relation.input)
    if input.changelog or _windows_of_partition(relation.input, relation.partition) is not None:
        order = (SortKey(relation.time, relation.keep_last, not relation.keep_last),)
        as_top = TopN(relation.columns, relation.input, relation.partition, order, 1, 1, relation.rank_column)
        return choose_top_n(chooser, as_top)
    time = None if relation.input.columns[relation.time].time == PROCTIME else relation.time
    return nodes.Deduplicate(relation, (input,), relation.keep_last, time, chooser.settings.ttl)


def choose_sort(chooser: Chooser, relation: Sort) -> PhysicalNode:
    """Choose the node of ORDER BY and LIMIT."""
    if chooser.settings.batch:
        return nodes.SortAtEnd(relation, (chooser.choose(relation.input),), False)
    if relation.limit is None and relation.offset == 0:
        return _choose_temporal_sort(chooser, relation)
    if relation.limit is None:
        raise TableException("FETCH is missed, which on streaming table is not supported: OFFSET needs a LIMIT there")
    input = chooser.choose(relation.input)
    if not relation.keys and not input.changelog:
        return nodes.Limit(relation, (input,), False, relation.limit)
    spec = TopNSpec(relation.keys, relation.offset + 1, relation.offset + relation.limit, False, input.changelog)
    return nodes.SortLimit(relation, (input,), True, spec, chooser.settings.ttl)


def _choose_temporal_sort(chooser: Chooser, relation: Sort) -> PhysicalNode:
    input = chooser.choose(relation.input)
    first = relation.keys[0] if relation.keys else None
    column = None if first is None else relation.input.columns[first.index]
    if first is None or column is None or column.time is None or first.descending or input.changelog:
        raise TableException("Sort on a non-time-attribute field is not supported.")
    return nodes.TemporalSort(relation, (input,), False, None if column.time == PROCTIME else first.index)


RULES: dict[type, Rule] = {TopN: choose_top_n, Deduplicate: choose_deduplicate, Sort: choose_sort}
