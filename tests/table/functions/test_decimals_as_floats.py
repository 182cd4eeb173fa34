"""Casts of decimals to floating-point numbers give the nearest one, as Python's own do."""

from __future__ import annotations

from decimal import Context, Decimal

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from penstock.table.functions.library.unscaled import floating

WIDE = Context(prec=60)


@st.composite
def columns(draw: st.DrawFn) -> pa.Array:
    precision = draw(st.integers(1, 38))
    scale = draw(st.integers(0, precision))
    numbers = st.none() | st.integers(-(10**precision) + 1, 10**precision - 1)
    values = [None if one is None else Decimal(one).scaleb(-scale, WIDE) for one in draw(st.lists(numbers, max_size=9))]
    return pa.array(values, pa.decimal128(precision, scale))


@given(columns(), st.integers(0, 3))
def test_the_nearest_double(column: pa.Array, start: int) -> None:
    part = column.slice(start)
    nearest = [None if one is None else float(one) for one in part.to_pylist()]
    assert floating(part, pa.float64()).to_pylist() == nearest


@given(columns())
def test_the_nearest_float(column: pa.Array) -> None:
    nearest = [None if one is None else float(np.float32(float(one))) for one in column.to_pylist()]
    assert floating(column, pa.float32()).to_pylist() == nearest
