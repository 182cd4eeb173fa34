"""Top-N and deduplication: a filter on the rank of an OVER window."""

from __future__ import annotations

from dataclasses import dataclass, replace

from penstock.errors import TableException
from penstock.table.functions import constant
from penstock.table.logical.nodes import Over, Relation
from penstock.table.logical.optimised_nodes import Calc, Deduplicate, TopN
from penstock.table.logical.rex import Call, InputRef, Literal, OverSpec, Rex, conjunction, conjuncts, refs, rewritten
from penstock.table.rules.calcs import fuse

RANKS = {"ROW_NUMBER", "RANK", "DENSE_RANK"}


@dataclass
class RankRange:
    """The range of ranks that a condition keeps, and its remaining parts."""

    first: int
    last: int | None
    rest: list[Rex]


def recognise_rank(calc: Calc) -> Relation:
    """Return Top-N or a deduplication for a Calc above an OVER window with ranks. Return other Calcs unchanged."""
    over = calc.input
    if isinstance(over, TopN):
        return _without_rank(calc, over)
    if not isinstance(over, Over) or len(over.windows) != 1 or len(over.windows[0].calls) != 1:
        return calc
    window, column = over.windows[0], len(over.columns) - 1
    if window.calls[0].function not in RANKS or calc.condition is None:
        return calc
    found = _range(conjuncts(calc.condition), column)
    if found.last is None and found.first > 1:
        raise TableException("Rank end is not specified: a Top-N of a stream needs a condition such as rank <= 5")
    if found.last is None:
        return calc
    if found.last < 1:
        raise TableException(f"Rank end should not be less than one, but is {found.last}")
    if window.calls[0].function != "ROW_NUMBER":
        raise TableException(f"{window.calls[0].function}() is not supported in a Top-N of a stream: use ROW_NUMBER()")
    return _with_ranks(calc, over, window, found)


def _without_rank(calc: Calc, top: TopN) -> Relation:
    """Remove an unused rank column, so that a row that changes its rank needs no update."""
    rank = len(top.columns) - 1
    if not top.rank_column or any(rank in refs(rex) for rex in (*calc.exprs, *conjuncts(calc.condition))):
        return calc
    return fuse(replace(calc, input=replace(top, columns=top.columns[:-1], rank_column=False)))


def _with_ranks(calc: Calc, over: Over, window: OverSpec, found: RankRange) -> Relation:
    assert found.last is not None
    column = len(over.columns) - 1
    exprs, rest = calc.exprs, found.rest
    if found.first == found.last:
        known = Literal(over.columns[column].type, found.first)
        exprs = tuple(_replace_rank(rex, column, known) for rex in exprs)
        rest = [_replace_rank(rex, column, known) for rex in rest]
    used = any(column in refs(rex) for rex in (*exprs, *rest))
    columns = over.columns if used else over.input.columns
    if _deduplicates(over, window, found):
        key = window.order[0]
        made: Relation = Deduplicate(columns, over.input, window.partition, key.index, key.descending, used)
    else:
        made = TopN(columns, over.input, window.partition, window.order, found.first, found.last, used)
    return fuse(Calc(calc.columns, made, exprs, conjunction(rest)))


def _deduplicates(over: Over, window: OverSpec, found: RankRange) -> bool:
    return (
        found.first == found.last == 1
        and len(window.order) == 1
        and over.input.columns[window.order[0].index].time is not None
    )


def _replace_rank(rex: Rex, column: int, known: Literal) -> Rex:
    return rewritten(rex, lambda one: known if isinstance(one, InputRef) and one.index == column else None)


# --- the range of ranks ---
_MIRRORED = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "=": "="}


def _range(conditions: list[Rex], column: int) -> RankRange:
    found = RankRange(1, None, [])
    for condition in [one for part in conditions for one in _comparisons(part)]:
        bound = _rank_bound(condition, column)
        if bound is None:
            found.rest.append(condition)
            continue
        operator, number = bound
        if operator in {"<", "<=", "="}:
            last = number - 1 if operator == "<" else number
            found.last = last if found.last is None else min(found.last, last)
        if operator in {">", ">=", "="}:
            found.first = max(found.first, number + 1 if operator == ">" else number)
    return found


def _comparisons(rex: Rex) -> list[Rex]:
    if isinstance(rex, Call) and rex.function == "BETWEEN" and len(rex.args) == 3:
        value, low, high = rex.args
        return [replace(rex, function=">=", args=(value, low)), replace(rex, function="<=", args=(value, high))]
    return [rex]


def _rank_bound(rex: Rex, column: int) -> tuple[str, int] | None:
    """Return the operator and the number of a comparison of the rank with a constant, or None."""
    if not isinstance(rex, Call) or rex.function not in _MIRRORED or len(rex.args) != 2:
        return None
    one, other = map(_uncast, rex.args)
    operator = rex.function
    if isinstance(other, InputRef):
        one, other, operator = other, one, _MIRRORED[operator]
    if not isinstance(one, InputRef) or one.index != column:
        return None
    known = constant(other)
    if known is None or not isinstance(known.value, int):
        return None
    return operator, known.value


def _uncast(rex: Rex) -> Rex:
    """Return an expression without casts around it, which keep whole numbers."""
    return _uncast(rex.args[0]) if isinstance(rex, Call) and rex.function == "CAST" else rex
