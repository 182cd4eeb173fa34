"""Comparisons, tests for NULL, logic, and functions made of them: BETWEEN, IN, NULLIF, IF."""

from __future__ import annotations

import operator
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from penstock.errors import ValidationException
from penstock.table.functions.typing.coercion import TEXTS, TIMESTAMPS, common_type, nullable, with_nullability
from penstock.table.functions.typing.registry import (
    REWRITES,
    Infer,
    Kernel,
    Unfit,
    Value,
    arrow,
    register,
    resolve,
    rowwise,
)
from penstock.table.functions.typing.result_types import (
    ANY,
    BOOLEAN,
    alike,
    coerce,
    fits,
    is_null,
    same_as,
    signature,
)
from penstock.table.logical.rex import Call, Literal, Rex
from penstock.table.types import data_types as t
from penstock.table.types.data_types import BooleanType, DataType

Inferred = tuple[tuple[Rex, ...], DataType]
_MOMENTS = (t.DateType, t.TimeType, *TIMESTAMPS)


# --- two values ---
def comparable(args: tuple[Rex, ...], equality: bool = True) -> tuple[Rex, ...]:
    """Return values cast to a type in which they can be compared."""
    kinds = [arg.type for arg in args]
    texts = [isinstance(kind, TEXTS) for kind in kinds]
    if any(texts) and not all(texts):
        aims = [kind for kind, text in zip(kinds, texts, strict=True) if not text and not isinstance(kind, t.NullType)]
        return _against_text(args, aims, equality)
    moments = {type(kind) for kind in kinds if isinstance(kind, _MOMENTS)}
    if t.DateType in moments and len(moments) > 1:
        raise Unfit("values that can be compared; cast one of them")
    return alike(args)[0]


def _against_text(args: tuple[Rex, ...], aims: list[DataType], equality: bool) -> tuple[Rex, ...]:
    if not aims:
        return alike(args)[0]
    aim = common_type(aims)
    if aim is None or not isinstance(aim, (t.NumericType, t.BooleanType, *_MOMENTS)):
        raise Unfit("values that can be compared; cast one of them")
    if isinstance(aim, t.NumericType) and equality:
        raise Unfit("values of one type: numbers are not compared with texts without a CAST")
    if isinstance(aim, t.BooleanType):
        aim = t.DataTypes.STRING()
    return tuple(coerce(arg, aim) for arg in args)


def _comparison_type(equality: bool) -> Infer:
    def infer(args: tuple[Rex, ...]) -> Inferred:
        if len(args) != 2:
            raise Unfit("two values")
        fitted = comparable(args, equality)
        if not equality and isinstance(fitted[0].type, t.MapType | t.MultisetType | t.RowType | t.ArrayType):
            raise Unfit("values with an order")
        return fitted, BooleanType(nullable([arg.type for arg in args]))

    return infer


_NESTED = (t.ArrayType, t.MapType, t.MultisetType, t.RowType)


def _comparison(compute: Kernel, by_rows: Callable[[Any, Any], bool]) -> Callable[[Call], Kernel]:
    def make(call: Call) -> Kernel:
        kinds = [arg.type for arg in call.args]
        if any(isinstance(kind, _NESTED) for kind in kinds):
            return rowwise(by_rows)(call)
        if any(isinstance(kind, t.NullType) for kind in kinds):
            return lambda one, other: pa.nulls(len(one if isinstance(one, pa.Array) else other), pa.bool_())
        return compute

    return make


def _distinct(call: Call) -> Kernel:
    if isinstance(call.args[0].type, _NESTED):
        return rowwise(lambda one, other: one != other, nulls=True)(call)

    def kernel(one: Value, other: Value) -> Value:
        if pa.types.is_null(one.type) or pa.types.is_null(other.type):
            return pc.xor(pc.is_null(one), pc.is_null(other))
        differs = pc.not_equal(one, other)
        return pc.if_else(pc.is_null(differs), pc.xor(pc.is_null(one), pc.is_null(other)), differs)

    return kernel


