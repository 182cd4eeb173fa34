"""A correlated query becomes one that is computed once, for all surrounding rows.

It is joined with the distinct values that it reads from the surrounding rows.

This works where a condition cannot be pulled up, such as below an aggregate with a comparison other than =. Every
relation of the query gets the values as further columns at its end, and computes within each combination of them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from penstock.errors import TableException
from penstock.table.logical.kinds import JoinKind
from penstock.table.logical.nodes import (
    Aggregate,
    Column,
    Correlate,
    Expand,
    Filter,
    Join,
    Over,
    Project,
    Relation,
    SetOperation,
    Sort,
    walk_plan,
)
from penstock.table.logical.rex import Call, InputRef, Literal, OuterRef, Rex, conjunction, rewritten, walk
from penstock.table.sql.bind.binder_session import Functions
from penstock.table.sql.bind.naming import projection
from penstock.table.sql.subqueries.correlation import is_correlated_plan, rexes
from penstock.table.sql.subqueries.pulling import COUNTS, Pulled, rank_rows
from penstock.table.types.data_types import BigIntType, BooleanType


def generate(functions: Functions, left: Relation, plan: Relation, empty_groups: bool = True) -> Pulled:
    """Return the plan of a subquery for every combination of values that it reads of `left`.

    Without `empty_groups`, an aggregate over no rows gives no row.
    """
    indices = _indices(plan)
    values = projection(left, [left.ref(index) for index in indices], [f"$v{index}" for index in indices])
    domain = Aggregate(values.columns, values, tuple(range(len(indices))), ())
    attached = _Attaching(functions, domain, indices, empty_groups).attach(plan)
    width = len(plan.columns)
    outputs = tuple(attached.ref(index) for index in range(width))
    refs = ((attached.ref(width + n), left.ref(index)) for n, index in enumerate(indices))
    predicates = tuple(same(mine, OuterRef(outer.type, outer.index, 1)) for mine, outer in refs)
    return Pulled(attached, outputs, predicates)


def _indices(plan: Relation) -> list[int]:
    """Return the columns of the surrounding query that a plan reads."""
    parts = (part for node in walk_plan(plan) for rex in rexes(node) for part in walk(rex))
    return sorted({part.index for part in parts if isinstance(part, OuterRef) and part.depth == 1})


def same(one: Rex, other: Rex) -> Rex:
    """Return an equality that also holds for NULLs."""
    return Call(BooleanType(False), "IS NOT DISTINCT FROM", (one, other))


@dataclass
class _Attaching:
    functions: Functions
    domain: Relation
    indices: Sequence[int]
    empty_groups: bool

    def attach(self, plan: Relation) -> Relation:
        """Return the plan with the columns of the domain after its own."""
        if not is_correlated_plan(plan):
            return Join((*plan.columns, *self.domain.columns), plan, self.domain, JoinKind.INNER, None)
        attach = _ATTACH.get(type(plan))
        if attach is None:
            raise TableException(
                f"a query inside that refers to the query around it is not supported below a {type(plan).__name__}"
            )
        return attach(self, plan)

    def _rex(self, rex: Rex, offset: int) -> Rex:
        """Return an expression of the plan. The columns of the domain start at `offset`."""

        def change(one: Rex) -> Rex | None:
            if not isinstance(one, OuterRef):
                return None
            if one.depth > 1:
                return OuterRef(one.type, one.index, one.depth - 1)
            return InputRef(one.type, offset + self.indices.index(one.index))

        return rewritten(rex, change)

    def _domain(self, offset: int) -> list[Rex]:
        return [InputRef(column.type, offset + n) for n, column in enumerate(self.domain.columns)]

    def _behind(self, plan: Relation, old: int, offset: int) -> Relation:
        """Return the first `old` columns of the result, then the columns of the domain, which are at `offset`."""
        size = len(self.domain.columns)
        order = [n for n in range(len(plan.columns)) if not offset <= n < offset + size]
        order = [*order[:old], *range(offset, offset + size)]
        return projection(plan, [plan.ref(n) for n in order], [plan.columns[n].name for n in order])

    # --- one relation each ---
    def project(self, plan: Project) -> Relation:
        below = self.attach(plan.input)
        offset = len(plan.input.columns)
        exprs = [self._rex(rex, offset) for rex in plan.exprs]
        names = [*plan.names(), *self.domain.names()]
        return projection(below, [*exprs, *self._domain(offset)], names)

    def filter(self, plan: Filter) -> Relation:
        below = self.attach(plan.input)
        return Filter(below.columns, below, self._rex(plan.condition, len(plan.input.columns)))

    def join(self, plan: Join) -> Relation:
        if plan.kind not in {JoinKind.INNER, JoinKind.LEFT, JoinKind.SEMI, JoinKind.ANTI} or plan.temporal is not None:
            raise TableException(f"a query inside of a {plan.kind} join cannot refer to the query around it")
        left = self.attach(plan.left)
        inside = is_correlated_plan(plan.right)
        right = self.attach(plan.right) if inside else plan.right
        width, size = len(plan.left.columns), len(self.domain.columns)
        tests = [] if plan.condition is None else [self._rex_of_join(plan.condition, width)]
        if inside:
            first = width + size + len(plan.right.columns)
            tests += [same(one, other) for one, other in zip(self._domain(width), self._domain(first), strict=True)]
        only_left = plan.kind in {JoinKind.SEMI, JoinKind.ANTI}
        columns = left.columns if only_left else (*left.columns, *_pad(right, plan.kind))
        joined = replace(plan, columns=columns, left=left, right=right, condition=conjunction(tests))
        return joined if only_left else self._behind(joined, len(plan.columns), width)

    def _rex_of_join(self, rex: Rex, width: int) -> Rex:
        size = len(self.domain.columns)

        def change(one: Rex) -> Rex | None:
            late = isinstance(one, InputRef) and one.index >= width
            return InputRef(one.type, one.index + size) if isinstance(one, InputRef) and late else None

        return self._rex(rewritten(rex, change), width)

    def aggregate(self, plan: Aggregate) -> Relation:
        below = self.attach(plan.input)
        old, size = len(plan.keys), len(self.domain.columns)
        offset = len(plan.input.columns)
        keys = (*plan.keys, *range(offset, offset + size))
        columns = (*plan.columns[:old], *self.domain.columns, *plan.columns[old:])
        made = Aggregate(columns, below, keys, plan.calls)
        if plan.keys or not self.empty_groups:
            return self._behind(made, len(plan.columns), old)
        return self._with_empty_groups(plan, made)

    def _with_empty_groups(self, plan: Aggregate, made: Aggregate) -> Relation:
        """Add the row that an aggregate without keys has for no rows."""
        size = len(self.domain.columns)
        tests = [same(one, other) for one, other in zip(self._domain(0), self._domain(size), strict=True)]
        columns = (*self.domain.columns, *_pad(made, JoinKind.LEFT))
        joined = Join(columns, self.domain, made, JoinKind.LEFT, conjunction(tests))
        exprs: list[Rex] = []
        for n, call in enumerate(plan.calls):
            value: Rex = joined.ref(2 * size + n)
            if call.function in COUNTS:
                value = self.functions.resolve("COALESCE", (value, Literal(BigIntType(False), 0)))
            exprs.append(value)
        return projection(joined, [*exprs, *self._domain(0)], [*plan.names(), *self.domain.names()])

    def sort(self, plan: Sort) -> Relation:
        below = self.attach(plan.input)
        if plan.limit is None and not plan.offset:
            return below
        width = len(plan.columns)
        inner = range(width, width + len(self.domain.columns))
        kept = rank_rows(self.functions, below, list(inner), plan)
        return projection(kept, [kept.ref(n) for n in range(len(below.columns))], below.names())

    def over(self, plan: Over) -> Relation:
        below = self.attach(plan.input)
        old, size = len(plan.input.columns), len(self.domain.columns)
        windows = tuple(replace(one, partition=(*one.partition, *range(old, old + size))) for one in plan.windows)
        made = Over((*below.columns, *plan.columns[old:]), below, windows)
        return self._behind(made, len(plan.columns), old)

    def expand(self, plan: Expand) -> Relation:
        below = self.attach(plan.input)
        old = len(plan.input.columns)
        columns = (*plan.columns[:old], *self.domain.columns, plan.columns[-1])
        return self._behind(replace(plan, columns=columns, input=below), len(plan.columns), old)

    def correlate(self, plan: Correlate) -> Relation:
        below = self.attach(plan.input)
        old = len(plan.input.columns)
        call = self._rex(plan.call, old)
        condition = None if plan.condition is None else self._rex_of_join(plan.condition, old)
        columns = (*below.columns, *plan.columns[old:])
        made = replace(plan, columns=columns, input=below, call=call, condition=condition)
        return self._behind(made, len(plan.columns), old)

    def set_operation(self, plan: SetOperation) -> Relation:
        parts = tuple(self.attach(part) for part in plan.parts)
        return replace(plan, columns=(*plan.columns, *self.domain.columns), parts=parts)


def _pad(relation: Relation, kind: str) -> tuple[Column, ...]:
    if kind != JoinKind.LEFT:
        return relation.columns
    return tuple(replace(column, type=column.type.nullable()) for column in relation.columns)


_ATTACH: dict[type[Relation], Callable[[_Attaching, Any], Relation]] = {
    Project: _Attaching.project,
    Filter: _Attaching.filter,
    Join: _Attaching.join,
    Aggregate: _Attaching.aggregate,
    Sort: _Attaching.sort,
    Over: _Attaching.over,
    Expand: _Attaching.expand,
    Correlate: _Attaching.correlate,
    SetOperation: _Attaching.set_operation,
}
