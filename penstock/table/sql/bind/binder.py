"""The binder: parsed statements become plans with resolved names and types."""

from __future__ import annotations

from collections.abc import Sequence

from penstock.errors import ValidationException
from penstock.table import functions as registry
from penstock.table.logical.nodes import Columns, Relation
from penstock.table.logical.rex import Literal, Rex, Subquery, walk
from penstock.table.sql.bind.bind_queries import QueryBinder
from penstock.table.sql.bind.binder_session import Functions, Session
from penstock.table.sql.bind.naming import projection
from penstock.table.sql.bind.scope import Scope
from penstock.table.sql.parse import statements as st
from penstock.table.sql.parse.problems import suggestion
from penstock.table.sql.parse.statement_parser import parse, parse_expression
from penstock.table.sql.parse.syntax import Constant, Node, Query
from penstock.table.sql.subqueries.decorrelate import decorrelate
from penstock.table.types.data_types import DataType, NullType


class Binder:
    """Binds queries and expressions of a session."""

    def __init__(self, session: Session, functions: Functions | None = None) -> None:
        self.session = session
        self.functions: Functions = functions or registry

    def query(self, query: str | Query | st.Query) -> Relation:
        """Return the plan of a query. Queries inside of expressions have become joins."""
        bound = QueryBinder(self.session, self.functions).query(_query(query))
        return decorrelate(self.functions, bound)

    def expression(self, expression: str | Node | st.Expression, columns: Columns) -> Rex:
        """Return an expression over columns, such as a computed column or a watermark."""
        if isinstance(expression, str):
            expression = parse_expression(expression)
        tree = expression.tree if isinstance(expression, st.Expression) else expression
        binder = QueryBinder(self.session, self.functions).expressions(
            Scope.over(columns), "in an expression of columns"
        )
        rex = binder.bind(tree)
        if any(isinstance(part, Subquery) for part in walk(rex)):
            raise ValidationException(f"{tree.at}: an expression of columns cannot contain a query")
        return rex

    def insert(self, statement: st.InsertInto, sink: Columns) -> Relation:
        """Return the query of an INSERT INTO, with the columns of the table that is written."""
        plan = self.query(statement.query)
        fixed = {name: _constant(value) for name, value in statement.partition}
        names = statement.columns or tuple(one.name for one in sink if one.name not in fixed)
        return self.fit(plan, sink, names, fixed, f"{statement.at}: INSERT INTO {'.'.join(statement.path)}")

    def fit(
        self, plan: Relation, sink: Columns, names: Sequence[str], fixed: dict[str, Literal], what: str
    ) -> Relation:
        """Return the plan with exactly the columns of a sink, reordered and cast.

        Columns that are not written are NULL.
        """
        known = [one.name for one in sink]
        for name in (*names, *fixed):
            if name not in known:
                raise ValidationException(f"{what}: there is no column '{name}'{suggestion(name, known)}")
        if len(names) != len(plan.columns):
            found = f"{len(plan.columns)} columns {_describe(plan.columns)}"
            raise ValidationException(
                f"{what}: the query has {found}, but {len(names)} are written: {', '.join(names)}"
            )
        exprs = []
        for column in sink:
            if column.name in names:
                rex: Rex = plan.ref(list(names).index(column.name))
            else:
                rex = fixed.get(column.name, Literal(NullType(), None))
            exprs.append(self._cast(rex, column.type, f"{what}: column '{column.name}'"))
        if exprs == [plan.ref(index) for index in range(len(plan.columns))]:
            return plan
        return projection(plan, exprs, known)

    def _cast(self, rex: Rex, aim: DataType, what: str) -> Rex:
        if isinstance(rex, Literal) and rex.value is None and not aim.is_nullable:
            raise ValidationException(f"{what} is NOT NULL, but nothing is written into it")
        if rex.type.nullable() == aim.nullable():
            return rex
        try:
            return self.functions.cast(rex, aim.nullable() if rex.type.is_nullable else aim)
        except ValidationException as problem:
            written = f"a {rex.type.summary()} is written: {problem}"
            raise ValidationException(f"{what} is a {aim.summary()}, and {written}") from problem


def _query(query: str | Query | st.Query) -> Query:
    if isinstance(query, Query):
        return query
    if isinstance(query, st.Query):
        return query.query
    found = parse(query)
    if len(found) != 1 or not isinstance(found[0], st.Query):
        raise ValidationException("a query is one SELECT, VALUES or WITH; other statements are for execute_sql")
    return found[0].query


def _constant(value: object) -> Literal:
    assert isinstance(value, Constant)
    return Literal(value.type, value.value)


def _describe(columns: Columns) -> str:
    return "(" + ", ".join(f"{one.name} {one.type.summary()}" for one in columns) + ")"
