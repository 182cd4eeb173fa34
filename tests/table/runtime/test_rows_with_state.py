"""Queries that look at state for every row, in batches of any size, against what all rows so far say."""

from __future__ import annotations

import datetime
import math
import random
from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any

import pytest

from penstock.base import pickling
from penstock.common import Row, RowKind
from penstock.datastream import EmbeddedRocksDBStateBackend
from penstock.engine.state import rocksdb
from penstock.table.builders import Planner
from penstock.table.logical.building import aggregate, over, project, where
from penstock.table.logical.nodes import PROCTIME, ROWTIME, Column, Relation, StreamScan
from penstock.table.logical.rex import AggregateCall, Frame, OverSpec, SortKey
from penstock.table.types.data_types import BigIntType, BooleanType
from penstock.testing import OperatorHarness
from tests.table.runtime.table_programs import DOUBLE, INT, STRING, TS, Options, call, lit, ref

START = datetime.datetime(1970, 1, 1)
COUNT = BigIntType(False)
INPUT = (
    Column("k", STRING),
    Column("v", INT),
    Column("x", DOUBLE),
    Column("b", BooleanType()),
    Column("ts", TS, ROWTIME),
)
CLOCKED = (*INPUT[:-1], Column("ts", TS, PROCTIME))
Rows = list[tuple[Any, ...]]


def driven(
    build: Callable[[Relation], Relation],
    input: tuple[Column, ...] = INPUT,
    changelog: bool = False,
    rocks: bool = False,
    **options: str,
) -> OperatorHarness:
    """A plan over a stream that a test pushes."""

    def program(stream: Any) -> Any:
        env = stream.get_execution_environment()
        if rocks:
            env.set_state_backend(EmbeddedRocksDBStateBackend())
        plan = build(StreamScan(input, stream, "input", changelog=changelog))
        return Planner(env, Options(options), False).rows(plan)

    return OperatorHarness(program)


def at(millis: int) -> datetime.datetime:
    return START + datetime.timedelta(milliseconds=millis)


def random_rows(rng: random.Random, count: int, keys: int, times: range = range(1)) -> Rows:
    names = [None, *map(str, range(keys))]
    return [
        (rng.choice(names), rng.choice([None, *range(-9, 10)]), rng.choice([None, 0.0, -0.0, math.nan, 0.5, 2.25]),
         rng.choice([None, True, False]), at(rng.choice(times)))
        for _ in range(count)
    ]  # fmt: skip


class Table:
    """What the changes of a query add up to; a row that is taken away must be there."""

    def __init__(self) -> None:
        self.rows: Counter[tuple[Any, ...]] = Counter()

    def change(self, changes: Iterable[Row]) -> None:
        for row in changes:
            plain = tuple(map(comparable, row))
            self.rows[plain] += 1 if row.get_row_kind() in {RowKind.INSERT, RowKind.UPDATE_AFTER} else -1
            assert self.rows[plain] >= 0, f"{row} was taken away and is not there"

    def __eq__(self, other: object) -> bool:
        return +self.rows == Counter(other)

    __hash__ = None  # type: ignore[assignment]


def comparable(value: Any) -> Any:
    return "NaN" if isinstance(value, float) and math.isnan(value) else value


def plain(rows: Iterable[tuple[Any, ...]]) -> Rows:
    return [tuple(map(comparable, row)) for row in rows]


# --- Top-N and deduplication ---
def ranks(input: Relation, order: list[SortKey], first: int, last: int, shown: bool) -> Relation:
    rank = AggregateCall("ROW_NUMBER", (), COUNT, "rn")
    numbered = over(input, [OverSpec((0,), tuple(order), Frame(True, None, 0), (rank,))])
    kept = where(numbered, call("<=", ref(numbered, "rn"), lit(last, INT)))
    if first > 1:
        kept = where(kept, call(">=", ref(kept, "rn"), lit(first, INT)))
    names = numbered.names() if shown else input.names()
    return project(kept, [ref(kept, name) for name in names], names)


def expected_ranks(rows: Rows, place: Callable[[tuple[Any, ...]], Any], first: int, last: int, shown: bool) -> Rows:
    by_key: dict[Any, Rows] = {}
    for row in rows:
        by_key.setdefault(row[0], []).append(row)
    found: Rows = []
    for own in by_key.values():
        for rank, row in enumerate(sorted(own, key=place)[first - 1 : last], first):
            found.append((*row, rank) if shown else row)
    return plain(found)


