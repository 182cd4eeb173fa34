"""The older group windows are window table functions with an aggregate above them."""

from __future__ import annotations

from penstock.table.functions import resolve
from penstock.table.plan.nodes import ROWTIME, Aggregate, Column, GroupWindow, Project, Relation, WindowTable
from penstock.table.plan.rex import Rex
from penstock.table.types import LocalZonedTimestampType, TimestampType

_BOUND = TimestampType(3, False)


def window_table_of(relation: GroupWindow) -> Relation:
    """Window table, aggregate by keys and window, projection to the columns of the group window."""
    input = relation.input
    time = input.columns[relation.time]
    window_time = LocalZonedTimestampType(3, False) if isinstance(time.type, LocalZonedTimestampType) else _BOUND
    bounds = (
        Column("window_start", _BOUND),
        Column("window_end", _BOUND),
        Column("window_time", window_time, time.time or ROWTIME),
    )
    partition = relation.keys if relation.kind == "SESSION" else ()
    windows = WindowTable(
        input.columns + bounds, input, relation.kind, relation.time, relation.size, relation.slide, 0, partition
    )
    width = len(input.columns)
    keys = (*relation.keys, width, width + 1, width + 2)
    columns = tuple(windows.columns[key] for key in keys) + tuple(
        Column(call.name, call.type) for call in relation.calls
    )
    grouped = Aggregate(columns, windows, keys, relation.calls)
    return Project(relation.columns, grouped, tuple(_exprs(relation, grouped)))


def _exprs(relation: GroupWindow, grouped: Aggregate) -> list[Rex]:
    count = len(relation.keys)
    bounds = {"start": count, "end": count + 1, "rowtime": count + 2}
    exprs: list[Rex] = [grouped.ref(index) for index in range(count)]
    exprs += [grouped.ref(count + 3 + index) for index in range(len(relation.calls))]
    exprs += [grouped.ref(bounds[name]) if name in bounds else resolve("PROCTIME", ()) for name in relation.properties]
    return exprs
