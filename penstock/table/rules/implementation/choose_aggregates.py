"""Rules for aggregates over groups, and for window table functions."""

from __future__ import annotations

from collections.abc import Sequence

from penstock.errors import TableException
from penstock.table.logical.kinds import WindowKind
from penstock.table.logical.nodes import PROCTIME, Aggregate, GroupWindow, TableAggregate, WindowTable
from penstock.table.logical.optimised_nodes import SliceTable
from penstock.table.operators.aggregate.functions import Fold, folds_for
from penstock.table.physical import aggregate_nodes as nodes
from penstock.table.physical.physical_node import PhysicalNode
from penstock.table.rules.implementation.choose_windows import choose_window_aggregate, in_two_phases, window_keys
from penstock.table.rules.implementation.chooser import Chooser, Rule


def choose_aggregate(chooser: Chooser, relation: Aggregate) -> PhysicalNode:
    """Choose the nodes of GROUP BY: an aggregate over windows if there are any, else over groups."""
    batch = chooser.settings.batch
    windows = None if batch else window_keys(relation, chooser.settings.zone)
    if windows is not None:
        return choose_window_aggregate(chooser, relation, windows)
    if not batch and any(call.function == "APPROX_COUNT_DISTINCT" for call in relation.calls):
        raise TableException("APPROX_COUNT_DISTINCT aggregate function does not support yet for streaming.")
    input = chooser.choose(relation.input)
    signed = input.changelog
    folds = tuple(folds_for(relation.calls, relation.input.columns, signed))
    changelog = not batch and (signed or bool(relation.calls))
    two_phases = in_two_phases(chooser, folds)
    if two_phases:
        input = nodes.LocalGroupAggregate(relation, (input,), False, folds, signed)
    ttl = chooser.settings.ttl_of(relation.ttl)
    return nodes.GroupAggregate(relation, (input,), changelog, folds, signed, two_phases, ttl)


def choose_table_aggregate(chooser: Chooser, relation: TableAggregate) -> PhysicalNode:
    """Choose the node of flat_aggregate over groups."""
    input = chooser.choose(relation.input)
    return nodes.GroupTableAggregate(relation, (input,), not chooser.settings.batch, chooser.settings.ttl)


def choose_window_table(chooser: Chooser, relation: WindowTable) -> PhysicalNode:
    """Choose the node of a window table function."""
    input, time = chooser.choose(relation.input), _time_column(relation)
    if relation.kind != WindowKind.SESSION:
        return nodes.WindowTableFunction(relation, (input,), input.changelog, time)
    if chooser.settings.batch:
        raise TableException("Unaligned windows like session are not supported in batch mode yet.")
    return nodes.SessionTableFunction(relation, (input,), input.changelog, time)


def choose_slice_table(chooser: Chooser, relation: SliceTable) -> PhysicalNode:
    """Choose the node of the slices that replace a window table before an aggregate."""
    input = chooser.choose(relation.input)
    return nodes.SliceTable(relation, (input,), input.changelog, _time_column(relation))


def _time_column(relation: WindowTable) -> int | None:
    """Return the column of the time, or None for processing time."""
    return None if relation.input.columns[relation.time].time == PROCTIME else relation.time


def choose_count_windows(chooser: Chooser, relation: GroupWindow) -> PhysicalNode:
    """Choose the node of windows of a number of rows. All other group windows have become window tables."""
    input = chooser.choose(relation.input)
    if input.changelog:
        raise TableException("windows of numbers of rows need rows that stay, and this input changes rows")
    folds: Sequence[Fold] = folds_for(relation.calls, relation.input.columns, False)
    return nodes.CountWindowAggregate(relation, (input,), False, tuple(folds))


RULES: dict[type, Rule] = {
    Aggregate: choose_aggregate,
    TableAggregate: choose_table_aggregate,
    WindowTable: choose_window_table,
    SliceTable: choose_slice_table,
    GroupWindow: choose_count_windows,
}
