"""Top-N, deduplication, OVER windows, ORDER BY and LIMIT."""

from __future__ import annotations

import random
from typing import Any

import pytest

from penstock.errors import TableException
from penstock.table.logical.building import over, project, sort, where
from penstock.table.logical.nodes import Relation
from penstock.table.logical.rex import AggregateCall, Frame, OverSpec, SortKey
from penstock.table.types.data_types import BigIntType, DoubleType
from tests.table.runtime.table_programs import (
    INT,
    STRING,
    call,
    changes,
    environment,
    final,
    lit,
    ref,
    run,
    values,
)
from tests.table.runtime.test_windows import events, result, seconds, sums, windows

RANK = BigIntType(False)


def top(input: Relation, partition: list[str], order: list[SortKey], most: int, keep_rank: bool) -> Relation:
    rank = AggregateCall("ROW_NUMBER", (), RANK, "rn")
    spec = OverSpec(tuple(input.names().index(name) for name in partition), tuple(order), Frame(True, None, 0), (rank,))
    numbered = over(input, [spec])
    kept = where(numbered, call("<=", ref(numbered, "rn"), lit(most, INT)))
    names = numbered.names() if keep_rank else input.names()
    return project(kept, [ref(kept, name) for name in names], names)


@pytest.mark.parametrize("seed", range(6))
def test_top_n_of_rows_that_change(seed: int) -> None:
    rng = random.Random(seed)
    left: list[Any] = []
    log: list[Any] = []
    for number in range(50):
        if left and seed % 2 and rng.random() < 0.4:
            row = left.pop(rng.randrange(len(left)))
            log.append(("-D", *row))
        else:
            row = (rng.choice("ab"), rng.choice([None, 1, 2, 3]), number)
            left.append(row)
            log.append(("+I", *row))
    env = environment(rng.choice([1, 2]))
    table = changes(env, log, k=STRING, v=INT, id=INT)
    plan = top(table, ["k"], [SortKey(1, True, False), SortKey(2)], 2, keep_rank=bool(seed % 3))
    expected = []
    for key in "ab":
        rows = sorted((row for row in left if row[0] == key), key=lambda row: (row[1] is None, -(row[1] or 0), row[2]))
        expected += [(*row, rank + 1) if seed % 3 else row for rank, row in enumerate(rows[:2])]
    assert final(run(plan, env, epoch_records=rng.choice([1, 5, None]))) == sorted(expected, key=repr)


def test_ranks_that_shift_are_updates() -> None:
    table = values([(1, 1.5), (2, 7.25), (3, 4.0)], id=INT, price=DoubleType())
    plan = top(table, [], [SortKey(1, True, False), SortKey(0)], 3, keep_rank=True)
    assert run(plan, epoch_records=1) == [
        ("+I", 1, 1.5, 1), ("-U", 1, 1.5, 1), ("+U", 2, 7.25, 1), ("+I", 1, 1.5, 2),
        ("-U", 1, 1.5, 2), ("+U", 3, 4.0, 2), ("+I", 1, 1.5, 3),
    ]  # fmt: skip


def test_the_first_row_by_event_time_waits_for_the_watermark() -> None:
    rows = [(6, "a", 1), (4, "a", 2), (7, "b", 3), (20, "b", 4), (5, "c", 5), (18, "c", 6), (17, "c", 7)]
    plan = top(events(rows, 3, k=STRING, v=INT), ["k"], [SortKey(0)], 1, keep_rank=False)
    assert [(row[1], row[2]) for row in result(plan)] == [("a", 2), ("b", 3), ("c", 7)]


def test_the_last_row_takes_late_rows_that_are_not_older() -> None:
    rows = [(6, "a", 1), (4, "a", 2), (6, "a", 3), (20, "b", 4), (5, "c", 5), (7, "a", 6), (2, "c", 7)]
    plan = top(events(rows, 0, k=STRING, v=INT), ["k"], [SortKey(0, True, False)], 1, keep_rank=False)
    log = run(plan, **{"pipeline.auto-watermark-interval": "0 ms"})
    assert [(row[0], row[2], row[3]) for row in log][:4] == [
        ("+I", "a", 1), ("-U", "a", 1), ("+U", "a", 3), ("+I", "b", 4),
    ]  # fmt: skip
    assert sorted((row[1], row[2]) for row in final(log)) == [("a", 6), ("b", 4), ("c", 5)]