@pytest.mark.parametrize("seed", range(12))
def test_top_n_of_rows_that_stay(seed: int) -> None:
    rng = random.Random(seed)
    (first, last), shown = rng.choice([(1, 1), (1, 3), (2, 4), (3, 3)]), bool(seed % 2)
    order = [SortKey(1, True, False)] if seed % 3 else [SortKey(1, False, True), SortKey(3, True, True)]

    def place(row: tuple[Any, ...]) -> Any:
        if seed % 3:
            return row[1] is None, -(row[1] or 0)
        return (row[1] is not None, row[1] or 0), (row[3] is not None, not row[3])

    so_far: Rows = []
    table = Table()
    with driven(lambda scan: ranks(scan, order, first, last, shown)) as harness:
        for _ in range(6):
            rows = random_rows(rng, rng.choice([1, 40, 70, 150]), rng.choice([2, 30, 400]))
            so_far += rows
            harness.push_all([Row(*row) for row in rows])
            table.change(harness.values())
            assert table == expected_ranks(so_far, place, first, last, shown)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("last", [False, True])
def test_one_row_of_each_key_by_processing_time(seed: int, last: bool) -> None:
    rng = random.Random(seed)
    kept: dict[Any, tuple[Any, ...]] = {}
    table = Table()
    order = [SortKey(4, last, not last)]
    with driven(lambda scan: ranks(scan, order, 1, 1, bool(seed % 2)), CLOCKED) as harness:
        for _ in range(5):
            rows = random_rows(rng, rng.choice([1, 20, 90]), rng.choice([2, 40]))
            for row in rows:
                if last or row[0] not in kept:
                    kept[row[0]] = row
            harness.push_all([Row(*row) for row in rows])
            table.change(harness.values())
            assert table == plain((*row, 1) if seed % 2 else row for row in kept.values())


@pytest.mark.parametrize("seed", range(4))
def test_the_last_row_by_event_time(seed: int) -> None:
    rng = random.Random(seed)
    kept: dict[Any, tuple[Any, ...]] = {}
    table = Table()
    with driven(lambda scan: ranks(scan, [SortKey(4, True, False)], 1, 1, False)) as harness:
        for _ in range(5):
            rows = random_rows(rng, rng.choice([1, 20, 90]), 12, range(20))
            for row in rows:
                if row[0] not in kept or row[4] >= kept[row[0]][4]:
                    kept[row[0]] = row
            harness.push_all([Row(*row) for row in rows])
            table.change(harness.values())
            assert table == plain(kept.values())


@pytest.mark.parametrize("seed", range(4))
def test_the_first_row_by_event_time(seed: int) -> None:
    rng = random.Random(seed)
    waiting: dict[Any, tuple[Any, ...]] = {}
    out: dict[Any, tuple[Any, ...]] = {}
    now = -1
    with driven(lambda scan: ranks(scan, [SortKey(4)], 1, 1, False)) as harness:
        for _ in range(8):
            rows = random_rows(rng, rng.choice([1, 20, 90]), 60, range(max(now - 3, 0), now + 12))
            harness.push_all([Row(*row) for row in rows])
            for row in rows:
                in_time = row[4] >= at(now) and row[0] not in out
                if in_time and (row[0] not in waiting or row[4] < waiting[row[0]][4]):
                    waiting[row[0]] = row
            assert harness.values() == []
            now += rng.randrange(1, 6)
            harness.watermark(now)
            due = {key: row for key, row in waiting.items() if row[4] <= at(now)}
            came = harness.values()
            assert Counter(plain(came)) == Counter(plain(due.values()))
            assert [row[4] for row in came] == sorted(row[4] for row in came)
            out |= due
            waiting = {key: row for key, row in waiting.items() if key not in due}
        assert harness.state_entries() == len(out) + len(waiting) and harness.timers() == 0


# --- groups ---
CALLS = [
    AggregateCall("COUNT", (), COUNT, "n"),
    AggregateCall("SUM", (1,), INT, "s"),
    AggregateCall("AVG", (1,), INT, "a"),
    AggregateCall("MIN", (1,), INT, "lo"),
    AggregateCall("COUNT", (1,), COUNT, "d", distinct=True),
    AggregateCall("COUNT", (2,), COUNT, "e", distinct=True),
    AggregateCall("COUNT", (1,), COUNT, "f", distinct=True, filter=3),
    AggregateCall("SUM", (1,), INT, "g", distinct=True),
    AggregateCall("COUNT", (1, 2), COUNT, "h", distinct=True),
    AggregateCall("COUNT", (4,), COUNT, "i", distinct=True),
]


