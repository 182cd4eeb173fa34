"""Mathematics: roots, logarithms, angles, rounding to places, random numbers, other number systems."""

from __future__ import annotations

import math
import random
import uuid
from collections.abc import Callable, Sequence
from decimal import ROUND_DOWN, ROUND_HALF_UP, Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.table.functions.library.decimal_kernels import WIDE, into
from penstock.table.functions.library.text_forms import float_text
from penstock.table.functions.moment import Moment
from penstock.table.functions.typing.coercion import APPROXIMATE
from penstock.table.functions.typing.registry import Infer, Kernel, Unfit, Value, arrow, register, rowwise
from penstock.table.functions.typing.result_types import (
    INTEGER,
    NUMBER,
    TEXT,
    casting,
    either,
    same_as,
    signature,
)
from penstock.table.logical.rex import Call, Literal, Rex
from penstock.table.types import data_types as t
from penstock.table.types.arrow_forms import arrow_type

_DOUBLE, _STRING = t.DoubleType(), t.DataTypes.STRING()


# --- over doubles ---
def _doubles(compute: Callable[..., Any]) -> Callable[[Call], Kernel]:
    """Return the kernel of a NumPy function, which gives NaN and infinities where there is no number."""

    def kernel(*values: Value) -> Value:
        columns = [_numbers(value) for value in values]
        with np.errstate(all="ignore"):
            result = pa.array(compute(*columns), pa.float64())
        missing = pc.is_null(values[0])
        for value in values[1:]:
            missing = pc.or_(missing, pc.is_null(value))
        return pc.if_else(missing, pa.scalar(None, pa.float64()), result)

    return arrow(kernel)


def _numbers(value: Value) -> Any:
    if isinstance(value, pa.Scalar):
        return np.float64(math.nan if value.as_py() is None else float(value.as_py()))
    return value.fill_null(math.nan).to_numpy(zero_copy_only=False)


def _logarithm(*values: Any) -> Any:
    return np.log(values[0]) if len(values) == 1 else np.log(values[1]) / np.log(values[0])


_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "SQRT": np.sqrt,
    "LN": np.log,
    "LOG10": np.log10,
    "LOG2": lambda value: np.log(value) / np.log(2.0),
    "EXP": np.exp,
    "SIN": np.sin,
    "SINH": np.sinh,
    "COS": np.cos,
    "COSH": np.cosh,
    "TAN": np.tan,
    "TANH": np.tanh,
    "COT": lambda value: 1.0 / np.tan(value),
    "ASIN": np.arcsin,
    "ACOS": np.arccos,
    "ATAN": np.arctan,
    "DEGREES": np.degrees,
    "RADIANS": np.radians,
}


# --- rounding ---
def _places(rex: Rex) -> int | None:
    return rex.value if isinstance(rex, Literal) else None


def _rounding(args: tuple[Rex, ...]) -> tuple[tuple[Rex, ...], t.DataType]:
    """Infer the type of rounding. A DECIMAL gets the wanted number of digits if that is a constant."""
    rule = signature(NUMBER, INTEGER, result=same_as(0), optional=1)
    args, kind = rule(args)
    if not isinstance(kind, t.DecimalType):
        return args, kind
    places = _places(args[1]) if len(args) > 1 else 0
    if places is None or places >= kind.scale:
        return args, kind
    scale = max(places, 0)
    precision = min(1 + kind.precision - kind.scale + scale, 38)
    return args, t.DecimalType(precision, scale, kind.is_nullable)


def _round(rounding: str) -> Callable[[Call], Kernel]:
    def make(call: Call) -> Kernel:
        kind = call.type
        if isinstance(kind, t.DecimalType):
            fit = into(kind)
            return rowwise(lambda value, places=0: fit(_at(value, places, rounding)))(call)
        if isinstance(kind, APPROXIMATE):
            text: Callable[[float], str] = float_text if isinstance(kind, t.FloatType) else repr
            slow = rowwise(lambda value, places=0: _float_at(value, places, rounding, text))(call)
            places = _places(call.args[1]) if len(call.args) > 1 else 0
            plain = isinstance(kind, t.DoubleType) and places is not None and 0 <= places <= 9
            return _fast_round(places or 0, rounding, slow) if plain else slow
        form = arrow_type(kind)
        whole = rowwise(lambda value, places=0: int(_at(Decimal(value), min(places, 0), rounding)))
        if len(call.args) == 1 or (_places(call.args[1]) or -1) >= 0:
            return lambda value, *others: pc.cast(value, form)
        return whole(call)

    return make


_UNCERTAIN = 2.0**-50
"""Largest relative error of a number that was multiplied by a power of ten."""