def _not_distinct(call: Call) -> Kernel:
    distinct = _distinct(call)
    return lambda one, other: pc.invert(distinct(one, other))


def _any_two(args: tuple[Rex, ...]) -> Inferred:
    if len(args) != 2:
        raise Unfit("two values")
    return comparable(args), BooleanType(False)


# --- truth ---
def _truth(wanted: bool, negated: bool) -> Kernel:
    def kernel(value: Value) -> Value:
        held = pc.fill_null(pc.equal(value, wanted), False)
        return pc.invert(held) if negated else held

    return kernel


# --- made of other functions ---
def _between(args: tuple[Rex, ...]) -> Rex:
    words = [arg.value for arg in args if isinstance(arg, Literal) and arg.value in ("SYMMETRIC", "ASYMMETRIC")]
    value, low, high = [arg for arg in args if not (isinstance(arg, Literal) and arg.value in words)][:3]
    inside = resolve("AND", [resolve(">=", [value, low]), resolve("<=", [value, high])])
    if "SYMMETRIC" not in words:
        return inside
    other = resolve("AND", [resolve(">=", [value, high]), resolve("<=", [value, low])])
    return resolve("OR", [inside, other])


def _in(args: tuple[Rex, ...]) -> Rex:
    value, *others = args
    if not others:
        raise ValidationException("IN takes a list of at least one value")
    if common_type([other.type for other in others]) is None:
        raise ValidationException("the values in the list of IN must have compatible types")
    try:
        fitted = comparable(tuple(args), equality=False)
    except Unfit as unfit:
        raise ValidationException(f"IN cannot look for a {value.type.summary()}: it takes {unfit}") from None
    has_null = any(arg.type.is_nullable for arg in args)
    if all(isinstance(other, Literal) for other in fitted[1:]) and not isinstance(fitted[0].type, _NESTED):
        return Call(BooleanType(has_null), "IN", fitted)
    found = resolve("=", [fitted[0], fitted[1]])
    for other in fitted[2:]:
        found = resolve("OR", [found, resolve("=", [fitted[0], other])])
    return found


def _membership(call: Call) -> Kernel:
    from penstock.table.types.arrow_forms import array_of

    values = [arg.value for arg in call.args[1:] if isinstance(arg, Literal)]
    kind = call.args[0].type
    members = array_of([value for value in values if value is not None], kind)
    unknown = any(value is None for value in values)

    def kernel(value: Value, *others: Value) -> Value:
        found = pc.is_in(value, members)
        if unknown:
            found = pc.if_else(found, True, pa.scalar(None, pa.bool_()))
        return pc.if_else(pc.is_null(value), pa.scalar(None, pa.bool_()), found)

    return kernel


def _nullif(args: tuple[Rex, ...]) -> Rex:
    one, other = args
    nothing = Literal(one.type.nullable(), None)
    return Call(one.type.nullable(), "CASE", (resolve("=", [one, other]), nothing, one))


def _if(args: tuple[Rex, ...]) -> Rex:
    found = resolve("CASE", args)
    return replace(found, type=with_nullability(found.type, any(arg.type.is_nullable for arg in args)))


def _ifnull(args: tuple[Rex, ...]) -> Rex:
    first, second = args
    if not first.type.is_nullable:
        return first
    aim = common_type([first.type, second.type])
    if aim is None:
        raise ValidationException(
            f"IFNULL cannot be applied to ({first.type.as_sql()}, {second.type.as_sql()}): it takes values of one type"
        )
    fitted = coerce(first, aim), coerce(second, aim)
    return Call(with_nullability(aim, second.type.is_nullable), "COALESCE", fitted)


