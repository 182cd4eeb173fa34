"""Functions that build relations, and derive their columns and time attributes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from penstock.table.logical.kinds import JoinKind, SetKind
from penstock.table.logical.nodes import (
    PROCTIME,
    Aggregate,
    Column,
    Columns,
    Filter,
    Join,
    Over,
    Project,
    Relation,
    SetOperation,
    Sort,
)
from penstock.table.logical.rex import AggregateCall, Call, InputRef, OverSpec, Rex, SortKey


def project(input: Relation, exprs: Sequence[Rex], names: Sequence[str]) -> Project:
    """Return a projection. A time attribute that is passed unchanged remains one, and PROCTIME() makes one."""
    columns = tuple(Column(name, expr.type, _time_of(input, expr)) for expr, name in zip(exprs, names, strict=True))
    return Project(columns, input, tuple(exprs))


def _time_of(input: Relation, expr: Rex) -> str | None:
    if isinstance(expr, InputRef):
        return input.columns[expr.index].time
    return PROCTIME if isinstance(expr, Call) and expr.function == "PROCTIME" else None


def identity(input: Relation) -> list[Rex]:
    """Return references to all columns of a relation."""
    return [input.ref(index) for index in range(len(input.columns))]


def rename_columns(input: Relation, names: Sequence[str]) -> Project:
    """Return the same columns under other names."""
    return project(input, identity(input), names)


def where(input: Relation, condition: Rex) -> Filter:
    """Return a filter."""
    return Filter(input.columns, input, condition)


def aggregate(input: Relation, keys: Sequence[int], calls: Sequence[AggregateCall]) -> Aggregate:
    """Return a group aggregate. Its keys are not time attributes, unless a window below makes them so."""
    kept = tuple(input.columns[key] for key in keys)
    made = tuple(Column(call.name, call.type) for call in calls)
    return Aggregate(kept + made, input, tuple(keys), tuple(calls))


def over(input: Relation, windows: Sequence[OverSpec]) -> Over:
    """Return a relation with the calls of OVER windows after its columns."""
    made = tuple(Column(call.name, call.type) for window in windows for call in window.calls)
    return Over(input.columns + made, input, tuple(windows))


def sort(input: Relation, keys: Sequence[SortKey], offset: int = 0, limit: int | None = None) -> Sort:
    """Return a relation in order, or some of its rows."""
    return Sort(input.columns, input, tuple(keys), offset, limit)


def join(left: Relation, right: Relation, kind: JoinKind, condition: Rex | None) -> Join:
    """Return a join.

    Outer sides become nullable, SEMI and ANTI keep only left columns, and right times are no attributes.
    """
    if kind in {JoinKind.SEMI, JoinKind.ANTI}:
        return Join(left.columns, left, right, kind, condition)
    first = _nullable(left.columns) if kind in {JoinKind.RIGHT, JoinKind.FULL} else left.columns
    second = _nullable(right.columns) if kind in {JoinKind.LEFT, JoinKind.FULL} else right.columns
    return Join(first + second, left, right, kind, condition)


def _nullable(columns: Columns) -> Columns:
    return tuple(replace(column, type=column.type.nullable()) for column in columns)


def set_operation(parts: Sequence[Relation], kind: SetKind, all: bool, columns: Columns) -> SetOperation:
    """Return UNION, INTERSECT or EXCEPT."""
    return SetOperation(columns, tuple(parts), kind, all)
