"""Filters and projections become Calcs, and neighbouring Calcs become one."""

from __future__ import annotations

from dataclasses import replace

from penstock.table.functions import constant
from penstock.table.logical.building import identity
from penstock.table.logical.nodes import Filter, Project, Relation, Values
from penstock.table.logical.optimised_nodes import Calc
from penstock.table.logical.rex import Call, InputRef, Literal, Rex, conjunction, conjuncts, rewritten, walk


def fuse(relation: Relation) -> Relation:
    """Return a filter or projection as a Calc, merged with a Calc below it. Return other relations unchanged."""
    match relation:
        case Filter():
            made: Relation = _filter(relation)
        case Project():
            made = Calc(relation.columns, relation.input, relation.exprs, None)
        case Calc():
            made = relation
        case _:
            return relation
    return _merge(made) if isinstance(made, Calc) else made


def _filter(relation: Filter) -> Relation:
    kept = [part for part in conjuncts(relation.condition) if not _is(part, True)]
    if any(_is(part, False) or _is(part, None) for part in kept):
        return Values(relation.columns, ())
    condition = conjunction(kept)
    return Calc(relation.columns, relation.input, tuple(identity(relation.input)), condition)


def _is(rex: Rex, value: bool | None) -> bool:
    known = constant(rex)
    return known is not None and known.value is value


def _merge(upper: Calc) -> Relation:
    lower = upper.input
    if isinstance(lower, Calc) and _inlines(upper, lower):
        exprs = tuple(_inline(expr, lower) for expr in upper.exprs)
        above = None if upper.condition is None else _inline(upper.condition, lower)
        condition = conjunction([*conjuncts(lower.condition), *conjuncts(above)])
        return _merge(Calc(upper.columns, lower.input, exprs, condition))
    if upper.condition is None and is_identity(upper):
        return replace_columns(lower, upper)
    return upper


def is_identity(calc: Calc) -> bool:
    """Return True if a Calc passes every column of its input unchanged, under the same name."""
    return (
        calc.condition is None
        and len(calc.exprs) == len(calc.input.columns)
        and all(isinstance(expr, InputRef) and expr.index == index for index, expr in enumerate(calc.exprs))
    )


def replace_columns(relation: Relation, calc: Calc) -> Relation:
    """Return the input of a Calc that computes nothing. Keep the Calc if it changes names or types."""
    if relation.columns == calc.columns:
        return relation
    return calc if relation.names() != calc.names() or relation.types() != calc.types() else relation


def _inlines(upper: Calc, lower: Calc) -> bool:
    """Return True if the expressions below can move up. A costly or changing expression may be used only once."""
    uses: dict[int, int] = {}
    for rex in (*upper.exprs, *([] if upper.condition is None else [upper.condition])):
        for part in walk(rex):
            if isinstance(part, InputRef):
                uses[part.index] = uses.get(part.index, 0) + 1
    return all(
        isinstance(lower.exprs[index], InputRef | Literal) or (count == 1 and is_plain(lower.exprs[index]))
        for index, count in uses.items()
    ) and (upper.condition is None or all(map(is_plain, lower.exprs)))


def is_plain(rex: Rex) -> bool:
    """Return True if an expression can be moved: it has no user function, and one value for the same row."""
    return not any(isinstance(part, Call) and (part.udf is not None or part.function in _MOVING) for part in walk(rex))


def is_repeatable(rex: Rex) -> bool:
    """Return True if an expression always has the same value for the same row, so that its result can be shared."""
    return all(_repeats(part) for part in walk(rex) if isinstance(part, Call))


def _repeats(call: Call) -> bool:
    return call.udf.deterministic if call.udf is not None else call.function not in _MOVING


_MOVING = {
    "RAND", "RAND_INTEGER", "UUID", "NOW", "PROCTIME", "CURRENT_TIMESTAMP", "CURRENT_ROW_TIMESTAMP", "LOCALTIMESTAMP",
    "CURRENT_WATERMARK", "UNIX_TIMESTAMP", "CURRENT_DATE", "CURRENT_TIME", "LOCALTIME",
}  # fmt: skip


def _inline(rex: Rex, lower: Calc) -> Rex:
    return rewritten(rex, lambda one: _in(one, lower) if isinstance(one, InputRef) else None)


def _in(ref: InputRef, lower: Calc) -> Rex:
    found = lower.exprs[ref.index]
    return replace(found, type=ref.type) if isinstance(found, InputRef) else found
