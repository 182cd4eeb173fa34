"""A search for rows of two batches with equal keys, in columns."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from penstock.engine.records.columns import state_values

Positions = np.ndarray[Any, Any]
MOST_PAIRS = 1 << 20
"""Approximate number of pairs that are processed together."""


def key_codes(left: Sequence[pa.Array], right: Sequence[pa.Array]) -> tuple[Positions, Positions]:
    """Return a number for each row of both sides. Rows with equal keys have equal numbers, and NULL equals NULL."""
    codes = np.zeros(len(left[0]) + len(right[0]), "int64")
    for one, other in zip(left, right, strict=True):
        own, width = _encode(one, other)
        codes = pa.array(codes * width + own).dictionary_encode().indices.to_numpy().astype("int64")
    return codes[: len(left[0])], codes[len(left[0]) :]


def _encode(one: pa.Array, other: pa.Array) -> tuple[Positions, int]:
    kind = one.type
    if kind == other.type and not (pa.types.is_nested(kind) or pa.types.is_floating(kind) or pa.types.is_null(kind)):
        encoded = pa.concat_arrays([one, other]).dictionary_encode("encode")
        return encoded.indices.to_numpy(zero_copy_only=False), max(len(encoded.dictionary), 1)
    numbers: dict[Any, int] = {}
    values = (*state_values(one), *state_values(other))
    return np.array([numbers.setdefault(value, len(numbers)) for value in values], "int64"), max(len(numbers), 1)


def without_nulls(keys: Sequence[pa.Array], null_safe: Sequence[bool], count: int) -> Positions:
    """Return for each row whether its key can equal another key. NULL cannot, unless the comparison is null-safe."""
    able = np.ones(count, bool)
    for key, safe in zip(keys, null_safe, strict=True):
        if key.null_count and not safe:
            able &= key.is_valid().to_numpy(zero_copy_only=False)
    return able


def equal_pairs(
    left: Positions, right: Positions, able: tuple[Positions, Positions]
) -> Iterator[tuple[Positions, Positions]]:
    """Yield pairs of rows with the same code, as positions on both sides, piece by piece, in the order of the left."""
    candidates = np.flatnonzero(able[1])
    in_order = candidates[np.argsort(right[candidates], kind="stable")]
    codes = right[in_order]
    first = np.searchsorted(codes, left, "left")
    counts = np.where(able[0], np.searchsorted(codes, left, "right") - first, 0)
    totals = np.cumsum(counts)
    begin = 0
    while begin < len(left):
        before = int(totals[begin - 1]) if begin else 0
        end = max(int(np.searchsorted(totals, before + MOST_PAIRS, "right")), begin + 1)
        own = counts[begin:end]
        rows = np.repeat(np.arange(begin, end), own)
        turn = np.arange(len(rows)) - np.repeat(np.cumsum(own) - own, own)
        yield rows, in_order[first[rows] + turn]
        begin = end
