"""Hashes that are computed for whole columns are those of the keys."""

from __future__ import annotations

import datetime
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.api.functions.key_selectors import ColumnKeys
from penstock.engine.records.columns import Columns
from penstock.engine.state.key_groups import hashes_of_numbers, stable_hash

NUMBERS = st.integers(-(2**63), 2**63 - 1) | st.sampled_from([-2, -1, 0, 1, 2**61 - 2, 2**61 - 1, 2**32, -(2**32)])
SMALL = st.integers(-(2**31), 2**31 - 1)
ROWS = st.tuples(NUMBERS, SMALL, st.none() | SMALL, st.none() | st.text(max_size=3), st.booleans(), st.dates())
TYPES = [pa.int64(), pa.int32(), pa.int32(), pa.string(), pa.bool_(), pa.date32()]


@given(st.lists(ROWS, min_size=1, max_size=20), st.lists(st.integers(0, 5), min_size=1, max_size=4, unique=True))
def test_a_hash_does_not_depend_on_the_form(rows: list[tuple[Any, ...]], positions: list[int]) -> None:
    arrays = [pa.array(values, kind) for values, kind in zip(zip(*rows, strict=True), TYPES, strict=True)]
    columns = Columns(pa.RecordBatch.from_arrays(arrays, names=list("abcdef")))
    selector = ColumnKeys(tuple(positions))
    days = [(*row[:5], (row[5] - datetime.date(1970, 1, 1)).days) for row in rows]
    assert columns.key_hashes(selector).tolist() == [stable_hash(selector(row)) for row in days]


@pytest.mark.parametrize("number", [0, -1, -2, 2**61 - 2, 2 - 2**61])
def test_numbers_that_are_their_own_hash(number: int) -> None:
    assert hashes_of_numbers(np.array([number])).tolist() == [stable_hash(number)]


@pytest.mark.parametrize("number", [2**61 - 1, 1 - 2**61, 2**63 - 1, -(2**63)])
def test_numbers_that_are_too_large_for_a_shortcut(number: int) -> None:
    assert hashes_of_numbers(np.array([5, number])) is None
