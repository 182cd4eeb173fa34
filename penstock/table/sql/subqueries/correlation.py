"""References from a subquery to the surrounding query: finding and replacing them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from penstock.table.logical.nodes import (
    Correlate,
    Filter,
    Join,
    Project,
    Relation,
    Watermark,
    rewritten_plan,
    walk_plan,
)
from penstock.table.logical.rex import InputRef, OuterRef, Rex, Subquery, rewritten, walk


def rexes(relation: Relation) -> Iterator[Rex]:
    """Yield the expressions of one relation."""
    if isinstance(relation, Project):
        yield from relation.exprs
    elif isinstance(relation, Correlate):
        yield relation.call
    if isinstance(relation, Filter | Join | Correlate) and relation.condition is not None:
        yield relation.condition
    elif isinstance(relation, Watermark) and relation.expr is not None:
        yield relation.expr


def with_rexes(relation: Relation, change: Callable[[Rex], Rex]) -> Relation:
    """Return the relation with changed expressions."""
    if isinstance(relation, Project):
        return replace(relation, exprs=tuple(map(change, relation.exprs)))
    if isinstance(relation, Filter):
        return replace(relation, condition=change(relation.condition))
    if isinstance(relation, Join) and relation.condition is not None:
        return replace(relation, condition=change(relation.condition))
    if isinstance(relation, Correlate):
        condition = None if relation.condition is None else change(relation.condition)
        return replace(relation, call=change(relation.call), condition=condition)
    return relation


def is_correlated(rex: Rex) -> bool:
    """Return True if an expression refers to a surrounding query."""
    return any(isinstance(part, OuterRef) or _inner_correlation(part) for part in walk(rex))


def _inner_correlation(part: Rex) -> bool:
    return isinstance(part, Subquery) and any(
        isinstance(one, OuterRef) and one.depth > 1
        for node in walk_plan(part.plan)
        for rex in rexes(node)
        for one in walk(rex)
    )


def is_correlated_plan(plan: Relation) -> bool:
    """Return True if a plan refers to a surrounding query."""
    return any(is_correlated(rex) for node in walk_plan(plan) for rex in rexes(node))


def with_outer(plan: Relation, change: Callable[[InputRef], Rex], depth: int = 1) -> Relation:
    """Return the plan of a subquery with changed references to the columns around it.

    `change` gets a reference in the form of the surrounding query, and returns its replacement.
    """

    def node(relation: Relation) -> Relation:
        return with_rexes(relation, lambda rex: rewritten(rex, inner))

    def inner(rex: Rex) -> Rex | None:
        if isinstance(rex, OuterRef) and rex.depth == depth:
            return _outwards(change(InputRef(rex.type, rex.index)), depth)
        if isinstance(rex, Subquery):
            args = tuple(rewritten(arg, inner) for arg in rex.args)
            return replace(rex, args=args, plan=with_outer(rex.plan, change, depth + 1))
        return None

    return rewritten_plan(plan, node)


def _outwards(rex: Rex, depth: int) -> Rex:
    def change(one: Rex) -> Rex | None:
        return OuterRef(one.type, one.index, depth) if isinstance(one, InputRef) else None

    return rewritten(rex, change)
