"""Queries inside of expressions become joins: semi and anti joins where they select rows, left joins elsewhere."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from penstock.errors import TableException
from penstock.table.logical.kinds import JoinKind
from penstock.table.logical.nodes import (
    Aggregate,
    Column,
    Columns,
    Filter,
    Join,
    Project,
    Relation,
    Sort,
    Values,
    rewritten_plan,
)
from penstock.table.logical.rex import (
    AggregateCall,
    Call,
    InputRef,
    Literal,
    OuterRef,
    Rex,
    Subquery,
    conjunction,
    conjuncts,
    refs,
    rewritten,
    shift_refs,
    walk,
)
from penstock.table.sql.bind.binder_session import Functions
from penstock.table.sql.bind.naming import cut, projection
from penstock.table.sql.subqueries.correlation import is_correlated_plan, rexes
from penstock.table.sql.subqueries.generating import generate
from penstock.table.sql.subqueries.pulling import (
    NotPulled,
    Outer,
    Pulled,
    around,
    materialise,
    pull_up,
    with_outer_keys,
)
from penstock.table.types.data_types import BigIntType, BooleanType

TRUE = Literal(BooleanType(False), True)
_ALWAYS = "$true"


def decorrelate(functions: Functions, plan: Relation) -> Relation:
    """Return the plan without Subquery and OuterRef."""

    def node(relation: Relation) -> Relation:
        if not any(isinstance(part, Subquery) for rex in rexes(relation) for part in walk(rex)):
            return relation
        return _Replacing(functions).relation(relation)

    return rewritten_plan(plan, node)


class _Replacing:
    """Replaces the queries inside of one relation."""

    def __init__(self, functions: Functions) -> None:
        self.functions = functions

    def relation(self, relation: Relation) -> Relation:
        """Return a relation without queries in its expressions."""
        if isinstance(relation, Filter):
            return self._filter(relation)
        if isinstance(relation, Project):
            below, exprs = self._values(relation.input, relation.exprs)
            return replace(relation, input=below, exprs=exprs)
        if isinstance(relation, Join) and relation.kind == JoinKind.INNER and relation.temporal is None:
            product = replace(relation, condition=None)
            assert relation.condition is not None
            return self._filter(Filter(product.columns, product, relation.condition))
        if isinstance(relation, Join) and relation.temporal is None:
            return self._outer_join(relation)
        raise TableException("a query stands where none is supported; write it in WHERE or in the select list")

    def _outer_join(self, relation: Join) -> Relation:
        width = len(relation.left.columns)
        mine = [rex for rex in conjuncts(relation.condition) if _has_query(rex)]
        if any(map(_reads_around, mine)):
            raise TableException(
                "a query in the condition of an outer join must not refer to the tables that are joined; write it in "
                "WHERE"
            )
        if relation.kind == JoinKind.LEFT and all(index >= width for rex in mine for index in refs(rex)):
            return self._left_join(relation, mine)
        return self._with_sides(relation, mine)

    def _with_sides(self, relation: Join, mine: Sequence[Rex]) -> Relation:
        """Replace conditions with queries by columns of the side that they read."""
        width = len(relation.left.columns)
        of_left = [rex for rex in mine if all(index < width for index in refs(rex))]
        of_right = [rex for rex in mine if rex not in of_left]
        if any(index < width for rex in of_right for index in refs(rex)):
            raise TableException(
                "a query in the condition of an outer join must not be compared with columns of both sides; write the "
                "comparison with one of them into a query in FROM"
            )
        left, left_tests = self._values(relation.left, of_left)
        right, right_tests = self._values(relation.right, [shift_refs(rex, -width) for rex in of_right])
        more = len(left.columns) - width
        moved = {rex: left_tests[index] for index, rex in enumerate(of_left)}
        moved |= {rex: shift_refs(right_tests[index], len(left.columns)) for index, rex in enumerate(of_right)}
        parts = [moved[rex] if rex in moved else _behind(rex, width, more) for rex in conjuncts(relation.condition)]
        pads_left = relation.kind in {JoinKind.RIGHT, JoinKind.FULL}
        inner = (*relation.columns[:width], *_pad(left.columns[width:], pads_left))
        outer = (*relation.columns[width:], *_pad(right.columns[len(relation.right.columns) :], True))
        joined = replace(relation, columns=(*inner, *outer), left=left, right=right, condition=conjunction(parts))
        kept = [*range(width), *range(width + more, width + more + len(relation.columns) - width)]
        return Project(relation.columns, joined, tuple(joined.ref(index) for index in kept))

    def _left_join(self, relation: Join, mine: Sequence[Rex]) -> Relation:
        """Filter the right side before the join by conditions that read only this side."""
        width = len(relation.left.columns)
        parts = conjuncts(relation.condition)
        kept = conjunction([shift_refs(rex, -width) for rex in mine])
        assert kept is not None
        right = self._filter(Filter(relation.right.columns, relation.right, kept))
        return replace(relation, right=right, condition=conjunction([rex for rex in parts if rex not in mine]))

    # --- conditions ---
    def _filter(self, relation: Filter) -> Relation:
        width = len(relation.columns)
        parts = conjuncts(relation.condition)
        plan = relation.input
        plain = conjunction([rex for rex in parts if not _has_query(rex)])
        if plain is not None:
            plan = Filter(plan.columns, plan, plain)
        for rex in parts:
            if _has_query(rex):
                plan = self._decide(plan, rex)
        return plan if len(plan.columns) == width else cut(plan, width)

    def _decide(self, plan: Relation, rex: Rex) -> Relation:
        """Return the rows for which a condition with a query holds."""
        negated = isinstance(rex, Call) and rex.function == "NOT"
        inner = rex.args[0] if isinstance(rex, Call) and negated else rex
        if isinstance(inner, Subquery) and inner.kind in {"EXISTS", "IN"} and not any(map(_has_query, inner.args)):
            joined = self._semi(plan, inner, negated)
            if joined is not None:
                return joined
        below, (condition,) = self._values(plan, (rex,))
        return Filter(below.columns, below, condition)

    def _semi(self, plan: Relation, query: Subquery, negated: bool) -> Relation | None:
        inner = decorrelate(self.functions, query.plan)
        try:
            inside = pull_up(self.functions, inner)
        except NotPulled:
            inside = generate(self.functions, plan, inner)
        if inside.single:
            return None
        width = len(plan.columns)
        conditions = [around(rex, width) for rex in inside.predicates]
        outputs = [around(rex, width) for rex in inside.outputs]
        tests = [self._equal(arg, rex) for arg, rex in zip(query.args, outputs, strict=False)] if query.args else []
        unknown = negated and any(rex.type.is_nullable for rex in (*query.args, *(outputs if query.args else ())))
        if unknown and conditions:
            tests = [self._not_false(tests)]
        condition = conjunction([*conditions, *tests])
        null_aware = unknown and not conditions
        kind = JoinKind.ANTI if negated else JoinKind.SEMI
        return Join(plan.columns, plan, inside.plan, kind, condition, null_aware=null_aware)

    def _not_false(self, tests: Sequence[Rex]) -> Rex:
        """Return a condition that is true unless a test is false. With a NULL, NOT IN does not hold either."""
        whole = conjunction(list(tests)) or TRUE
        return self._call("NOT", self._call("IS FALSE", whole))

    # --- values ---
    def _values(self, plan: Relation, exprs: Sequence[Rex]) -> tuple[Relation, tuple[Rex, ...]]:
        """Join the values of all subqueries to `plan`, as further columns.

        Return the joined relation, and `exprs` with each subquery replaced by its column.
        """
        found: dict[Rex, Rex] = {}
        for query in _queries(exprs):
            args = tuple(rewritten(arg, found.get) for arg in query.args)
            plan, value = self._value(plan, query, args)
            found[query] = value
        return plan, tuple(rewritten(rex, found.get) for rex in exprs)

    def _value(self, plan: Relation, query: Subquery, args: Sequence[Rex]) -> tuple[Relation, Rex]:
        inner = decorrelate(self.functions, query.plan)
        try:
            return self._join_value(plan, query, args, pull_up(self.functions, inner))
        except NotPulled:
            return self._join_value(plan, query, args, generate(self.functions, plan, inner))

    def _join_value(self, plan: Relation, query: Subquery, args: Sequence[Rex], inside: Pulled) -> tuple[Relation, Rex]:
        if query.kind == "SCALAR":
            return self._scalar(plan, inside, one_row(query.plan))
        if query.kind == "EXISTS":
            return self._exists(plan, inside)
        if query.kind == "IN":
            return self._in(plan, inside, args)
        return self._compare(plan, inside, args[0], query.kind)

    def _scalar(self, plan: Relation, inside: Pulled, one: bool) -> tuple[Relation, Rex]:
        if not inside.single and not one:
            inside = self._single_value(inside)
        joined = self._left(plan, inside)
        width = len(plan.columns)
        return joined, _nullable(around(inside.outputs[0], width), joined.columns)

    def _single_value(self, inside: Pulled) -> Pulled:
        """Return a subquery with SINGLE_VALUE, which fails at run time if there is more than one row."""
        below = materialise(inside)
        made, inner, outer = with_outer_keys(below)
        kind = made.columns[0].type.nullable()
        call = AggregateCall("SINGLE_VALUE", (0,), kind, "$value")
        return self._per_key(made, inner, outer, (call,), (0,))

    def _per_key(
        self,
        made: Relation,
        inner: Sequence[int],
        outer: Sequence[Outer],
        calls: Sequence[AggregateCall],
        results: Sequence[int],
    ) -> Pulled:
        """Return aggregates over the rows that belong to each row of the surrounding query."""
        keys = tuple(dict.fromkeys(inner))
        columns = (*(made.columns[index] for index in keys), *(Column(call.name, call.type) for call in calls))
        result = Aggregate(columns, made, keys, tuple(calls))
        pairs = zip(inner, outer, strict=True)
        tests = [one.compare(self.functions, result.ref(keys.index(index))) for index, one in pairs]
        return Pulled(result, tuple(result.ref(len(keys) + index) for index in results), tuple(tests), not keys)

    def _exists(self, plan: Relation, inside: Pulled) -> tuple[Relation, Rex]:
        if inside.single:
            return plan, TRUE
        counts = self._counts(replace(inside, outputs=(TRUE,)))
        joined = self._left(plan, counts)
        return joined, self._any(joined, len(plan.columns), counts)

    def _any(self, joined: Relation, width: int, counts: Pulled) -> Rex:
        total = _nullable(around(counts.outputs[0], width), joined.columns)
        zero = Literal(BigIntType(False), 0)
        return self._call(">", self._call("COALESCE", total, zero), zero)

    def _counts(self, inside: Pulled, further: Sequence[str] = ()) -> Pulled:
        """Return the number of rows, the number without NULL, and further aggregates of the first column."""
        width = len(inside.outputs)
        below = materialise(inside)
        made, inner, outer = with_outer_keys(below)
        calls = [
            AggregateCall("COUNT", (), BigIntType(False), "$rows"),
            AggregateCall("COUNT", tuple(range(width)), BigIntType(False), "$known"),
        ]
        calls += [AggregateCall(name, (0,), made.columns[0].type.nullable(), f"${name}") for name in further]
        return self._per_key(made, inner, outer, calls, range(len(calls)))

    def _in(self, plan: Relation, inside: Pulled, args: Sequence[Rex]) -> tuple[Relation, Rex]:
        width = len(plan.columns)
        nullable = any(rex.type.is_nullable for rex in (*args, *inside.outputs))
        counts = self._counts(inside) if nullable else None
        joined = plan if counts is None else self._left(plan, counts)
        found, mark = self._mark(joined, inside, args)
        if counts is None:
            return found, mark
        total, known = (_nullable(around(rex, width), found.columns) for rex in counts.outputs)
        unknown: Rex = self._call("<", known, total)
        for arg in args:
            unknown = self._call("OR", self._call("IS NULL", arg), unknown)
        empty = self._call(
            "=", self._call("COALESCE", total, Literal(BigIntType(False), 0)), Literal(BigIntType(False), 0)
        )
        false, null = Literal(BooleanType(False), False), Literal(BooleanType(), None)
        return found, self._call("CASE", empty, false, mark, TRUE, unknown, null, false)

    def _mark(self, plan: Relation, inside: Pulled, args: Sequence[Rex]) -> tuple[Relation, Rex]:
        """Return a left join with the distinct rows of the query, and a condition that tells if a row was found."""
        below = materialise(inside)
        made, inner, outer = with_outer_keys(below)
        keys = tuple(dict.fromkeys([*range(len(inside.outputs)), *inner]))
        distinct = Aggregate(tuple(made.columns[index] for index in keys), made, keys, ())
        exprs: list[Rex] = [distinct.ref(index) for index in range(len(keys))]
        marked = projection(distinct, [*exprs, TRUE], [*distinct.names(), _ALWAYS])
        width = len(plan.columns)
        tests = [self._equal(arg, around(marked.ref(index), width)) for index, arg in enumerate(args)]
        for index, one in zip(inner, outer, strict=True):
            tests.append(around(one.compare(self.functions, marked.ref(keys.index(index))), width))
        joined = _join(plan, marked, JoinKind.LEFT, conjunction(tests))
        return joined, self._call("IS NOT NULL", joined.ref(len(joined.columns) - 1))

    def _compare(self, plan: Relation, inside: Pulled, arg: Rex, kind: str) -> tuple[Relation, Rex]:
        """Return the value of a comparison.

        `x > ALL (...)` compares with the greatest, `x > SOME (...)` with the least value.
        """
        sign, quantifier = kind.split(" ")
        counts = self._counts(inside, ("MIN", "MAX"))
        joined = self._left(plan, counts)
        total, known, low, high = (_nullable(around(rex, len(plan.columns)), joined.columns) for rex in counts.outputs)
        every = quantifier == "ALL"
        if sign in {"=", "<>"}:
            test = self._call("AND" if every else "OR", self._call(sign, arg, low), self._call(sign, arg, high))
        else:
            test = self._call(sign, arg, high if sign.startswith(">") is every else low)
        empty = self._empty(total)
        decided = self._call("NOT", test) if every else test
        null, outcome = Literal(BooleanType(), None), Literal(BooleanType(False), every)
        decision = Literal(BooleanType(False), not every)
        value = self._call("CASE", empty, outcome, decided, decision, self._call("<", known, total), null, test)
        return joined, value

    # --- joins and calls ---
    def _left(self, plan: Relation, inside: Pulled) -> Relation:
        width = len(plan.columns)
        return _join(plan, inside.plan, JoinKind.LEFT, conjunction([around(rex, width) for rex in inside.predicates]))

    def _empty(self, total: Rex) -> Rex:
        zero = Literal(BigIntType(False), 0)
        return self._equal(self._call("COALESCE", total, zero), zero)

    def _equal(self, one: Rex, other: Rex) -> Rex:
        return self._call("=", one, other)

    def _call(self, name: str, *args: Rex) -> Rex:
        return self.functions.resolve(name, args)


def _reads_around(rex: Rex) -> bool:
    return any(isinstance(part, Subquery) and is_correlated_plan(part.plan) for part in walk(rex))


def _queries(exprs: Sequence[Rex]) -> list[Subquery]:
    """Return the queries in expressions, each once. A query in the arguments of another one comes first."""
    queries: dict[Subquery, None] = {}
    for rex in exprs:
        for part in walk(rex):
            if isinstance(part, Subquery):
                queries.update(dict.fromkeys([*_queries(part.args), part]))
    return list(queries)


def _has_query(rex: Rex) -> bool:
    return any(isinstance(part, Subquery) for part in walk(rex))


def _join(left: Relation, right: Relation, kind: JoinKind, condition: Rex | None) -> Join:
    return Join(_join_columns(left.columns, right.columns, kind), left, right, kind, condition)


def _behind(rex: Rex, width: int, more: int) -> Rex:
    """Return a condition of a join, after `more` columns were inserted behind the first `width`."""

    def change(one: Rex) -> Rex | None:
        late = isinstance(one, InputRef) and one.index >= width
        return InputRef(one.type, one.index + more) if isinstance(one, InputRef) and late else None

    return rewritten(rex, change)


def _pad(columns: Columns, missing: bool) -> Columns:
    """Return the columns of a side of a join, nullable if the side may be missing."""
    return tuple(replace(one, type=one.type.nullable()) if missing else one for one in columns)


def _join_columns(left: Columns, right: Columns, kind: str) -> Columns:
    padded = tuple(replace(one, type=one.type.nullable()) for one in right)
    return (*left, *(padded if kind == JoinKind.LEFT else right))


def _nullable(rex: Rex, columns: Columns) -> Rex:
    """Return the expression over a join whose right side may be missing."""
    return rewritten(
        rex, lambda one: InputRef(columns[one.index].type, one.index) if isinstance(one, InputRef) else None
    )


def one_row(plan: Relation) -> bool:
    """Return True if a plan cannot have more than one row."""
    if isinstance(plan, Project | Filter):
        return one_row(plan.input)
    if isinstance(plan, Sort):
        return (plan.limit is not None and plan.limit <= 1) or one_row(plan.input)
    if isinstance(plan, Values):
        return len(plan.rows) <= 1
    return isinstance(plan, Aggregate) and not plan.keys


# --- LATERAL ---
def lateral_join(
    functions: Functions, left: Relation, right: Relation, kind: JoinKind, condition: Rex | None
) -> Relation:
    """Return a join whose right side refers to the left.

    An aggregate over no rows gives no row here, as in Flink. It gives its value only if it stands alone in a LEFT JOIN.
    """
    right = decorrelate(functions, right)
    if not is_correlated_plan(right):
        return _join(left, right, kind, condition)
    alone = kind == JoinKind.LEFT and len(right.columns) == 1 and condition is None
    try:
        inside = pull_up(functions, right)
    except NotPulled:
        inside = generate(functions, left, right, empty_groups=alone)
    if not (alone and inside.single):
        inside = _without_outer_outputs(inside)
    width = len(left.columns)
    tests = [around(rex, width) for rex in inside.predicates]
    extra = [] if condition is None else [_move(condition, inside, width)]
    joined = _join(left, inside.plan, kind, conjunction([*tests, *extra]))
    exprs: list[Rex] = [joined.ref(index) for index in range(width)]
    exprs += [_nullable(around(rex, width), joined.columns) for rex in inside.outputs]
    return projection(joined, exprs, [*left.names(), *right.names()])


def _without_outer_outputs(inside: Pulled) -> Pulled:
    """Compute the outputs below the join, if a missing row must make them NULL."""
    plain = all(isinstance(rex, InputRef) for rex in inside.outputs)
    outer = any(isinstance(part, OuterRef) for rex in inside.outputs for part in walk(rex))
    return inside if plain or outer else materialise(inside)


def _move(condition: Rex, inside: Pulled, width: int) -> Rex:
    def change(one: Rex) -> Rex | None:
        late = isinstance(one, InputRef) and one.index >= width
        return around(inside.outputs[one.index - width], width) if isinstance(one, InputRef) and late else None

    return rewritten(condition, change)
