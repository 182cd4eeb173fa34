"""SELECT: from its clauses to a plan, in the order in which SQL evaluates them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from penstock.errors import CodeGenException
from penstock.table.logical.nodes import Aggregate, Filter, Relation, Sort
from penstock.table.logical.rex import Rex, SortKey
from penstock.table.sql.bind.aggregate_calls import one_keyed
from penstock.table.sql.bind.bind_expressions import ExpressionBinder
from penstock.table.sql.bind.from_clause import FromClause
from penstock.table.sql.bind.group_by import Groups, bind_groups, group_keys
from penstock.table.sql.bind.naming import cut, item_name, position, projection, uniquely
from penstock.table.sql.bind.overs import bind_spans
from penstock.table.sql.bind.placeholders import Aggregated, Grouping, Keyed, Spanned, WindowProperty, everything
from penstock.table.sql.bind.scope import Scope
from penstock.table.sql.parse.hints import name_of
from penstock.table.sql.parse.problems import invalid
from penstock.table.sql.parse.syntax import Item, Ordered, Select, Star
from penstock.table.types.data_types import NullType

if TYPE_CHECKING:
    from penstock.table.sql.bind.bind_queries import QueryBinder

Lift = Callable[[Rex], Rex]


def bind_select(queries: QueryBinder, select: Select, outer: Scope | None, ordered: Ordered | None) -> Relation:
    """Return the plan of a SELECT, with the ORDER BY and LIMIT after it."""
    relation, scope = FromClause(queries, outer, select.ttl).bind(select.source)
    binder = replace(queries.expressions(scope, "in WHERE clause"), windows=dict(select.windows))
    if select.where is not None:
        relation = Filter(relation.columns, relation, binder.condition(select.where, "WHERE"))
    clauses = _Clauses.bind(binder, select, ordered)
    relation, clauses = _with_groups(binder, select, relation, clauses)
    if isinstance(relation, Aggregate) and select.ttl:
        relation = replace(relation, ttl=dict(select.ttl).get(name_of(select.source) or ""))
    if clauses.having is not None:
        relation = Filter(relation.columns, relation, clauses.having)
    relation, clauses = _with_windows(relation, clauses)
    if clauses.qualify is not None:
        relation = Filter(relation.columns, relation, clauses.qualify)
    return _finish(relation, clauses, select, ordered)


@dataclass
class _Clauses:
    """The expressions of a SELECT, over the relation as far as it is built."""

    names: list[str]
    items: list[Rex]
    having: Rex | None = None
    qualify: Rex | None = None
    order: list[Keyed] = field(default_factory=list)
    groups: Groups | None = None

    @classmethod
    def bind(cls, binder: ExpressionBinder, select: Select, ordered: Ordered | None) -> _Clauses:
        """Bind the clauses of a SELECT."""
        groups = group_keys(binder.without_aggregates("in GROUP BY clause"), select.groups)
        total = groups is None or not groups.keys
        open_binder = replace(binder, aggregates=None, total=total)
        names, items = _items(open_binder, select.items)
        made = cls(uniquely(names), items, groups=groups)
        if select.having is not None:
            made.having = replace(open_binder, spans="in HAVING clause").condition(select.having, "HAVING")
        aliases = dict(zip(names, items, strict=True))
        if select.qualify is not None:
            made.qualify = replace(open_binder, aliases=aliases).condition(select.qualify, "QUALIFY")
            if not any(isinstance(part, Spanned) for part in everything(made.qualify)):
                raise invalid(select.qualify.at, "QUALIFY must contain a window function")
        if ordered is not None:
            made.order = _order(replace(open_binder, aliases=aliases), ordered, items)
        return made

    def all(self) -> Iterator[Rex]:
        """Yield all expressions."""
        yield from self.items
        yield from (rex for rex in (self.having, self.qualify) if rex is not None)
        yield from (one.value for one in self.order)

    def lift_all(self, lift: Lift) -> _Clauses:
        """Return the expressions over the next relation."""
        return replace(
            self,
            items=[lift(rex) for rex in self.items],
            having=None if self.having is None else lift(self.having),
            qualify=None if self.qualify is None else lift(self.qualify),
            order=[replace(one, value=lift(one.value)) for one in self.order],
        )


def _items(binder: ExpressionBinder, written: tuple[Item, ...]) -> tuple[list[str], list[Rex]]:
    names: list[str] = []
    items: list[Rex] = []
    for item in written:
        if isinstance(item.value, Star):
            for name, rex in binder.scope.star(item.value):
                binder.places.setdefault(id(rex), (rex, item.at))
                names.append(name)
                items.append(rex)
            continue
        rex = binder.bind(item.value)
        if isinstance(rex.type, NullType):
            raise invalid(item.at, "Illegal use of 'NULL': write CAST(NULL AS ...), so that it has a type")
        names.append(item_name(item, len(names)))
        items.append(rex)
    if not items:
        raise invalid(written[0].at, "there is nothing to select: SELECT * needs a FROM")
    return names, items


def _order(binder: ExpressionBinder, ordered: Ordered, items: list[Rex]) -> list[Keyed]:
    from penstock.table.sql.bind.bind_queries import ordinal

    found = []
    for one in ordered.order:
        index = ordinal(one, len(items))
        found.append(one_keyed(binder.bind(one.value) if index is None else items[index], one))
    return found


# --- groups and windows ---
def _with_groups(
    binder: ExpressionBinder, select: Select, relation: Relation, clauses: _Clauses
) -> tuple[Relation, _Clauses]:
    inside = [part for rex in clauses.all() for part in everything(rex)]
    aggregates = list(dict.fromkeys(part for part in inside if isinstance(part, Aggregated)))
    if clauses.groups is None and not aggregates and select.having is None:
        lone = next((part for part in inside if isinstance(part, Grouping | WindowProperty)), None)
        if lone is not None:
            raise CodeGenException(f"{select.at}: GROUPING and the functions of group windows need a GROUP BY")
        return relation, clauses
    properties = list(dict.fromkeys(part for part in inside if isinstance(part, WindowProperty)))
    plan, lift = bind_groups(binder, relation, clauses.groups or Groups([], [()]), aggregates, properties)
    return plan, clauses.lift_all(lift)


def _with_windows(relation: Relation, clauses: _Clauses) -> tuple[Relation, _Clauses]:
    inside = (part for rex in clauses.all() for part in everything(rex))
    spans = list(dict.fromkeys(part for part in inside if isinstance(part, Spanned)))
    if not spans:
        return relation, clauses
    plan, lift = bind_spans(relation, spans)
    return plan, clauses.lift_all(lift)


# --- the last steps ---
def _finish(relation: Relation, clauses: _Clauses, select: Select, ordered: Ordered | None) -> Relation:
    exprs = list(clauses.items)
    width = len(exprs)
    if select.distinct:
        return _distinct(relation, clauses, ordered)
    indices = [position(exprs, one.value) for one in clauses.order]
    plan = projection(relation, exprs, [*clauses.names, *["$o"] * (len(exprs) - width)])
    if ordered is None:
        return plan
    plan = _sort(plan, indices, clauses, ordered)
    return plan if len(exprs) == width else cut(plan, width)


def _distinct(relation: Relation, clauses: _Clauses, ordered: Ordered | None) -> Relation:
    plan = projection(relation, clauses.items, clauses.names)
    plan = Aggregate(plan.columns, plan, tuple(range(len(plan.columns))), ())
    if ordered is None:
        return plan
    for one, written in zip(clauses.order, ordered.order, strict=True):
        if one.value not in clauses.items:
            raise invalid(written.at, "with DISTINCT, ORDER BY can use expressions of the select clause only")
    return _sort(plan, [clauses.items.index(one.value) for one in clauses.order], clauses, ordered)


def _sort(plan: Relation, indices: list[int], clauses: _Clauses, ordered: Ordered) -> Relation:
    keys = zip(indices, clauses.order, strict=True)
    order = tuple(SortKey(index, one.descending, one.nulls_first) for index, one in keys)
    return Sort(plan.columns, plan, order, ordered.offset, ordered.limit)