def _fast_round(places: int, rounding: str, slow: Kernel) -> Kernel:
    """Return a function that rounds whole columns.

    It uses `slow` for columns with large values, or with values close to a half.
    """
    factor = 10.0**places

    def kernel(value: Value, *others: Value) -> Value:
        numbers = value.fill_null(0.0).to_numpy(zero_copy_only=False) if isinstance(value, pa.Array) else None
        if numbers is None:
            return slow(value, *others)
        with np.errstate(all="ignore"):
            scaled = np.abs(numbers) * factor
            nearest = np.rint(scaled)
            exact = nearest / factor == np.abs(numbers)  # The number has no digits behind the last place.
            margin = np.maximum(1e-6, scaled * _UNCERTAIN)
            down = np.floor(scaled)
            if rounding == ROUND_DOWN:
                edge = (np.abs(scaled - nearest) < margin) & ~exact
                whole = np.where(exact, nearest, down)
            else:
                edge = np.abs(scaled - down - 0.5) < margin
                whole = np.floor(scaled + 0.5)
        if not np.all(scaled < 2.0**46) or edge.any():
            return slow(value, *others)
        result = pa.array(np.copysign(whole / factor, numbers), pa.float64())
        return pc.if_else(pc.is_null(value), pa.scalar(None, pa.float64()), result)

    return kernel


def _at(value: Decimal, places: int, rounding: str) -> Decimal:
    if value.as_tuple().exponent >= -places:  # type: ignore[operator]
        return value
    return value.quantize(Decimal(1).scaleb(-places), rounding=rounding, context=WIDE)


def _float_at(value: float, places: int, rounding: str, text: Callable[[float], str]) -> float:
    if not math.isfinite(value):
        return value
    return float(_at(Decimal(text(value)), places, rounding))


def _sign(call: Call) -> Kernel:
    if isinstance(call.type, t.DecimalType):
        return rowwise(lambda value: Decimal(0 if not value else 1).copy_sign(value))(call)
    form = arrow_type(call.type)
    return lambda value: pc.cast(pc.sign(value), form)


# --- other number systems ---
def _bits(value: int) -> str:
    return format(value & (2**64 - 1), "b")


def _hexadecimal(value: Any) -> str:
    return value.encode().hex().upper() if isinstance(value, str) else format(value & (2**64 - 1), "X")


def _unhex(text: str) -> bytes | None:
    if len(text) % 2:
        text = "0" + text
    try:
        return bytes.fromhex(text)
    except ValueError:
        return None


# --- chance ---
def _random(call: Call) -> Kernel:
    generator = random.Random(*_seed(call.args))
    return lambda rows, moment, *seed: pa.array([generator.random() for _ in range(rows)], pa.float64())


def _seed(args: Sequence[Rex]) -> list[Any]:
    return [arg.value for arg in args if isinstance(arg, Literal)]


def _random_integer(call: Call) -> Kernel:
    """Return the kernel of RAND_INTEGER(bound) or RAND_INTEGER(seed, bound)."""
    generator = random.Random(*_seed(call.args[:-1]))

    def kernel(rows: int, moment: Moment, *args: Value) -> Value:
        bounds = args[-1]
        values = bounds.to_pylist() if isinstance(bounds, pa.Array) else [bounds.as_py()] * rows
        return pa.array([None if bound is None else generator.randrange(bound) for bound in values], pa.int32())

    return kernel


def _uuids(rows: int, moment: Moment) -> Value:
    return pa.array([str(uuid.uuid4()) for _ in range(rows)], pa.string())


def _constant(value: float) -> Callable[[Call], Kernel]:
    return lambda call: lambda rows, moment: pa.repeat(pa.scalar(value, pa.float64()), rows)


def _nothing(result: t.DataType) -> Infer:
    def infer(args: tuple[Rex, ...]) -> tuple[tuple[Rex, ...], t.DataType]:
        if args:
            raise Unfit("nothing")
        return args, result

    return infer


def register_all() -> None:
    """Register the functions of this module."""
    double = casting(signature(NUMBER, result=_DOUBLE), _DOUBLE)
    doubles = casting(signature(NUMBER, NUMBER, result=_DOUBLE), _DOUBLE)
    for name, compute in _FUNCTIONS.items():
        register(name, double, _doubles(compute))
    register("POWER", doubles, _doubles(np.power))
    register("ATAN2", doubles, _doubles(np.arctan2))
    register("LOG", either(double, doubles), _doubles(_logarithm))
    register("SIGN", signature(NUMBER, result=same_as(0)), _sign)
    register("ROUND", _rounding, _round(ROUND_HALF_UP))
    register("TRUNCATE", _rounding, _round(ROUND_DOWN))
    register("BIN", signature(INTEGER, result=_STRING), rowwise(_bits))
    register("HEX", either(signature(INTEGER, result=_STRING), signature(TEXT, result=_STRING)), rowwise(_hexadecimal))
    register("UNHEX", signature(TEXT, result=t.DataTypes.BYTES(), nulls=True), rowwise(_unhex))
    register("PI", _nothing(t.DoubleType(False)), _constant(math.pi), moment=True)
    register("E", _nothing(t.DoubleType(False)), _constant(math.e), moment=True)
    seeded = signature(INTEGER, result=t.DoubleType(), optional=1, nulls=False)
    register("RAND", seeded, _random, deterministic=False, moment=True)
    bounded = signature(INTEGER, INTEGER, result=t.IntType(), optional=1)
    register("RAND_INTEGER", bounded, _random_integer, deterministic=False, moment=True)
    nothing = _nothing(t.CharType(36, False))
    register("UUID", nothing, lambda call: _uuids, deterministic=False, moment=True)