def test_window_top_n_comes_when_the_window_ends() -> None:
    rows = [(1, "a", 1), (2, "b", 2), (3, "a", 3), (11, "a", 4), (25, "b", 9)]
    totals = sums(windows(events(rows, k=STRING, v=INT), "TUMBLE", 10), "k")
    plan = top(totals, ["window_start", "window_end"], [SortKey(3, True, False)], 1, keep_rank=True)
    log = run(plan, **{"pipeline.auto-watermark-interval": "0 ms"})
    assert {row[0] for row in log} == {"+I"}
    assert seconds(log) == [(0, 10, "a", 4, 1), (10, 20, "a", 4, 1), (20, 30, "b", 9, 1)]


BEHIND = [(1, "a", 1), (5, "a", 2), (3, "a", 4), (9, "b", 8), (4, "b", 16), (6, "a", 32), (12, "a", 64), (11, "b", 128)]


def summed(input: Relation, frame: Frame, *functions: str) -> Relation:
    names = input.names()
    calls = tuple(AggregateCall(name, (names.index("v"),), INT, name.lower()) for name in functions or ("SUM",))
    partition = (names.index("k"),) if "k" in names else ()
    return over(input, [OverSpec(partition, (SortKey(0),), frame, calls)])


def test_over_unbounded_drops_what_is_behind_the_watermark() -> None:
    found = result(summed(events(BEHIND, 1, k=STRING, v=INT), Frame(True, None, 0)))
    assert sorted((row[0], row[1], row[2], row[-1]) for row in found) == [
        (1, "a", 1, 1), (5, "a", 2, 3), (9, "b", 8, 8), (12, "a", 64, 67),
    ]  # fmt: skip


def test_over_bounded_drops_only_what_is_behind_its_output() -> None:
    found = result(summed(events(BEHIND, 1, k=STRING, v=INT), Frame(True, -1, 0)))
    assert sorted((row[1], row[0], row[-1]) for row in found) == [
        ("a", 1, 1), ("a", 3, 5), ("a", 5, 6), ("a", 6, 34), ("a", 12, 96),
        ("b", 4, 16), ("b", 9, 24), ("b", 11, 136),
    ]  # fmt: skip


def test_over_range_gives_peers_one_value() -> None:
    table = events([(1, 1), (1, 2), (2, 4), (2, 8), (5, 16)], 1, v=INT)
    found = result(summed(table, Frame(False, None, 0), "SUM", "MIN", "LAG"))
    assert [(row[1], *row[-3:-1]) for row in found] == [(1, 3, 1), (2, 3, 1), (4, 15, 1), (8, 15, 1), (16, 31, 1)]


def test_over_in_batch_mode_has_any_frame() -> None:
    table = values([(n, n % 2, n * n) for n in range(6)], id=INT, k=INT, v=INT)
    ranks = tuple(AggregateCall(name, (), RANK, name) for name in ("ROW_NUMBER", "RANK", "DENSE_RANK"))
    around = OverSpec((1,), (SortKey(0),), Frame(True, -1, 1), (AggregateCall("SUM", (2,), INT, "s"),))
    by_key = OverSpec((), (SortKey(1, True, False),), Frame(), ranks)
    lead = OverSpec((1,), (SortKey(0),), Frame(), (AggregateCall("LEAD", (0,), INT, "l"),))
    found = final(run(over(table, [around, by_key, lead]), batch=True))
    assert found == [
        (0, 0, 0, 4, 4, 4, 2, 2), (1, 1, 1, 10, 1, 1, 1, 3), (2, 0, 4, 20, 5, 4, 2, 4),
        (3, 1, 9, 35, 2, 1, 1, 5), (4, 0, 16, 20, 6, 4, 2, None), (5, 1, 25, 34, 3, 1, 1, None),
    ]  # fmt: skip


def test_order_by_event_time_sorts_a_stream() -> None:
    table = events([(10, 1), (3, 2), (11, 3), (9, 4), (30, 5), (10, 6), (29, 7)], 1, v=INT)
    assert [row[:2] for row in result(sort(table, [SortKey(0)]))] == [(3, 2), (10, 1), (11, 3), (29, 7), (30, 5)]


def test_any_other_order_of_a_stream_needs_a_limit() -> None:
    table = values([(3,), (1,), (2,)], v=INT)
    with pytest.raises(TableException, match="non-time-attribute"):
        run(sort(table, [SortKey(0)]))
    assert final(run(sort(table, [SortKey(0)], limit=2), epoch_records=1)) == [(1,), (2,)]
    assert run(sort(table, [], limit=2), epoch_records=1) == [("+I", 3), ("+I", 1)]


def test_batch_mode_sorts_with_nulls_where_they_belong() -> None:
    table = values([(2, "b"), (None, "a"), (1, None), (2, "a")], v=INT, s=STRING)
    found = run(sort(table, [SortKey(0, True, True), SortKey(1, False, False)], 1, 2), batch=True)
    assert found == [("+I", 2, "a"), ("+I", 2, "b")]
