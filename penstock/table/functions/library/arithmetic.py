"""Arithmetic: + - * / %, ABS, CEIL and FLOOR."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal

import pyarrow as pa
import pyarrow.compute as pc

from penstock.table.functions.library.decimal_kernels import WIDE, decimal_rows, exact, into
from penstock.table.functions.library.decimal_kernels import quotient as decimal_quotient
from penstock.table.functions.typing.coercion import APPROXIMATE, as_decimal, decimal_of, with_nullability
from penstock.table.functions.typing.registry import DivisionByZero, Infer, Kernel, Unfit, Value, register, rowwise
from penstock.table.functions.typing.result_types import (
    EXACT,
    NUMBER,
    alike,
    coerce,
    fits,
    same_as,
    signature,
)
from penstock.table.logical.rex import Call, Rex
from penstock.table.types import data_types as t
from penstock.table.types.arrow_forms import arrow_type

Inferred = tuple[tuple[Rex, ...], t.DataType]


# --- the types of + - * / % ---
def _numeric(name: str) -> Infer:
    """Infer the type of an operator.

    Whole numbers keep the wider type, floats win, and decimals get room for every digit.
    """

    def infer(args: tuple[Rex, ...]) -> Inferred:
        if len(args) != 2 or not all(fits(arg, NUMBER) for arg in args):
            raise Unfit("(a number, a number)")
        kinds = [arg.type for arg in args]
        if not any(isinstance(kind, t.DecimalType) for kind in kinds) or any(
            isinstance(kind, APPROXIMATE) for kind in kinds
        ):
            return alike(args)
        left, right = (as_decimal(kind) for kind in kinds)
        has_null = any(kind.is_nullable for kind in kinds)
        aim = with_nullability(_DECIMALS[name](left, right), has_null)
        return (coerce(args[0], left), coerce(args[1], right)), aim

    return infer


def _sum(left: t.DecimalType, right: t.DecimalType) -> t.DecimalType:
    scale = max(left.scale, right.scale)
    return decimal_of(max(left.precision - left.scale, right.precision - right.scale) + scale + 1, scale)


def _product(left: t.DecimalType, right: t.DecimalType) -> t.DecimalType:
    return decimal_of(left.precision + right.precision + 1, left.scale + right.scale)


def _quotient(left: t.DecimalType, right: t.DecimalType) -> t.DecimalType:
    scale = max(6, left.scale + right.precision + 1)
    return decimal_of(left.precision - left.scale + right.scale + scale, scale)


_DECIMALS: dict[str, Callable[[t.DecimalType, t.DecimalType], t.DecimalType]] = {
    "+": _sum,
    "-": _sum,
    "*": _product,
    "/": _quotient,
}


def _modulo(args: tuple[Rex, ...]) -> Inferred:
    """Infer the type of a remainder. For whole numbers, it is the type of the divisor."""
    if len(args) != 2 or not all(fits(arg, EXACT) for arg in args):
        raise Unfit("(an exact number, an exact number)")
    kinds = [arg.type for arg in args]
    has_null = any(kind.is_nullable for kind in kinds)
    if not any(isinstance(kind, t.DecimalType) for kind in kinds):
        return alike(args)[0], with_nullability(kinds[1], has_null)
    left, right = (as_decimal(kind) for kind in kinds)
    scale = max(left.scale, right.scale)
    aim = decimal_of(min(left.precision - left.scale, right.precision - right.scale) + scale, scale, has_null)
    return (coerce(args[0], left), coerce(args[1], right)), aim


# --- kernels ---
def _plain(name: str, compute: Kernel) -> Callable[[Call], Kernel]:
    decimal = exact(name)
    return lambda call: decimal(call) if isinstance(call.type, t.DecimalType) else compute


def _by_zero(name: str, dividend: Value, divisor: Value) -> DivisionByZero:
    zero = pc.fill_null(pc.equal(divisor, 0), False)
    if isinstance(dividend, pa.Scalar):
        return DivisionByZero(f"{name}: division of {dividend.as_py()} by zero")
    found = dividend if isinstance(zero, pa.Scalar) else dividend.filter(zero)
    return DivisionByZero(f"{name}: division of {found[0].as_py() if len(found) else '?'} by zero")


def _whole_quotient(one: Value, other: Value) -> Value:
    """Divide, and truncate toward zero. The least number divided by -1 is itself, because it wraps around."""
    try:
        quotient = pc.divide(one, other)
    except pa.ArrowInvalid:
        raise _by_zero("/", one, other) from None
    return pc.if_else(pc.equal(other, pa.scalar(-1, other.type)), pc.negate(one), quotient)


def _divide(call: Call) -> Kernel:
    if isinstance(call.type, t.DecimalType):
        return decimal_quotient(call)
    quotient: Kernel = pc.divide if isinstance(call.type, APPROXIMATE) else _whole_quotient
    return quotient


def _decimal_remainder(one: Decimal, other: Decimal) -> Decimal:
    if not other:
        raise DivisionByZero(f"%: division of {one} by zero")
    return WIDE.remainder(one, other)


def _remainder(call: Call) -> Kernel:
    if isinstance(call.type, t.DecimalType):
        return decimal_rows(_decimal_remainder)(call)
    aim = arrow_type(call.type)

    def kernel(one: Value, other: Value) -> Value:
        rest = pc.subtract(one, pc.multiply(_whole_quotient(one, other), other))
        return pc.cast(rest, aim, safe=False)

    return kernel


# --- rounding ---
def _whole_decimal(kinds: Sequence[t.DataType]) -> t.DataType:
    kind = kinds[0]
    return t.DecimalType(kind.precision, 0) if isinstance(kind, t.DecimalType) else kind


def _edge(compute: Kernel, rounding: str) -> Callable[[Call], Kernel]:
    def make(call: Call) -> Kernel:
        if isinstance(call.type, t.DecimalType):
            fit = into(call.type)
            return rowwise(lambda value: fit(value.to_integral_value(rounding)))(call)
        if isinstance(call.type, APPROXIMATE):
            return compute
        return lambda value: value

    return make


def register_all() -> None:
    """Register the functions of this module."""
    register("+", _numeric("+"), _plain("+", pc.add))
    register("-", _numeric("-"), _plain("-", pc.subtract))
    register("*", _numeric("*"), _plain("*", pc.multiply))
    register("/", _numeric("/"), _divide, raises=True)
    register("%|MOD", _modulo, _remainder, raises=True)
    register("NEGATE", signature(NUMBER, result=same_as(0)), lambda call: pc.negate)
    register("POSITIVE", signature(NUMBER, result=same_as(0)), lambda call: lambda value: value)
    register("ABS", signature(NUMBER, result=same_as(0)), lambda call: pc.abs)
    register("CEIL|CEILING", signature(NUMBER, result=_whole_decimal), _edge(pc.ceil, ROUND_CEILING))
    register("FLOOR", signature(NUMBER, result=_whole_decimal), _edge(pc.floor, ROUND_FLOOR))
