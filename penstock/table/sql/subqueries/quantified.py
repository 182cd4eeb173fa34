"""IN, ANY, SOME and ALL with a query: both sides of the comparison get one type."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from penstock.table.logical.nodes import Column, Project, Relation
from penstock.table.logical.rex import InputRef, Rex, Subquery
from penstock.table.sql.parse.problems import not_supported
from penstock.table.sql.parse.syntax import Nested
from penstock.table.types.data_types import BooleanType, DataType

if TYPE_CHECKING:
    from penstock.table.sql.bind.bind_expressions import ExpressionBinder
    from penstock.table.sql.bind.binder_session import Functions


def membership(binder: ExpressionBinder, node: Nested, plan: Relation, args: Sequence[Rex]) -> Rex:
    """Return IN with a query."""
    fitted, plan = _alike(binder, node, plan, args)
    nullable = any(arg.type.is_nullable for arg in fitted) or any(one.is_nullable for one in plan.types())
    return Subquery(BooleanType(nullable), "IN", plan, tuple(fitted))


def comparison(binder: ExpressionBinder, node: Nested, plan: Relation, arg: Rex) -> Rex:
    """Return `x > ALL (query)` and the like. The kind of the subquery is the sign and ALL or SOME."""
    (fitted,), plan = _alike(binder, node, plan, [arg])
    return Subquery(BooleanType(), node.kind, plan, (fitted,))


def _alike(binder: ExpressionBinder, node: Nested, plan: Relation, args: Sequence[Rex]) -> tuple[list[Rex], Relation]:
    aims = []
    for arg, kind in zip(args, plan.types(), strict=True):
        aim = binder.functions.common_type([arg.type, kind])
        if aim is None:
            raise not_supported(node.at, f"a {arg.type.summary()} cannot be compared with a {kind.summary()}")
        aims.append(aim)
    fitted = [_fit(binder.functions, arg, aim) for arg, aim in zip(args, aims, strict=True)]
    return fitted, cast_columns(binder.functions, plan, aims)


def _fit(functions: Functions, rex: Rex, aim: DataType) -> Rex:
    return rex if rex.type.nullable() == aim.nullable() else functions.cast(rex, aim)


def cast_columns(functions: Functions, plan: Relation, aims: Sequence[DataType]) -> Relation:
    """Return the plan with its columns cast to these types, or the plan itself if they have them."""
    if all(kind.nullable() == aim.nullable() for kind, aim in zip(plan.types(), aims, strict=True)):
        return plan
    exprs: list[Rex] = []
    columns: list[Column] = []
    for index, (column, aim) in enumerate(zip(plan.columns, aims, strict=True)):
        wanted = aim.nullable() if column.type.is_nullable else aim.not_null()
        rex = _fit(functions, InputRef(column.type, index), wanted)
        exprs.append(rex)
        columns.append(column if isinstance(rex, InputRef) else replace(column, type=rex.type, time=None))
    return Project(tuple(columns), plan, tuple(exprs))