def expected_groups(rows: Rows) -> Rows:
    groups: dict[Any, Rows] = {}
    for row in rows:
        groups.setdefault(row[0], []).append(row)
    found: Rows = []
    for key, own in groups.items():
        there = [row[1] for row in own if row[1] is not None]
        floats = [comparable(row[2] + 0.0) for row in own if row[2] is not None]
        total = sum(there) if there else None
        both = {(row[1], comparable(row[2] + 0.0)) for row in own if row[1] is not None and row[2] is not None}
        found.append(
            (key, len(own), total, None if total is None else int(total / len(there)),
             min(there, default=None), len(set(there)), len(set(floats)),
             len({row[1] for row in own if row[3]} - {None}),
             sum(set(there)) if there else None, len(both), len({row[4] for row in own}))
        )  # fmt: skip
    return found


@pytest.mark.parametrize("rocks", [False, True])
@pytest.mark.parametrize("seed", range(6))
def test_groups_of_rows_that_stay(seed: int, rocks: bool) -> None:
    rng = random.Random(seed)
    so_far: Rows = []
    table = Table()
    with driven(lambda scan: aggregate(scan, [0], CALLS), rocks=rocks) as harness:
        for _ in range(4):
            rows = random_rows(rng, rng.choice([1, 40, 150]), rng.choice([2, 400]), range(5))
            so_far += rows
            harness.push_all([Row(*row) for row in rows])
            table.change(harness.values())
            assert table == expected_groups(so_far)


@pytest.mark.parametrize("seed", range(6))
def test_groups_of_rows_that_change(seed: int) -> None:
    rng = random.Random(seed)
    left: Rows = []
    table = Table()
    with driven(lambda scan: aggregate(scan, [0], CALLS), changelog=True) as harness:
        for _ in range(6):
            came = random_rows(rng, rng.choice([1, 40, 90]), rng.choice([2, 50]), range(5))
            left += came
            gone = [left.pop(rng.randrange(len(left))) for _ in range(rng.randrange(len(left)))]
            changes = [Row(*row) for row in came] + [Row.of_kind(RowKind.DELETE, *row) for row in gone]
            harness.push_all(changes)
            table.change(harness.values())
            assert table == expected_groups(left)
        harness.push_all([Row.of_kind(RowKind.DELETE, *row) for row in left])
        table.change(harness.values())
        assert table == [] and harness.state_entries() == 0


def test_what_never_came_is_not_remembered() -> None:
    count = [AggregateCall("COUNT", (1,), COUNT, "d", distinct=True)]
    row = ("a", 1, None, None, at(0))
    with driven(lambda scan: aggregate(scan, [0], count), changelog=True) as harness:
        harness.push(Row.of_kind(RowKind.DELETE, *row))
        assert harness.state_entries() == 0
        harness.push(Row(*row))
        assert [tuple(found) for found in harness.values()] == [("a", 1)]


def test_the_work_for_a_value_does_not_grow_with_the_number_of_values(monkeypatch: pytest.MonkeyPatch) -> None:
    written: list[int] = []

    class Counting:
        @staticmethod
        def dumps(value: Any) -> bytes:
            made = pickling.dumps(value)
            written.append(len(made))
            return made

        loads = staticmethod(pickling.loads)

    monkeypatch.setattr(rocksdb, "pickling", Counting)
    count = [AggregateCall("COUNT", (1,), COUNT, "d", distinct=True)]
    work = []
    with driven(lambda scan: aggregate(scan, [], count), rocks=True) as harness:
        for number in range(20):
            written.clear()
            harness.push_all([Row("a", 100 * number + value, None, None, at(0)) for value in range(100)])
            work.append(sum(written))
        assert harness.values()[-1][0] == 2000
        written.clear()
        harness.push_all([Row("a", value, None, None, at(0)) for value in range(100)])
        assert len(written) == 1, "values that are known are not written again"
    assert max(work) < 1.2 * work[0]


# --- OVER ---
def running(input: Relation, frame: Frame) -> Relation:
    calls = [AggregateCall(name, (1,), INT, name) for name in ("SUM", "MIN", "MAX", "FIRST_VALUE", "LAST_VALUE")]
    calls.append(AggregateCall("COUNT", (), COUNT, "n"))
    return over(input, [OverSpec((0,), (SortKey(4),), frame, tuple(calls))])


def expected_running(rows: Rows, frame: Frame) -> Rows:
    """All rows that were in time, of all keys; those of one time in the order in which they came."""
    by_key: dict[Any, Rows] = {}
    for row in sorted(rows, key=lambda row: row[4]):
        by_key.setdefault(row[0], []).append(row)
    found: Rows = []
    for own in by_key.values():
        for index, row in enumerate(own):
            end = index + 1 if frame.rows else sum(other[4] <= row[4] for other in own)
            if frame.start is None:
                start = 0
            elif frame.rows:
                start = max(index + frame.start, 0)
            else:
                start = sum(other[4] < row[4] + datetime.timedelta(milliseconds=frame.start) for other in own)
            inside = own[start:end]
            there = [other[1] for other in inside if other[1] is not None]
            values = (sum(there), min(there), max(there), there[0], there[-1]) if there else (None,) * 5
            found.append((*row, *values, len(inside)))
    return plain(found)


