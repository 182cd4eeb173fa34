"""The older group windows become window tables with an aggregate above them."""

from __future__ import annotations

from dataclasses import replace

from penstock.errors import TableException
from penstock.table.functions import resolve
from penstock.table.logical.kinds import WindowKind
from penstock.table.logical.nodes import (
    ROWTIME,
    Aggregate,
    Column,
    GroupWindow,
    Project,
    Relation,
    TableAggregate,
    WindowTable,
)
from penstock.table.logical.optimised_nodes import WindowTableAggregate
from penstock.table.logical.rex import Rex
from penstock.table.types.data_types import LocalZonedTimestampType, TimestampType

_BOUND = TimestampType(3, False)


def window_table_of(relation: GroupWindow) -> Relation:
    """Return a plan with the same result: a window table, an aggregate over it, and a projection.

    The aggregate groups by the keys and the window. The projection gives the columns of the group window.
    """
    windows = _windows(relation)
    width = len(relation.input.columns)
    keys = (*relation.keys, width, width + 1, width + 2)
    columns = tuple(windows.columns[key] for key in keys) + tuple(
        Column(call.name, call.type) for call in relation.calls
    )
    grouped = Aggregate(columns, windows, keys, relation.calls)
    return Project(relation.columns, grouped, tuple(_exprs(relation, grouped)))


def _windows(relation: GroupWindow) -> WindowTable:
    input = relation.input
    time = input.columns[relation.time]
    window_time = LocalZonedTimestampType(3, False) if isinstance(time.type, LocalZonedTimestampType) else _BOUND
    bounds = (
        Column("window_start", _BOUND),
        Column("window_end", _BOUND),
        Column("window_time", window_time, time.time or ROWTIME),
    )
    partition = relation.keys if relation.kind == WindowKind.SESSION else ()
    return WindowTable(
        input.columns + bounds, input, relation.kind, relation.time, relation.size, relation.slide, 0, partition
    )


def with_windows_below(relation: Relation) -> Relation:
    """Replace a table aggregate over a group window by one over a window table."""
    if not isinstance(relation, TableAggregate) or relation.window is None:
        return relation
    window = relation.window
    if window.by_rows:
        raise TableException("flat_aggregate over windows of numbers of rows cannot be run")
    below = _windows(replace(window, input=relation.input))
    return WindowTableAggregate(relation.columns, below, relation.keys, relation.call, window.properties)


def _exprs(relation: GroupWindow, grouped: Aggregate) -> list[Rex]:
    count = len(relation.keys)
    bounds = {"start": count, "end": count + 1, "rowtime": count + 2}
    exprs: list[Rex] = [grouped.ref(index) for index in range(count)]
    exprs += [grouped.ref(count + 3 + index) for index in range(len(relation.calls))]
    exprs += [grouped.ref(bounds[name]) if name in bounds else resolve("PROCTIME", ()) for name in relation.properties]
    return exprs
