"""Expressions over record batches: a tree of typed calls becomes one function from a batch to a column."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from penstock.errors import TableException
from penstock.table.functions import user_functions
from penstock.table.functions.library.cast_kernels import can_fail
from penstock.table.functions.moment import Moment
from penstock.table.functions.typing.registry import FUNCTIONS, Value
from penstock.table.logical.rex import Call, InputRef, Literal, Rex, refs, rewritten, walk
from penstock.table.types.arrow_forms import array_of, arrow_type
from penstock.table.types.data_types import DataType, LocalZonedTimestampType, NullType

Evaluate = Callable[[pa.RecordBatch, Moment], Value]
Compiled = Callable[[pa.RecordBatch, Moment], pa.Array]


def compile_rex(rex: Rex) -> Compiled:
    """Return a function that computes the value of an expression for every row of a batch."""
    evaluate, aim = _evaluate(fold_constants(rex)), arrow_type(rex.type)
    return lambda batch, moment: _column(evaluate(batch, moment), batch.num_rows, aim)


def constant(rex: Rex) -> Literal | None:
    """Return the value of an expression without columns whose value never changes, or None for other expressions.

    Words of the syntax are not values. An expression that fails is not evaluated here, so that the error comes with the
    rows that need it.
    """
    if isinstance(rex, Literal):
        return rex
    if not isinstance(rex, Call) or not all(map(_foldable, walk(rex))):
        return None
    try:
        column = _column(_evaluate(rex)(_ONE_ROW, Moment()), 1, arrow_type(rex.type))
    except (TableException, pa.ArrowException):
        return None
    return Literal(rex.type, _plain(column.to_pylist()[0], rex.type))


def fold_constants(rex: Rex) -> Rex:
    """Return the expression with its constant parts computed."""
    if isinstance(rex, Call) and not is_word(rex):
        known = constant(rex)
        if known is not None:
            return known
        return rex.with_parts(tuple(arg if is_word(arg) else fold_constants(arg) for arg in rex.args))
    return rex


def constant_texts(rex: Rex) -> tuple[tuple[str, str], ...] | None:
    """Return the keys and values of a constant MAP of texts, or None for any other expression."""
    if not isinstance(rex, Call) or rex.function != "MAP":
        return None
    values = [arg if isinstance(arg, Literal) else constant(arg) for arg in rex.args]
    texts = [value.value for value in values if value is not None and isinstance(value.value, str)]
    return tuple(zip(texts[::2], texts[1::2], strict=True)) if len(texts) == len(values) else None


def is_word(rex: Rex) -> bool:
    """Return True for a word of a call's syntax, such as the unit of EXTRACT, which is not a value."""
    return isinstance(rex, Literal) and isinstance(rex.type, NullType) and rex.value is not None


_ONE_ROW = pa.RecordBatch.from_arrays([pa.array([0], pa.int8())], ["row"])


def _foldable(rex: Rex) -> bool:
    if isinstance(rex, Literal):
        return True
    if not isinstance(rex, Call) or rex.udf is not None or not _portable(rex.type):
        return False
    found = FUNCTIONS[rex.function]
    return found.deterministic and not (found.moment and _has_zone(rex))


def _has_zone(rex: Call) -> bool:
    """Return True if the value may depend on the session's zone, which is unknown before the query runs."""
    return any(isinstance(one.type, LocalZonedTimestampType) for one in (rex, *rex.args))


def _portable(kind: DataType) -> bool:
    from penstock.table.types import data_types as t

    return not isinstance(kind, t.ArrayType | t.MapType | t.RowType | t.MultisetType)


def _plain(value: Any, kind: DataType) -> Any:
    """Return a value of Arrow in the form of a Literal."""
    from penstock.table.types import data_types as t

    if isinstance(kind, t.DayTimeIntervalType) and value is not None:
        return round(value.total_seconds() * 1000)
    return value


# --- one node ---
def _evaluate(rex: Rex) -> Evaluate:
    match rex:
        case InputRef():
            index = rex.index
            return lambda batch, moment: batch.column(index)
        case Literal():
            return _literal(rex)
        case Call() if rex.udf is not None:
            return user_functions.evaluate(rex, [_evaluate_column(arg) for arg in rex.args])
        case Call() if rex.function in _LAZY:
            return _LAZY[rex.function](rex)
        case Call():
            return _call(rex)
    raise TableException(f"{type(rex).__name__} {rex} cannot be evaluated: it should have been planned as a join")


def _literal(rex: Literal) -> Evaluate:
    if is_word(rex):
        return lambda batch, moment: rex.value
    value = array_of([rex.value], rex.type)[0]
    return lambda batch, moment: value


def _evaluate_column(rex: Rex) -> Compiled:
    evaluate, aim = _evaluate(rex), arrow_type(rex.type)
    return lambda batch, moment: _column(evaluate(batch, moment), batch.num_rows, aim)