# --- conditions ---
def _case(args: tuple[Rex, ...]) -> Inferred:
    """Infer the type of CASE. Arguments are condition, value, condition, value, ..., otherwise."""
    if len(args) < 3 or len(args) % 2 == 0:
        raise Unfit("(BOOLEAN, value, ..., value)")
    if not all(fits(when, BOOLEAN) for when in args[:-1:2]):
        raise Unfit("BOOLEANs as conditions")
    values = (*args[1::2], args[-1])
    aim = common_type([value.type for value in values])
    if aim is None:
        raise Unfit(f"values of one type, not {', '.join(value.type.summary() for value in values)}")
    fitted = [
        coerce(arg, aim if index % 2 or index == len(args) - 1 else BooleanType()) for index, arg in enumerate(args)
    ]
    return tuple(fitted), aim


def _coalesce(args: tuple[Rex, ...]) -> Inferred:
    if not args:
        raise Unfit("at least one value")
    fitted, aim = alike(args)
    return fitted, with_nullability(aim, all(arg.type.is_nullable for arg in args))


def _extreme(args: tuple[Rex, ...]) -> Inferred:
    if not args:
        raise Unfit("at least one value")
    return alike(args)


def _greatest(compute: Kernel, pick: Callable[..., Any]) -> Callable[[Call], Kernel]:
    def make(call: Call) -> Kernel:
        if isinstance(call.type, (t.NumericType, *_MOMENTS)):
            return lambda *values: compute(*values, skip_nulls=False)
        return rowwise(lambda *values: pick(values))(call)

    return make


def _logical(args: tuple[Rex, ...]) -> Inferred:
    if len(args) < 2 or not all(fits(arg, BOOLEAN) for arg in args):
        raise Unfit("(BOOLEAN, BOOLEAN)")
    fitted = tuple(coerce(arg, BooleanType()) if is_null(arg) else arg for arg in args)
    return fitted, BooleanType(nullable([arg.type for arg in args]))


def _never(call: Call) -> Kernel:
    raise TypeError(f"{call.function} is evaluated branch by branch")


def register_all() -> None:
    """Register the functions of this module."""
    register("=", _comparison_type(True), _comparison(pc.equal, operator.eq))
    register("<>|!=", _comparison_type(True), _comparison(pc.not_equal, operator.ne))
    register("<", _comparison_type(False), _comparison(pc.less, operator.lt))
    register("<=", _comparison_type(False), _comparison(pc.less_equal, operator.le))
    register(">", _comparison_type(False), _comparison(pc.greater, operator.gt))
    register(">=", _comparison_type(False), _comparison(pc.greater_equal, operator.ge))
    register("IS DISTINCT FROM", _any_two, _distinct)
    register("IS NOT DISTINCT FROM", _any_two, _not_distinct)
    one = signature(ANY, result=BooleanType(), nulls=False)
    register("IS NULL", one, arrow(pc.is_null))
    register("IS NOT NULL", one, arrow(pc.is_valid))
    truth = signature(BOOLEAN, result=BooleanType(), nulls=False)
    register("IS TRUE", truth, arrow(_truth(True, False)))
    register("IS NOT TRUE", truth, arrow(_truth(True, True)))
    register("IS FALSE", truth, arrow(_truth(False, False)))
    register("IS NOT FALSE", truth, arrow(_truth(False, True)))
    register("IS UNKNOWN", truth, arrow(pc.is_null))
    register("IS NOT UNKNOWN", truth, arrow(pc.is_valid))
    register("NOT", signature(BOOLEAN, result=same_as(0)), arrow(pc.invert))
    register("AND", _logical, _never)
    register("OR", _logical, _never)
    register("CASE", _case, _never)
    register("COALESCE", _coalesce, _never)
    register("GREATEST", _extreme, _greatest(pc.max_element_wise, max))
    register("LEAST", _extreme, _greatest(pc.min_element_wise, min))
    register("IN", lambda args: (args, BooleanType()), _membership)
    REWRITES.update({"BETWEEN": _between, "IN": _in, "NULLIF": _nullif, "IF": _if, "IFNULL": _ifnull})