@pytest.mark.parametrize(
    "frame", [Frame(True, None, 0), Frame(False, None, 0), Frame(True, -2, 0), Frame(False, -3, 0)]
)
@pytest.mark.parametrize("seed", range(2))
def test_over_in_event_time(frame: Frame, seed: int) -> None:
    rng = random.Random(seed)
    so_far: Rows = []
    came: Rows = []
    now = 0
    with driven(lambda scan: running(scan, frame)) as harness:
        for _ in range(6):
            rows = random_rows(rng, rng.choice([1, 60]), 4, range(now + 1, now + 20))
            so_far += rows
            harness.push_all([Row(*row) for row in rows])
            now += rng.randrange(10)
            harness.watermark(now)
            found = harness.values()
            assert [row[4] for row in found] == sorted(row[4] for row in found)
            came += plain(map(tuple, found))
            in_time = [row for row in so_far if row[4] <= at(now)]
            assert Counter(came) == Counter(expected_running(in_time, frame))
        harness.watermark(now + 100)
        assert harness.timers() == 0


# --- state that expires ---
TTL = {"table.exec.state.ttl": "1 s"}


def pushed(harness: OperatorHarness, now: int, *rows: tuple[Any, ...]) -> list[tuple[Any, ...]]:
    harness.advance_processing_time(now)
    harness.push_all([Row(*row) for row in rows])
    return [tuple(row) for row in harness.values()]


def test_over_begins_again_when_nobody_touched_a_key() -> None:
    total = (AggregateCall("SUM", (1,), INT, "s"),)

    def build(scan: Relation) -> Relation:
        return over(scan, [OverSpec((0,), (SortKey(4),), Frame(True, None, 0), total)])

    row = ("a", 1, None, None, at(0))
    with driven(build, CLOCKED, **TTL) as harness:
        assert [found[-1] for found in pushed(harness, 0, row, row)] == [1, 2]
        assert [found[-1] for found in pushed(harness, 900, row)] == [3]
        assert [found[-1] for found in pushed(harness, 1800, row)] == [4]
        assert [found[-1] for found in pushed(harness, 2800, row)] == [1]


def test_rows_that_wait_for_the_watermark_do_not_expire() -> None:
    total = (AggregateCall("SUM", (1,), INT, "s"),)

    def build(scan: Relation) -> Relation:
        return over(scan, [OverSpec((0,), (SortKey(4),), Frame(True, None, 0), total)])

    with driven(build, **TTL) as harness:
        assert pushed(harness, 0, ("a", 1, None, None, at(5))) == []
        harness.advance_processing_time(5_000)
        harness.advance_processing_time(9_000)
        harness.watermark(5)
        assert [row[-1] for row in harness.values()] == [1]
        assert pushed(harness, 20_000, ("a", 1, None, None, at(7))) == []
        harness.watermark(7)
        assert [row[-1] for row in harness.values()] == [1], "what had come out was forgotten"


def test_ranks_and_first_rows_begin_again_when_nobody_touched_a_key() -> None:
    best, worse = ("a", 9, None, None, at(0)), ("a", 1, None, None, at(0))
    with driven(lambda scan: ranks(scan, [SortKey(1, True, False)], 1, 1, False), **TTL) as harness:
        assert pushed(harness, 0, best) == [best]
        assert pushed(harness, 900, worse) == [], "it changed nothing, and so does not make the key young again"
        assert pushed(harness, 1_100, worse) == [worse]
    with driven(lambda scan: ranks(scan, [SortKey(4)], 1, 1, False), CLOCKED, **TTL) as harness:
        assert pushed(harness, 0, best) == [best]
        assert pushed(harness, 900, worse) == []
        assert pushed(harness, 1_100, worse) == [worse]


def test_distinct_values_expire_one_by_one() -> None:
    count = [AggregateCall("COUNT", (1,), COUNT, "d", distinct=True)]
    one, two = ("a", 1, None, None, at(0)), ("a", 2, None, None, at(0))
    with driven(lambda scan: aggregate(scan, [0], count), **TTL) as harness:
        assert pushed(harness, 0, one)[-1] == ("a", 1)
        assert pushed(harness, 900, two)[-1] == ("a", 2)
        assert pushed(harness, 1_200, one)[-1] == ("a", 3), "as in Flink: it had been forgotten"
        assert pushed(harness, 1_300, two) == []
