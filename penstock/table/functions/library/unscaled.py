"""Decimals as unscaled whole numbers, with which Python computes fast and exactly."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from penstock.table.functions.typing.registry import Value

DIGITS = 18
"""Maximum number of decimal digits that always fit into 64 bits."""
_EXACT = 1 << 53
"""Limit below which all whole numbers are exact as floating-point numbers."""
_POWERS = 22
"""Largest exact power of ten as a floating-point number, so that a division rounds only once."""


def _halves(column: pa.Array) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """Return the lower and the upper 64 bits of each value. Missing values have any bits."""
    halves = np.frombuffer(column.buffers()[1], np.int64)[2 * column.offset : 2 * (column.offset + len(column))]
    return halves[::2].copy(), halves[1::2]


def unscale(column: pa.Array) -> list[int | None]:
    """Return the values without their point: 1.50 is 150."""
    if column.null_count == len(column):
        return [None] * len(column)
    low, high = _halves(column)
    if np.array_equal(high, low >> 63):
        numbers: list[int | None] = low.tolist()
    else:
        pairs = zip(high.tolist(), low.view(np.uint64).tolist(), strict=True)
        numbers = [(upper << 64) | lower for upper, lower in pairs]
    if column.null_count:
        valid = column.is_valid().to_pylist()
        return [number if known else None for number, known in zip(numbers, valid, strict=True)]
    return numbers


def floating(value: Value, form: pa.DataType) -> Value:
    """Return decimals as the nearest floating-point numbers.

    Arrow's cast multiplies by a power of ten, and may be wrong in the last bit.
    """
    if not isinstance(value, pa.Array):
        return floating(pa.array([value.as_py()], value.type), form)[0]
    if value.null_count == len(value):
        return pa.nulls(len(value), form)
    low, high = _halves(value)
    known = value.is_valid().to_numpy(zero_copy_only=False)
    if 0 <= value.type.scale <= _POWERS and (((high == low >> 63) & (np.abs(low) < _EXACT)) | ~known).all():
        return pa.array(low / 10.0**value.type.scale, mask=~known).cast(form, safe=False)
    return pa.array([None if one is None else float(one) for one in value.to_pylist()], pa.float64()).cast(
        form, safe=False
    )


def of_unscaled(numbers: Sequence[int | None], form: pa.DataType) -> pa.Array:
    """Return decimals from unscaled numbers, with NULL for numbers that have too many digits for the type."""
    limit = 10**form.precision
    kept = [number if number is not None and -limit < number < limit else None for number in numbers]
    if form.precision > DIGITS:
        width = (1 << 128) - 1
        data = b"".join(((number or 0) & width).to_bytes(16, "little") for number in kept)
    else:
        low = np.array([number or 0 for number in kept], np.int64)
        data = np.stack([low, low >> 63], axis=1).tobytes()
    validity = pa.array([number is not None for number in kept]).cast(pa.uint8())
    bits = np.packbits(validity.to_numpy(zero_copy_only=False), bitorder="little").tobytes()
    return pa.Array.from_buffers(form, len(kept), [pa.py_buffer(bits), pa.py_buffer(data)])


def half_up(dividend: int, divisor: int) -> int:
    """Return the quotient, rounded half away from zero."""
    whole, rest = divmod(abs(dividend), abs(divisor))
    whole += 2 * rest >= abs(divisor)
    return whole if (dividend < 0) == (divisor < 0) else -whole


def numbers_of(value: Value, rows: int) -> list[int | None]:
    """Return the unscaled numbers of a column, or of a scalar for every row."""
    if isinstance(value, pa.Array):
        return unscale(value)
    return unscale(pa.array([value.as_py()], value.type)) * rows
