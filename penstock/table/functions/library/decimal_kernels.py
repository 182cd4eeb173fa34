"""Decimal numbers: rounding to a type, and kernels."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator
from decimal import ROUND_HALF_UP, Context, Decimal, InvalidOperation
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from penstock.table.functions.library.unscaled import half_up, numbers_of, of_unscaled, unscale
from penstock.table.functions.typing.registry import DivisionByZero, Kernel, Value, rowwise
from penstock.table.logical.rex import Call
from penstock.table.types import data_types as t

WIDE = Context(prec=160, rounding=ROUND_HALF_UP)
"""Arithmetic that is exact for sums and products of the longest decimals."""


def fit_decimal(value: Decimal, precision: int, scale: int) -> Decimal | None:
    """Return a number with `scale` digits after the point, or None if the type cannot hold it."""
    try:
        rounded = value.quantize(Decimal(1).scaleb(-scale), context=WIDE)
    except InvalidOperation:
        return None
    return rounded if rounded.is_finite() and len(rounded.as_tuple().digits) <= precision else None


def into(kind: t.DecimalType) -> Callable[[Decimal], Decimal | None]:
    """Return a function that rounds numbers to a type, and gives None for numbers that it cannot hold."""
    precision, scale = kind.precision, kind.scale
    return lambda value: fit_decimal(value, precision, scale)


def decimal_rows(compute: Callable[..., Decimal]) -> Callable[[Call], Kernel]:
    """Return a kernel that computes row by row, and rounds to the type of the call."""

    def make(call: Call) -> Kernel:
        assert isinstance(call.type, t.DecimalType)
        fit = into(call.type)
        return rowwise(lambda *values: fit(compute(*map(_number, values))))(call)

    return make


def _number(value: Any) -> Any:
    return Decimal(value) if isinstance(value, int) else value


def rescale(column: Value, kind: t.DecimalType) -> Value:
    """Return a column of decimals or whole numbers as another DECIMAL: rounded half up, NULL where it does not fit."""
    source, aim = column.type, pa.decimal128(kind.precision, kind.scale)
    if source == aim:
        return column
    widens = pa.types.is_decimal(source) and source.scale <= kind.scale
    if widens and kind.precision - kind.scale >= source.precision - source.scale:
        return column.cast(aim)
    if isinstance(column, pa.Scalar):
        return rescale(pa.array([column.as_py()], source), kind)[0]
    if pa.types.is_integer(source):
        return of_unscaled([None if one is None else one * 10**kind.scale for one in column.to_pylist()], aim)
    return of_unscaled([_scale(one, source.scale, kind.scale) for one in unscale(column)], aim)


def _scale(number: int | None, scale: int, aim: int) -> int | None:
    if number is None:
        return None
    return number * 10 ** (aim - scale) if aim >= scale else half_up(number, 10 ** (scale - aim))


def exact(name: str) -> Callable[[Call], Kernel]:
    """Return the kernel of +, - or * of decimals: in Arrow if no digit can be lost, otherwise row by row."""
    compute: Kernel = {"+": pc.add, "-": pc.subtract, "*": pc.multiply}[name]
    slow: Callable[[int, int], int] = {"+": operator.add, "-": operator.sub, "*": operator.mul}[name]

    def make(call: Call) -> Kernel:
        assert isinstance(call.type, t.DecimalType)
        left, right = (arg.type for arg in call.args)
        if not isinstance(left, t.DecimalType) or not isinstance(right, t.DecimalType):
            raise TypeError("the operands of decimal arithmetic are DECIMALs")
        aim = pa.decimal128(call.type.precision, call.type.scale)
        if name == "*":
            digits, scale = left.precision + right.precision + 1, left.scale + right.scale
        else:
            scale = max(left.scale, right.scale)
            digits = max(left.precision - left.scale, right.precision - right.scale) + scale + 1
        if digits > 38 or scale != call.type.scale:
            return _by_numbers(slow, left.scale, right.scale, scale, aim, name)
        return lambda one, other: compute(one, other).cast(aim)

    return make


def _by_numbers(
    compute: Callable[[int, int], int], left: int, right: int, scale: int, aim: pa.DataType, name: str
) -> Kernel:
    """Return arithmetic with the unscaled numbers of decimals. `scale` is the scale of the exact result."""
    raised = (1, 1) if name == "*" else (10 ** (scale - left), 10 ** (scale - right))

    def kernel(one: Value, other: Value) -> Value:
        pairs = _pairs(one, other)
        exactly = [None if a is None or b is None else compute(a * raised[0], b * raised[1]) for a, b in pairs]
        return of_unscaled([_scale(number, scale, aim.scale) for number in exactly], aim)

    return kernel


def quotient(call: Call) -> Kernel:
    """Return the kernel of a division of decimals, rounded half up."""
    assert isinstance(call.type, t.DecimalType)
    left, right = (arg.type for arg in call.args)
    assert isinstance(left, t.DecimalType)
    assert isinstance(right, t.DecimalType)
    aim = pa.decimal128(call.type.precision, call.type.scale)
    shift = call.type.scale + right.scale - left.scale
    up, down = 10 ** max(shift, 0), 10 ** max(-shift, 0)

    def divide(one: int | None, other: int | None) -> int | None:
        if one is None or other is None:
            return None
        if not other:
            raise DivisionByZero(f"/: division of {Decimal(one).scaleb(-left.scale, WIDE)} by zero")
        return half_up(one * up, other * down)

    return lambda one, other: of_unscaled([divide(a, b) for a, b in _pairs(one, other)], aim)


def _pairs(one: Value, other: Value) -> Iterator[tuple[int | None, int | None]]:
    rows = len(one) if isinstance(one, pa.Array) else len(other)
    return zip(numbers_of(one, rows), numbers_of(other, rows), strict=True)
