"""Whether a plan is well-formed: references hit columns of their type, and columns are what the relation makes."""

from __future__ import annotations

import pickle

from penstock.table.logical import nodes as n
from penstock.table.logical.rex import InputRef, OuterRef, Rex, Subquery, walk
from penstock.table.sql.bind.placeholders import Aggregated, Grouping, Spanned, WindowProperty
from penstock.table.types.data_types import BooleanType

LEFTOVERS = (Subquery, OuterRef, Aggregated, Spanned, Grouping, WindowProperty)


def check_plan(plan: n.Relation) -> None:
    assert n.explain(plan)
    assert pickle.loads(pickle.dumps(plan)) == plan
    for node in n.walk_plan(plan):
        _CHECKS.get(type(node), lambda node: None)(node)


def _check_rex(rex: Rex, columns: n.Columns) -> None:
    for part in walk(rex):
        assert not isinstance(part, LEFTOVERS), part
        if isinstance(part, InputRef):
            assert part.index < len(columns), f"{part} of {len(columns)} columns"
            assert part.type.nullable() == columns[part.index].type.nullable(), (part, columns[part.index])


def _project(node: n.Project) -> None:
    assert node.exprs, "a batch needs a column"
    assert len(set(node.names())) == len(node.names())
    for rex, column in zip(node.exprs, node.columns, strict=True):
        _check_rex(rex, node.input.columns)
        assert rex.type.nullable() == column.type.nullable()
        if column.time == n.ROWTIME:
            assert isinstance(rex, InputRef) and node.input.columns[rex.index].time == n.ROWTIME


def _filter(node: n.Filter) -> None:
    assert node.columns == node.input.columns
    assert isinstance(node.condition.type, BooleanType)
    _check_rex(node.condition, node.input.columns)


def _aggregate(node: n.Aggregate) -> None:
    assert len(node.columns) == len(node.keys) + len(node.calls)
    for key, column in zip(node.keys, node.columns, strict=False):
        assert column.type.nullable() == node.input.columns[key].type.nullable()
    for call, column in zip(node.calls, node.columns[len(node.keys) :], strict=True):
        assert call.type == column.type
        assert all(index < len(node.input.columns) for index in call.args)


def _join(node: n.Join) -> None:
    both = (*node.left.columns, *node.right.columns)
    assert [one.name for one in node.columns] == [one.name for one in both[: len(node.columns)]]
    assert len(node.columns) == (len(node.left.columns) if node.kind in {"SEMI", "ANTI"} else len(both))
    if node.condition is not None:
        _check_rex(node.condition, both)


def _over(node: n.Over) -> None:
    width = len(node.input.columns)
    assert node.columns[:width] == node.input.columns
    calls = [call for window in node.windows for call in window.calls]
    assert [call.type for call in calls] == [column.type for column in node.columns[width:]]


def _set_operation(node: n.SetOperation) -> None:
    for part in node.parts:
        assert [one.nullable() for one in part.types()] == [one.nullable() for one in node.types()]


def _sort(node: n.Sort) -> None:
    assert node.columns == node.input.columns
    assert all(key.index < len(node.columns) for key in node.keys)


def _window(node: n.WindowTable) -> None:
    assert node.columns[:-3] == node.input.columns
    assert [column.name for column in node.columns[-3:]] == ["window_start", "window_end", "window_time"]


def _expand(node: n.Expand) -> None:
    assert node.names()[:-1] == node.input.names()
    assert all(key in node.keys for one in node.sets for key in one)


_CHECKS = {
    n.Project: _project,
    n.Filter: _filter,
    n.Aggregate: _aggregate,
    n.Join: _join,
    n.Over: _over,
    n.SetOperation: _set_operation,
    n.Sort: _sort,
    n.WindowTable: _window,
    n.Expand: _expand,
}
