"""The external sort against Python's own, with budgets so small that it spills all the time."""

import os
from decimal import Decimal
from itertools import groupby
from unittest.mock import patch

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.engine.operators.batch import external_sort
from penstock.engine.operators.batch.batch_operator import key_order
from penstock.engine.operators.batch.external_sort import ExternalSort
from penstock.engine.records.elements import MIN_TIMESTAMP

KEYS = st.one_of(
    st.integers(-3, 3),
    st.sampled_from(["", "a", "b", "aa", 1.0, 2.5, True, Decimal(2), Decimal("0.5"), None, b"x"]),
    st.tuples(st.integers(0, 2), st.sampled_from(["x", 1, 1.0])),
)
TIMES = st.one_of(st.none(), st.integers(0, 4))
CHUNKS = st.lists(
    st.tuples(st.integers(0, 1), st.booleans(), st.lists(st.tuples(KEYS, TIMES), min_size=1, max_size=6)), max_size=12
)


def sorted_by(chunks, budget, order=key_order):
    sort = ExternalSort(order, budget)
    number, held = 0, []
    for index, timed, records in chunks:
        values = list(range(number, number + len(records)))
        number += len(records)
        times = [time for _, time in records] if timed else None
        keys = [key for key, _ in records]
        sort.add(keys, index, values, times)
        held += zip(keys, [index] * len(keys), times or [None] * len(keys), values, strict=True)
    got = []
    for piece in sort.pieces():
        for index, values, times in piece.by_input():
            got += zip(
                [piece.key] * len(values), [index] * len(values), times or [None] * len(values), values, strict=True
            )
    spilled = sort.bytes_on_disk
    sort.close()
    return got, held, spilled


def expected(held, order=key_order):
    return sorted(held, key=lambda record: (order(record[0]), MIN_TIMESTAMP if record[2] is None else record[2]))


@settings(deadline=None, max_examples=300)
@given(CHUNKS, st.sampled_from([1, 400, 2000, 1 << 30]), st.sampled_from([2, 3, 64]), st.sampled_from([1, 2, 1024]))
def test_it_is_what_sorted_gives(chunks, budget, fan_in, piece):
    with (
        patch.object(external_sort, "FAN_IN", fan_in),
        patch.object(external_sort, "PIECE_RECORDS", piece),
        patch.object(external_sort, "BLOCK_BYTES", 300),
    ):
        got, held, _ = sorted_by(chunks, budget)
    assert got == expected(held)


@settings(deadline=None)
@given(CHUNKS)
def test_a_key_comes_once(chunks):
    got, _, _ = sorted_by(chunks, 1)
    keys = [key for key, _ in groupby(got, key=lambda record: record[0])]
    assert len(keys) == len(set(keys))


def test_keys_of_one_hash_come_one_after_the_other():
    with patch("penstock.engine.operators.batch.batch_operator.stable_hash", lambda key: 7):
        got, held, spilled = sorted_by([(0, False, [((n % 3, "k"), None) for n in range(20)])] * 5, 1)
        assert spilled and got == expected(held)
    assert [key for key, _ in groupby(got, key=lambda record: record[0])] == [(0, "k"), (1, "k"), (2, "k")]


def test_many_runs_are_merged_in_levels():
    chunks = [(0, True, [(n % 5, -n)]) for n in range(200)]
    with patch.object(external_sort, "FAN_IN", 4):
        got, held, _ = sorted_by(chunks, 1)
    assert got == expected(held)


def test_one_key_streams_in_small_pieces():
    sort = ExternalSort(key_order, 1 << 16)
    for first in range(0, 40_000, 1000):
        sort.add(["k"] * 1000, 0, [f"{n:0100}" for n in range(first, first + 1000)], None)
    sizes = [len(piece.values) for piece in sort.pieces()]
    assert sum(sizes) == 40_000 and max(sizes) <= 1024
    sort.close()


def test_small_inputs_never_touch_the_disk():
    _, _, spilled = sorted_by([(0, False, [(1, None)] * 1000)], 1 << 20)
    assert spilled == 0


def test_files_have_no_names(tmp_path):
    sort = ExternalSort(key_order, 1, str(tmp_path))
    sort.add([1, 2], 0, ["a", "b"], None)
    assert sort.bytes_on_disk and os.listdir(tmp_path) == []
    sort.close()


def test_what_cannot_be_pickled_is_an_error_only_if_it_must_be_spilled():
    held = (n for n in "ab")
    sort = ExternalSort(key_order, 1 << 20)
    sort.add([1], 0, [held], None)
    assert [piece.values for piece in sort.pieces()] == [[held]]
    with pytest.raises(TypeError):
        ExternalSort(key_order, 1).add([1], 0, [held], None)