def _call(rex: Call) -> Evaluate:
    found = FUNCTIONS[rex.function]
    kernel, aim = found.make(rex), arrow_type(rex.type)
    args = [_evaluate(arg) for arg in rex.args]

    def evaluate(batch: pa.RecordBatch, moment: Moment) -> Value:
        values = [arg(batch, moment) for arg in args]
        if values and not any(isinstance(value, pa.Array) for value in values):
            values = [_spread(value, batch.num_rows) for value in values]
        result = kernel(batch.num_rows, moment, *values) if found.moment else kernel(*values)
        return result if result.type == aim else _column(result, batch.num_rows, aim)

    return evaluate


def _spread(value: Value, rows: int) -> Value:
    return pa.repeat(value, rows) if isinstance(value, pa.Scalar) else value


def _column(value: Value, rows: int, aim: pa.DataType) -> pa.Array:
    if isinstance(value, pa.Scalar):
        value = pa.repeat(value, rows)
    if isinstance(value, pa.ChunkedArray):
        value = value.combine_chunks()
    return value if value.type == aim else value.cast(aim)


# --- calls that evaluate some arguments only where needed ---
def may_raise(rex: Rex) -> bool:
    """Return True if an expression must not be evaluated for rows that do not need it."""
    return any(isinstance(one, Call) and _can_fail(one) for one in walk(rex))


def _can_fail(call: Call) -> bool:
    if call.udf is not None:
        return True
    return can_fail(call) if call.function == "CAST" else FUNCTIONS[call.function].raises


def _where(rex: Rex) -> Callable[[pa.RecordBatch, Moment, pa.Array], Value]:
    """Return a function that evaluates an expression for the rows of a mask; other rows are NULL.

    An expression that cannot fail is evaluated for all rows.
    """
    whole = _evaluate(rex)
    if not may_raise(rex):
        return lambda batch, moment, mask: whole(batch, moment)
    needed = sorted(refs(rex)) or [0]
    places = {index: place for place, index in enumerate(needed)}
    column = _evaluate_column(
        rewritten(rex, lambda one: replace(one, index=places[one.index]) if isinstance(one, InputRef) else None)
    )

    def evaluate(batch: pa.RecordBatch, moment: Moment, mask: pa.Array) -> Value:
        wanted = pc.sum(mask).as_py() or 0
        if wanted == batch.num_rows:
            return whole(batch, moment)
        if not wanted:
            return pa.nulls(batch.num_rows, arrow_type(rex.type))
        chosen = column(batch.select(needed).filter(mask), moment)
        return chosen.take(pc.if_else(mask, pc.subtract(pc.cumulative_sum(mask.cast(pa.int64())), 1), None))

    return evaluate


def _logic(rex: Call, decisive: bool) -> Evaluate:
    """Evaluate AND and OR. A right side that can fail is evaluated only where the left side does not decide."""
    join = pc.and_kleene if rex.function == "AND" else pc.or_kleene
    first, *others = rex.args
    left, rights = _evaluate_column(first), [_where(other) for other in others]

    def evaluate(batch: pa.RecordBatch, moment: Moment) -> Value:
        result = left(batch, moment)
        for right in rights:
            open_rows = pc.fill_null(pc.not_equal(result, decisive), True)
            result = join(result, right(batch, moment, open_rows))
        return result

    return evaluate


def _case(rex: Call) -> Evaluate:
    """Evaluate CASE: conditions in order, and values only where their condition is the first that holds."""
    aim = arrow_type(rex.type)
    branches = [(_where(when), _where(then)) for when, then in zip(rex.args[:-1:2], rex.args[1::2], strict=True)]
    otherwise = _where(rex.args[-1])

    def evaluate(batch: pa.RecordBatch, moment: Moment) -> Value:
        rows = batch.num_rows
        left = pa.repeat(pa.scalar(True), rows)
        parts: list[tuple[pa.Array, Value]] = []
        for when, then in branches:
            held = _column(pc.fill_null(when(batch, moment, left), False), rows, pa.bool_())
            chosen = pc.and_(left, held)
            parts.append((chosen, then(batch, moment, chosen)))
            left = pc.and_not(left, held)
        result = _column(otherwise(batch, moment, left), rows, aim)
        for chosen, value in reversed(parts):
            result = _choose(chosen, value, result)
        return result

    return evaluate


def _coalesce(rex: Call) -> Evaluate:
    aim = arrow_type(rex.type)
    first, *others = rex.args
    left, rights = _evaluate_column(first), [_where(other) for other in others]

    def evaluate(batch: pa.RecordBatch, moment: Moment) -> Value:
        result = _column(left(batch, moment), batch.num_rows, aim)
        for right in rights:
            missing = pc.is_null(result)
            if not pc.any(missing).as_py():
                break
            result = _choose(missing, right(batch, moment, missing), result)
        return result

    return evaluate


def _choose(mask: pa.Array, yes: Value, no: pa.Array) -> pa.Array:
    if yes.type != no.type:
        yes = yes.cast(no.type)
    return pc.if_else(mask, yes, no)


_LAZY: dict[str, Callable[[Call], Evaluate]] = {
    "AND": lambda rex: _logic(rex, False),
    "OR": lambda rex: _logic(rex, True),
    "CASE": _case,
    "COALESCE": _coalesce,
}
