"""MATCH_RECOGNIZE: the pattern of a query as a MatchSpec.

In DEFINE and MEASURES, rows are accessed by calls whose first argument is a word: the pattern variable, or "*" for any.
LAST(variable, expression, n) and FIRST(variable, expression, n) are the value of the expression, over the columns of
the input, for the n-th row of the variable from the end or the start, or NULL if there is none. A plain `A.price` is
LAST("A", price, 0). In DEFINE, the current row counts as a row of the variable that is defined. MATCH_AGG(function,
variable, ALL, arguments...) is an aggregate over all rows of a variable.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from penstock.table.logical.nodes import PROCTIME, ROWTIME, Column, Match, MatchSpec, Relation
from penstock.table.logical.rex import Call, InputRef, Literal, Rex, SortKey
from penstock.table.sql.bind.bind_expressions import ExpressionBinder
from penstock.table.sql.bind.scope import Scope
from penstock.table.sql.bind.window_table_functions import interval_of
from penstock.table.sql.parse.problems import invalid, not_supported, suggestion, with_place
from penstock.table.sql.parse.syntax import Constant, Invoke, Matched, Name, Node, Ordering, Star
from penstock.table.types.data_types import (
    DataType,
    IntegralType,
    IntType,
    LocalZonedTimestampType,
    NullType,
    TimestampType,
)

if TYPE_CHECKING:
    from penstock.table.sql.bind.bind_queries import QueryBinder

ANY = "*"
"""The variable that every row belongs to."""


def match_relation(queries: QueryBinder, node: Matched, relation: Relation, scope: Scope) -> Relation:
    """Return the relation of matches: the columns of PARTITION BY, then the measures."""
    if node.all_rows:
        raise not_supported(node.at, "ALL ROWS PER MATCH is not supported; write ONE ROW PER MATCH")
    if not node.measures:
        raise invalid(node.at, "MATCH_RECOGNIZE needs MEASURES, which say what comes out")
    variables = [element.name for element in node.pattern.elements()]
    _check_names(node, variables)
    plain = queries.expressions(scope, "in MATCH_RECOGNIZE")
    partition = tuple(_column(plain, one) for one in node.partition)
    order = tuple(_sort_key(plain, one) for one in node.order)
    _check_order(queries, node, relation, order)
    known = {*variables, *(name for name, _ in (*node.subsets, *node.defines))}
    rows = _rows_binder(plain, relation, known, order)
    measured = replace(rows, measuring=True)
    measures = tuple((str(item.alias), measured.bind(item.value)) for item in node.measures)
    defines = tuple((name, rows.condition(value, f"DEFINE of {name}")) for name, value in node.defines)
    defines = tuple((name, condition) for name, condition in defines if name in variables)
    within = None if node.within is None else interval_of(plain.bind(node.within), node.within.at)
    spec = MatchSpec(partition, order, node.pattern, defines, measures, node.skip, within, False, node.subsets)
    columns = [relation.columns[index] for index in partition]
    columns = [replace(column, time=None) for column in columns] + [_measure(name, rex) for name, rex in measures]
    return Match(tuple(columns), relation, spec)


def _measure(name: str, rex: Rex) -> Column:
    times = {"MATCH_ROWTIME": ROWTIME, "PROCTIME": PROCTIME}
    return Column(name, rex.type, times.get(rex.function) if isinstance(rex, Call) else None)


# --- checks ---
def _check_names(node: Matched, variables: list[str]) -> None:
    doubled = [name for name in variables if variables.count(name) > 1]
    if doubled:
        raise not_supported(node.at, f"PATTERN: variable '{doubled[0]}' stands twice; every variable may stand once")
    kind, target = node.skip
    if target is not None and target not in variables and target not in dict(node.subsets):
        raise invalid(
            node.at, f"AFTER MATCH SKIP {kind}: there is no variable '{target}'{suggestion(target, variables)}"
        )


def _check_order(queries: QueryBinder, node: Matched, relation: Relation, order: tuple[SortKey, ...]) -> None:
    if not order:
        raise not_supported(node.at, "MATCH_RECOGNIZE needs an ORDER BY that starts with a time attribute")
    first = relation.columns[order[0].index]
    moment = isinstance(first.type, TimestampType | LocalZonedTimestampType)
    if order[0].descending or not (first.time or (queries.session.batch and moment)):
        raise not_supported(node.order[0].at, "MATCH_RECOGNIZE is ordered by an ascending time attribute first")


def _column(binder: ExpressionBinder, node: Node) -> int:
    rex = binder.bind(node)
    if not isinstance(rex, InputRef):
        raise invalid(node.at, "PARTITION BY and ORDER BY of MATCH_RECOGNIZE take columns")
    return rex.index


def _sort_key(binder: ExpressionBinder, one: Ordering) -> SortKey:
    nulls = not one.descending if one.nulls_first is None else one.nulls_first
    return SortKey(_column(binder, one.value), one.descending, nulls)


# --- expressions over rows of a match ---
def _rows_binder(plain: ExpressionBinder, relation: Relation, variables: set[str], order: Any) -> _RowsBinder:
    time = relation.columns[order[0].index]
    return _RowsBinder(plain.session, plain.functions, plain.scope, plain.query, variables=variables, time=time)


@dataclass
class _RowsBinder(ExpressionBinder):
    """Binds columns that belong to the variables of a pattern."""

    variables: set[str] | None = None
    time: Column | None = None
    measuring: bool = False
    """True for MEASURES, and False for DEFINE."""
    inside: list[str] | None = None
    """The variables named so far, while the argument of a function over rows is bound."""

    def column(self, node: Name) -> Rex:
        variable, rex = self._of_variable(node)
        if self.inside is not None:
            self.inside.append(variable)
            return rex
        return _row("LAST", variable, rex, 0)

    def _of_variable(self, node: Name) -> tuple[str, Rex]:
        if len(node.parts) > 1 and node.parts[0] in (self.variables or ()):
            return node.parts[0], self.scope.resolve(Name(node.at, node.parts[1:]))
        return ANY, self.scope.resolve(node)

    def _invoke(self, node: Invoke) -> Rex:
        name = node.name.upper()
        if name in {"FIRST", "LAST"}:
            return self._navigate(node, name)
        if name in {"MATCH_ROWTIME", "MATCH_PROCTIME"}:
            return self._match_time(node, name)
        if name in {"PREV", "NEXT"}:
            problem = invalid if self.measuring else not_supported
            raise problem(node.at, f"{name} is not supported; LAST(A.x, 1) is the row before the last one of A")
        if name == "CLASSIFIER":
            raise not_supported(node.at, f"{name} is not supported")
        if name == "MATCH_NUMBER":
            raise invalid(node.at, f"there is no function {name}")
        return super()._invoke(node)

    def _navigate(self, node: Invoke, name: str) -> Rex:
        if not 1 <= len(node.args) <= 2:
            raise invalid(node.at, f"{name} takes an expression over one variable, and perhaps how many rows to skip")
        offset = 0
        if len(node.args) == 2:
            count = node.args[1]
            if not isinstance(count, Constant) or not isinstance(count.type, IntegralType) or count.value < 0:
                raise invalid(count.at, f"the second argument of {name} is a number of rows, 0 or more")
            offset = count.value
        variable, (rex,) = self._over_rows(node, node.args[:1])
        return _row(name, variable, rex, offset)

    def _over_rows(self, node: Invoke, args: tuple[Node, ...]) -> tuple[str, tuple[Rex, ...]]:
        """Bind arguments over the columns of the input. Refuse arguments of several variables."""
        inner = replace(self, inside=[])
        stars = [arg for arg in args if isinstance(arg, Star)]
        if stars:
            raise invalid(stars[0].at, f"{node.name} takes a column of a variable, not all of them")
        rexes = inner.all(args)
        named = set(inner.inside or ())
        if len(named) > 1:
            raise invalid(node.at, f"{node.name} must speak of one variable, not of {', '.join(sorted(named))}")
        return named.pop() if named else ANY, rexes

    def _match_time(self, node: Invoke, name: str) -> Rex:
        kind: DataType = LocalZonedTimestampType(3, False)
        if name == "MATCH_ROWTIME" and self.time is not None and isinstance(self.time.type, TimestampType):
            kind = TimestampType(3, False)
        return Call(kind, name if name == "MATCH_ROWTIME" else "PROCTIME", ())

    def aggregate(self, node: Invoke, name: str, own: Any) -> Rex:
        if node.over is not None or node.filter is not None:
            raise not_supported(node.at, "aggregates of MATCH_RECOGNIZE take neither OVER nor FILTER")
        if node.distinct:
            raise invalid(node.at, "aggregates of MATCH_RECOGNIZE take no DISTINCT")
        variable, args = self._over_rows(node, node.args)
        types = [arg.type for arg in args]
        kind = own.result_type if own else with_place(node.at, lambda: self._aggregate_type(name, types))
        words = (_word(name), _word(variable), _word("ALL"))
        return Call(kind if name == "COUNT" else kind.nullable(), "MATCH_AGG", (*words, *args), own)

    def _aggregate_type(self, name: str, types: list[DataType]) -> DataType:
        return self.functions.resolve_aggregate(name, types, False)


def _row(name: str, variable: str, rex: Rex, offset: int) -> Rex:
    return Call(rex.type.nullable(), name, (_word(variable), rex, Literal(IntType(False), offset)))


def _word(word: str) -> Rex:
    return Literal(NullType(), word)
