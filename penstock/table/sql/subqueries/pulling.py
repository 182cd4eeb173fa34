"""A correlated query without its correlation: conditions on the surrounding query are pulled up."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from penstock.errors import TableException
from penstock.table.logical.kinds import JoinKind
from penstock.table.logical.nodes import Aggregate, Column, Filter, Join, Over, Project, Relation, Sort
from penstock.table.logical.rex import (
    AggregateCall,
    Call,
    Frame,
    InputRef,
    Literal,
    OuterRef,
    OverSpec,
    Rex,
    conjunction,
    conjuncts,
    rewritten,
    shift_refs,
    walk,
)
from penstock.table.sql.bind.binder_session import Functions
from penstock.table.sql.bind.naming import position, projection
from penstock.table.sql.subqueries.correlation import is_correlated, is_correlated_plan
from penstock.table.types.data_types import BigIntType

_EQUALITIES = {"=", "IS NOT DISTINCT FROM"}
COUNTS = {"COUNT", "APPROX_COUNT_DISTINCT"}
_NOT_SUPPORTED = "a query inside that refers to the query around it is not supported in this form"


class NotPulled(TableException):
    """The error for a correlation that cannot be pulled up.

    A join with the values of the surrounding query may still work.
    """


@dataclass(frozen=True)
class Pulled:
    """A plan without correlation, with the former columns and the conditions on its rows.

    `outputs` and `predicates` are over the columns of the plan, with OuterRefs to the surrounding query.
    """

    plan: Relation
    outputs: tuple[Rex, ...]
    predicates: tuple[Rex, ...] = ()
    single: bool = False
    """True if there is a row for every row of the surrounding query. A missing row means an aggregate over no rows."""

    def substitute(self, rex: Rex) -> Rex:
        """Return an expression over the former columns."""
        return rewritten(rex, lambda one: self.outputs[one.index] if isinstance(one, InputRef) else None)


def pull_up(functions: Functions, plan: Relation) -> Pulled:
    """Return the plan of a subquery without references to the surrounding query."""
    if not is_correlated_plan(plan):
        return Pulled(plan, _refs(plan))
    pull = _PULLS.get(type(plan))
    if pull is None:
        raise NotPulled(f"{_NOT_SUPPORTED}: it is below a {type(plan).__name__}")
    return pull(functions, plan)


def _refs(plan: Relation) -> tuple[Rex, ...]:
    return tuple(plan.ref(index) for index in range(len(plan.columns)))


def _project(functions: Functions, plan: Project) -> Pulled:
    below = pull_up(functions, plan.input)
    return replace(below, outputs=tuple(below.substitute(rex) for rex in plan.exprs))


def _filter(functions: Functions, plan: Filter) -> Pulled:
    below = pull_up(functions, plan.input)
    if below.single:
        raise NotPulled(f"{_NOT_SUPPORTED}: it has a HAVING")
    return _apply_conditions(below, [below.substitute(rex) for rex in conjuncts(plan.condition)])


def _apply_conditions(below: Pulled, conditions: Sequence[Rex]) -> Pulled:
    own = conjunction([rex for rex in conditions if not is_correlated(rex)])
    kept = below.plan if own is None else Filter(below.plan.columns, below.plan, own)
    outer = tuple(rex for rex in conditions if is_correlated(rex))
    return replace(below, plan=kept, predicates=below.predicates + outer)


def _join(functions: Functions, plan: Join) -> Pulled:
    if plan.kind != JoinKind.INNER:
        return _one_sided_join(functions, plan)
    left, right = pull_up(functions, plan.left), pull_up(functions, plan.right)
    if left.single or right.single or plan.temporal is not None:
        raise NotPulled(f"{_NOT_SUPPORTED}: it is inside of a join")
    width = len(left.plan.columns)
    columns = (*left.plan.columns, *right.plan.columns)
    outputs = (*left.outputs, *(shift_refs(rex, width) for rex in right.outputs))
    predicates = (*left.predicates, *(shift_refs(rex, width) for rex in right.predicates))
    both = Pulled(left.plan, outputs, predicates)
    conditions = [both.substitute(rex) for rex in conjuncts(plan.condition)]
    own = conjunction([rex for rex in conditions if not is_correlated(rex)])
    outer = tuple(rex for rex in conditions if is_correlated(rex))
    return Pulled(Join(columns, left.plan, right.plan, JoinKind.INNER, own), outputs, predicates + outer)


def _one_sided_join(functions: Functions, plan: Join) -> Pulled:
    """Pull up through a join that keeps the rows of the left. Only the left side may be correlated."""
    wrong = is_correlated_plan(plan.right) or (plan.condition is not None and is_correlated(plan.condition))
    if plan.kind not in {JoinKind.LEFT, JoinKind.SEMI, JoinKind.ANTI} or wrong:
        raise NotPulled(f"{_NOT_SUPPORTED}: it is inside of a {plan.kind} join")
    left = materialise(pull_up(functions, plan.left))
    width, old = len(left.plan.columns), len(plan.left.columns)

    def move(rex: Rex) -> Rex | None:
        late = isinstance(rex, InputRef) and rex.index >= old
        return InputRef(rex.type, rex.index + width - old) if isinstance(rex, InputRef) and late else None

    condition = None if plan.condition is None else rewritten(plan.condition, move)
    columns = (*left.plan.columns, *plan.columns[old:])
    made = replace(plan, columns=columns, left=left.plan, condition=condition)
    added = tuple(InputRef(column.type, width + index) for index, column in enumerate(plan.columns[old:]))
    return Pulled(made, (*left.outputs, *added), left.predicates)


def _aggregate(functions: Functions, plan: Aggregate) -> Pulled:
    below = materialise(pull_up(functions, plan.input))
    made, inner, outer = with_outer_keys(below)
    keys = (*plan.keys, *inner)
    key_columns = tuple(made.columns[index] for index in keys)
    old = len(plan.keys)
    columns = (*key_columns, *plan.columns[old:])
    result = Aggregate(columns, made, keys, plan.calls)
    outputs: list[Rex] = [result.ref(index) for index in range(old)]
    single = not plan.keys
    outputs += [_count_or_zero(functions, result.ref(len(keys) + n), call, single) for n, call in enumerate(plan.calls)]
    predicates = tuple(one.compare(functions, result.ref(old + n)) for n, one in enumerate(outer))
    return Pulled(result, tuple(outputs), predicates, single)


def _count_or_zero(functions: Functions, ref: InputRef, call: AggregateCall, single: bool) -> Rex:
    """Return a count that is 0, not NULL, for no rows."""
    if not single or call.function not in COUNTS:
        return ref
    return functions.resolve("COALESCE", (InputRef(ref.type.nullable(), ref.index), Literal(BigIntType(False), 0)))


def _sort(functions: Functions, plan: Sort) -> Pulled:
    """Pull up through an order. With a limit, it becomes a rank among the rows of each surrounding row."""
    below = pull_up(functions, plan.input)
    if plan.limit is None and not plan.offset:
        return below
    if below.single:
        return below
    made, inner, outer = with_outer_keys(materialise(below))
    kept = rank_rows(functions, made, inner, plan)
    width = len(plan.columns)
    predicates = tuple(one.compare(functions, kept.ref(index)) for index, one in zip(inner, outer, strict=True))
    return Pulled(kept, tuple(kept.ref(index) for index in range(width)), predicates)


def rank_rows(functions: Functions, made: Relation, partition: Sequence[int], plan: Sort) -> Relation:
    """Return the rows that a limit keeps in each partition, with their rank as last column."""
    rank = AggregateCall("ROW_NUMBER", (), BigIntType(False), "$rank")
    spec = OverSpec(tuple(partition), plan.keys, Frame(True, None, 0), (rank,))
    over = Over((*made.columns, Column("$rank", BigIntType(False))), made, (spec,))
    ref = over.ref(len(made.columns))
    bounds = [functions.resolve(">", (ref, Literal(BigIntType(False), plan.offset)))] if plan.offset else []
    if plan.limit is not None:
        bounds.append(functions.resolve("<=", (ref, Literal(BigIntType(False), plan.offset + plan.limit))))
    return Filter(over.columns, over, conjunction(bounds) or ref)


def _over(functions: Functions, plan: Over) -> Pulled:
    """Pull up through OVER. The rows of each surrounding row become a partition."""
    below = materialise(pull_up(functions, plan.input))
    made, inner, outer = with_outer_keys(below)
    windows = tuple(replace(one, partition=(*one.partition, *inner)) for one in plan.windows)
    old = len(plan.input.columns)
    result = Over((*made.columns, *plan.columns[old:]), made, windows)
    outputs = [result.ref(index) for index in range(old)]
    outputs += [result.ref(len(made.columns) + index) for index in range(len(plan.columns) - old)]
    predicates = tuple(one.compare(functions, result.ref(index)) for index, one in zip(inner, outer, strict=True))
    return Pulled(result, tuple(outputs), predicates)


# --- helpers ---
def materialise(below: Pulled) -> Pulled:
    """Compute the former columns as the first columns of the plan, and add the columns of the predicates."""
    if any(is_correlated(rex) for rex in below.outputs):
        raise NotPulled(f"{_NOT_SUPPORTED}: it computes with values of the query around before an aggregate or join")
    exprs = list(below.outputs)
    predicates = tuple(rewritten(rex, _placing(exprs, below.plan)) for rex in below.predicates)
    plain = exprs == list(_refs(below.plan))
    names = [f"c{index}" for index in range(len(exprs))]
    plan = below.plan if plain else projection(below.plan, exprs, names)
    outputs = tuple(plan.ref(index) for index in range(len(below.outputs)))
    return Pulled(plan, outputs, predicates, below.single)


def _placing(exprs: list[Rex], plan: Relation) -> Callable[[Rex], Rex | None]:
    return lambda one: InputRef(one.type, position(exprs, plan.ref(one.index))) if isinstance(one, InputRef) else None


@dataclass(frozen=True)
class Outer:
    """The side of an equality that refers to the surrounding query."""

    function: str
    """`=`, or IS NOT DISTINCT FROM, which also holds for NULLs."""
    value: Rex

    def compare(self, functions: Functions, inner: Rex) -> Rex:
        """Return the equality with an inner expression."""
        return functions.resolve(self.function, (inner, self.value))


def with_outer_keys(below: Pulled) -> tuple[Relation, list[int], list[Outer]]:
    """Return the plan with the inner side of every predicate as a column, these columns, and the outer sides."""
    exprs = list(_refs(below.plan))
    inner: list[int] = []
    outer: list[Outer] = []
    for predicate in below.predicates:
        mine, other = sides(predicate)
        inner.append(position(exprs, mine))
        outer.append(other)
    extras = len(exprs) - len(below.plan.columns)
    if not extras:
        return below.plan, inner, outer
    names = [*below.plan.names(), *["$c"] * extras]
    return projection(below.plan, exprs, names), inner, outer


def sides(predicate: Rex) -> tuple[Rex, Outer]:
    """Return the inner and the outer side of an equality."""
    if isinstance(predicate, Call) and predicate.function in _EQUALITIES:
        one, other = predicate.args
        if not is_correlated(one) and not _reads_input(other):
            return one, Outer(predicate.function, other)
        if not is_correlated(other) and not _reads_input(one):
            return other, Outer(predicate.function, one)
    raise NotPulled(f"{_NOT_SUPPORTED}: the condition is {predicate}")


def _reads_input(rex: Rex) -> bool:
    return any(isinstance(part, InputRef) for part in walk(rex))


def around(rex: Rex, width: int) -> Rex:
    """Return a predicate as the condition of a join.

    On the left is the surrounding query, which has `width` columns.
    """

    def change(one: Rex) -> Rex | None:
        if isinstance(one, InputRef):
            return InputRef(one.type, one.index + width)
        if isinstance(one, OuterRef):
            return InputRef(one.type, one.index) if one.depth == 1 else OuterRef(one.type, one.index, one.depth - 1)
        return None

    return rewritten(rex, change)


_PULLS: dict[type[Relation], Callable[[Functions, Any], Pulled]] = {
    Project: _project,
    Filter: _filter,
    Join: _join,
    Aggregate: _aggregate,
    Sort: _sort,
    Over: _over,
}
