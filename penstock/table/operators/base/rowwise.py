"""Expressions over single rows as state holds them, for operators that process rows one by one.

Python evaluates comparisons, logic and columns of plain types. Arrow evaluates the rest, in batches of one row.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import pyarrow as pa

from penstock.engine.records.columns import state_values
from penstock.table.functions.moment import Moment
from penstock.table.logical.rex import Call, InputRef, Literal, Rex
from penstock.table.operators.base.compiled_expressions import evaluator
from penstock.table.operators.base.query_batches import Held, column_of
from penstock.table.types import data_types as t

Value = Callable[[Held], Any]
_COMPARISONS: dict[str, Callable[[Any, Any], bool]] = {
    "=": operator.eq,
    "<>": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
_PLAIN = (
    t.IntType,
    t.BigIntType,
    t.DoubleType,
    t.VarCharType,
    t.CharType,
    t.BooleanType,
    t.TinyIntType,
    t.SmallIntType,
)


def rowwise(rex: Rex, schema: pa.Schema) -> Value:
    """Return a function from a row to the value of an expression, as state holds values. NULL is None."""
    made = _python(rex)
    return _by_arrow(rex, schema) if made is None else made


def _python(rex: Rex) -> Value | None:
    match rex:
        case InputRef():
            return operator.itemgetter(rex.index)
        case Literal() if isinstance(rex.type, _PLAIN):
            value = rex.value
            return lambda row: value
        case Call() if rex.udf is None:
            return _call(rex)
    return None


def _call(rex: Call) -> Value | None:
    args = [_python(arg) for arg in rex.args]
    made = [arg for arg in args if arg is not None]
    if len(made) != len(args):
        return None
    comparable = all(isinstance(arg.type, _PLAIN) for arg in rex.args)
    if rex.function in _COMPARISONS and comparable:
        return _comparison(_COMPARISONS[rex.function], made[0], made[1])
    match rex.function:
        case "AND":
            return _and(made)
        case "OR":
            return _or(made)
        case "NOT":
            return lambda row: None if (value := made[0](row)) is None else not value
        case "IS NULL":
            return lambda row: made[0](row) is None
        case "IS NOT NULL":
            return lambda row: made[0](row) is not None
    return None


def _comparison(compare: Callable[[Any, Any], bool], one: Value, other: Value) -> Value:
    def comparison(row: Held) -> bool | None:
        left, right = one(row), other(row)
        return None if left is None or right is None else compare(left, right)

    return comparison


def _and(parts: list[Value]) -> Value:
    def both(row: Held) -> bool | None:
        values = [part(row) for part in parts]
        if False in values:
            return False
        return None if None in values else True

    return both


def _or(parts: list[Value]) -> Value:
    def either(row: Held) -> bool | None:
        values = [part(row) for part in parts]
        if True in values:
            return True
        return None if None in values else False

    return either


def _by_arrow(rex: Rex, schema: pa.Schema) -> Value:
    compute = evaluator(rex)

    def value(row: Held) -> Any:
        if len(schema):
            arrays = [column_of([one], field.type) for one, field in zip(row, schema, strict=True)]
            batch = pa.RecordBatch.from_arrays(arrays, schema=schema)
        else:
            batch = pa.RecordBatch.from_arrays([pa.array([0])], names=["row"])
        return state_values(compute(batch, Moment()))[0]

    return value
