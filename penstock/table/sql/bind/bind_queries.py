"""Queries become plans: WITH, set operations, VALUES, ORDER BY. The module select.py binds SELECT itself."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from penstock.table.logical.kinds import SetKind
from penstock.table.logical.nodes import Column, Columns, Project, Relation, SetOperation, Sort, Values
from penstock.table.logical.rex import Rex, SortKey
from penstock.table.sql.bind import select as selects
from penstock.table.sql.bind.aggregate_calls import one_keyed
from penstock.table.sql.bind.bind_expressions import ExpressionBinder
from penstock.table.sql.bind.binder_session import Functions, Session
from penstock.table.sql.bind.naming import cut, position, projection
from penstock.table.sql.bind.placeholders import Keyed
from penstock.table.sql.bind.scope import Scope, scope_of
from penstock.table.sql.parse.problems import invalid
from penstock.table.sql.parse.syntax import Combined, Constant, Node, Ordered, Ordering, Query, Select, ValueRows, With
from penstock.table.sql.subqueries.quantified import cast_columns
from penstock.table.types.data_types import DataType, IntegralType, IntType

ONE_ROW = Values((Column("ZERO", IntType(False)),), ((0,),))
"""The input of a SELECT without FROM."""


class QueryBinder:
    """Binds queries. `tables` are the common table expressions in scope."""

    def __init__(self, session: Session, functions: Functions, tables: Mapping[str, Relation] | None = None) -> None:
        self.session, self.functions = session, functions
        self.tables = dict(tables or {})

    def query(self, node: Query, outer: Scope | None = None) -> Relation:
        """Return the plan of a query. `outer` is the scope of the surrounding query."""
        if isinstance(node, With):
            return self._with(node, outer)
        if isinstance(node, Ordered):
            return self._order(node, outer)
        if isinstance(node, Combined):
            return self._combine(node, outer)
        if isinstance(node, ValueRows):
            return self._values(node, outer)
        assert isinstance(node, Select)
        return selects.bind_select(self, node, outer, None)

    def expressions(self, scope: Scope, aggregates: str | None) -> ExpressionBinder:
        """Return a binder of expressions over a scope."""
        return ExpressionBinder(self.session, self.functions, scope, self.query, aggregates)

    def _with(self, node: With, outer: Scope | None) -> Relation:
        binder = QueryBinder(self.session, self.functions, self.tables)
        for table in node.tables:
            plan = binder.query(table.query, outer)
            binder.tables[table.name] = rename_columns(plan, table.columns, table) if table.columns else plan
        return binder.query(node.query, outer)

    # --- order and limits ---
    def _order(self, node: Ordered, outer: Scope | None) -> Relation:
        if isinstance(node.query, Select):
            return selects.bind_select(self, node.query, outer, node)
        plan = self.query(node.query, outer)
        binder = self.expressions(scope_of(plan, outer), "in ORDER BY clause")
        keys = [one_keyed(_ordinal(one, plan) or binder.bind(one.value), one) for one in node.order]
        return sort_by(plan, keys, node)

    # --- set operations ---
    def _combine(self, node: Combined, outer: Scope | None) -> Relation:
        left, right = self.query(node.left, outer), self.query(node.right, outer)
        name = node.kind + (" ALL" if node.all else "")
        if len(left.columns) != len(right.columns):
            raise invalid(
                node.right.at, f"Column count mismatch in {name}: {len(left.columns)} and {len(right.columns)} columns"
            )
        return combine(self.functions, [left, right], node.kind, node.all, lambda index: self._mismatch(node, index))

    def _mismatch(self, node: Combined, index: int) -> Exception:
        return invalid(node.at, f"Type mismatch in column {index + 1} of {node.kind}{' ALL' if node.all else ''}")

    # --- VALUES ---
    def _values(self, node: ValueRows, outer: Scope | None) -> Relation:
        binder = self.expressions(Scope((), outer), "in VALUES")
        rows = [binder.all(row) for row in node.rows]
        width = len(rows[0])
        for row, written in zip(rows, node.rows, strict=True):
            if len(row) != width:
                raise invalid(written[0].at, f"rows of VALUES have {width} and {len(row)} values")
        columns = tuple(Column(f"EXPR${index}", self._value_type(node, rows, index)) for index in range(width))
        cast = [tuple(self._cast(one, column.type) for one, column in zip(row, columns, strict=True)) for row in rows]
        folded = [[self.functions.constant(one) for one in row] for row in cast]
        if all(one is not None for row in folded for one in row):
            return Values(columns, tuple(tuple(one.value for one in row if one) for row in folded))
        parts = tuple(Project(columns, ONE_ROW, row) for row in cast)
        return parts[0] if len(parts) == 1 else SetOperation(columns, parts, SetKind.UNION, True)

    def _value_type(self, node: ValueRows, rows: Sequence[Sequence[Rex]], index: int) -> DataType:
        found = self.functions.common_type([row[index].type for row in rows])
        if found is None:
            raise invalid(node.rows[-1][index].at, f"the values of column {index + 1} have types without a common one")
        return found

    def _cast(self, rex: Rex, aim: DataType) -> Rex:
        return rex if rex.type.nullable() == aim.nullable() else self.functions.cast(rex, aim)


def _ordinal(one: Ordering, plan: Relation) -> Rex | None:
    """Return the column of an ordinal such as ORDER BY 2, or None for other expressions."""
    index = ordinal(one, len(plan.columns))
    return None if index is None else plan.ref(index)


def ordinal(one: Ordering, width: int) -> int | None:
    """Return the index of an ordinal such as ORDER BY 2, or None for other expressions."""
    if not isinstance(one.value, Constant) or not isinstance(one.value.type, IntegralType):
        return None
    if not 1 <= one.value.value <= width:
        raise invalid(one.at, f"ORDER BY {one.value.value}: there are columns 1 to {width}")
    return int(one.value.value) - 1


def rename_columns(plan: Relation, names: Sequence[str], node: Node) -> Relation:
    """Return the plan with other names for its columns."""
    if len(names) != len(plan.columns):
        known = ", ".join(plan.names())
        raise invalid(node.at, f"{len(names)} names are given for {len(plan.columns)} columns ({known})")
    if list(names) == plan.names():
        return plan
    columns = tuple(replace(column, name=name) for column, name in zip(plan.columns, names, strict=True))
    return Project(columns, plan, tuple(plan.ref(index) for index in range(len(columns))))


def combine(
    functions: Functions, parts: list[Relation], kind: str, every: bool, mismatch: Callable[[int], Exception]
) -> Relation:
    """Return UNION, INTERSECT or EXCEPT of relations with equally many columns, named like those of the first."""
    aims = []
    for index in range(len(parts[0].columns)):
        aim = functions.common_type([part.columns[index].type for part in parts])
        if aim is None:
            raise mismatch(index)
        aims.append(aim)
    alike = [cast_columns(functions, part, aims) for part in parts]
    first = alike[0]
    flat = isinstance(first, SetOperation) and (first.kind, first.all) == (kind, every) and kind == SetKind.UNION
    if flat and isinstance(first, SetOperation):
        alike = [*first.parts, *alike[1:]]
    return SetOperation(_unite_columns(parts[0].names(), alike, aims, kind), tuple(alike), SetKind(kind), every)


def _unite_columns(names: Sequence[str], parts: Sequence[Relation], aims: Sequence[DataType], kind: str) -> Columns:
    columns = []
    for index, (name, aim) in enumerate(zip(names, aims, strict=True)):
        mine = [part.columns[index] for part in parts]
        if kind != SetKind.UNION:
            mine = mine[:1]
        nullable = any(column.type.is_nullable for column in mine)
        times = {column.time for column in mine}
        time = times.pop() if len(times) == 1 else None
        columns.append(Column(name, aim.nullable() if nullable else aim.not_null(), time))
    return tuple(columns)


def sort_by(plan: Relation, keys: Sequence[Keyed], node: Ordered) -> Relation:
    """Return the plan in an order. Sort expressions are computed before, and removed after the sort."""
    exprs: list[Rex] = [plan.ref(index) for index in range(len(plan.columns))]
    indices = [position(exprs, one.value) for one in keys]
    width = len(plan.columns)
    below = plan if len(exprs) == width else projection(plan, exprs, [*plan.names(), *["$o"] * (len(exprs) - width)])
    order = tuple(SortKey(index, one.descending, one.nulls_first) for index, one in zip(indices, keys, strict=True))
    ordered = Sort(below.columns, below, order, node.offset, node.limit)
    return ordered if below is plan else cut(ordered, width)
