"""Decimal numbers: rounding into a type, and kernels for them."""

from __future__ import annotations

from collections.abc import Callable
from decimal import ROUND_HALF_UP, Context, Decimal, InvalidOperation
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from penstock.table import types as t
from penstock.table.functions.registry import Kernel, Value, rowwise
from penstock.table.plan.rex import Call

WIDE = Context(prec=160, rounding=ROUND_HALF_UP)
"""Exact for sums and products of the longest decimals."""
DIVISION = Context(prec=38, rounding=ROUND_HALF_UP)


def fitted(value: Decimal, precision: int, scale: int) -> Decimal | None:
    """A number with `scale` digits after the point; NULL if the type cannot hold it."""
    try:
        rounded = value.quantize(Decimal(1).scaleb(-scale), context=WIDE)
    except InvalidOperation:
        return None
    return rounded if rounded.is_finite() and len(rounded.as_tuple().digits) <= precision else None


def into(kind: t.DecimalType) -> Callable[[Decimal], Decimal | None]:
    precision, scale = kind.precision, kind.scale
    return lambda value: fitted(value, precision, scale)


def decimal_rows(compute: Callable[..., Decimal]) -> Callable[[Call], Kernel]:
    """A kernel that computes row by row, and rounds into the type of the call."""

    def make(call: Call) -> Kernel:
        assert isinstance(call.type, t.DecimalType)
        fit = into(call.type)
        return rowwise(lambda *values: fit(compute(*map(_number, values))))(call)

    return make


def _number(value: Any) -> Any:
    return Decimal(value) if isinstance(value, int) else value


def rescaled(column: Value, kind: t.DecimalType) -> Value:
    """A column of decimals or whole numbers as another DECIMAL: rounded half up, NULL where it does not fit."""
    source, aim = column.type, pa.decimal128(kind.precision, kind.scale)
    if source == aim:
        return column
    if pa.types.is_integer(source):
        digits = {8: 3, 16: 5, 32: 10, 64: 19}[source.bit_width]
        if digits + kind.scale <= 38:
            column = column.cast(pa.decimal128(max(digits, 1), 0))
            source = column.type
    widens = pa.types.is_decimal(source) and source.scale <= kind.scale
    if widens and kind.precision - kind.scale >= source.precision - source.scale:
        return column.cast(aim)
    return _slowly(column, kind, aim)


def _slowly(column: Value, kind: t.DecimalType, aim: pa.DataType) -> Value:
    fit = into(kind)
    if isinstance(column, pa.Scalar):
        value = column.as_py()
        return pa.scalar(None if value is None else fit(Decimal(value)), aim)
    return pa.array([None if value is None else fit(Decimal(value)) for value in column.to_pylist()], aim)


def exact(name: str) -> Callable[[Call], Kernel]:
    """+, - and * of decimals: in Arrow if no digit can be lost, else row by row."""
    compute: Kernel = {"+": pc.add, "-": pc.subtract, "*": pc.multiply}[name]
    slow: Callable[[Decimal, Decimal], Decimal] = {"+": WIDE.add, "-": WIDE.subtract, "*": WIDE.multiply}[name]

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
            return decimal_rows(slow)(call)
        return lambda one, other: compute(one, other).cast(aim)

    return make
