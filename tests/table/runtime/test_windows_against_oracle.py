"""Windows over random rows, some of them late, against plain Python: every kind, cut into epochs in any way."""

from __future__ import annotations

import datetime
import random
from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from penstock.common import Row
from penstock.table.logical.building import aggregate, join
from penstock.table.logical.nodes import (
    PROCTIME,
    ROWTIME,
    Column,
    GroupWindow,
    Project,
    Relation,
    Values,
    Watermark,
    WindowTable,
)
from penstock.table.logical.rex import AggregateCall, InputRef, Literal, conjunction
from penstock.table.operators.base import chunks
from penstock.table.operators.window import slice_aggregate
from penstock.table.operators.window.slices import Slicing
from penstock.table.operators.window.window_assignment import WindowSpec
from penstock.table.types.data_types import BigIntType, LocalZonedTimestampType, TimestampType
from tests.table.runtime.table_programs import INT, STRING, call, environment, ref, run, values
from tests.table.runtime.test_state_of_queries import driven
from tests.table.runtime.test_windows import START, events, windows

BOUND = TimestampType(3, False)
COUNT = BigIntType(False)
CALLS = (
    AggregateCall("COUNT", (), COUNT, "n"),
    AggregateCall("SUM", (2,), INT, "s"),
    AggregateCall("AVG", (2,), INT, "a"),
    AggregateCall("MIN", (2,), INT, "l"),
    AggregateCall("MAX", (1,), STRING, "m"),
)
Rows = list[tuple[Any, ...]]
Window = tuple[int, int]


def random_rows(rng: random.Random, count: int = 60) -> Rows:
    """(time in seconds, key, value): time goes on, with rows that are behind, now and then very much."""
    rows, time = [], 0.0
    for _ in range(count):
        time += rng.choice([0, 0, 0.5, 1, 4, 17])
        behind = rng.choice([0, 0, 0, 1, 3, 12, 40])
        rows.append((max(time - behind, 0), rng.choice(["a", "b", None]), rng.choice([None, 1, 5, -9, 2**31 - 1])))
    return rows


def steps(rows: Rows, cut: int | None) -> list[Rows]:
    """Rows between which event time goes on."""
    size = cut or 1
    return [rows[first : first + size] for first in range(0, len(rows), size)]


def summary(key: Any, values: list[int | None]) -> tuple[Any, ...]:
    there = [value for value in values if value is not None]
    if not there:
        return (len(values), None, None, None, key)
    total = sum(there)
    quotient = abs(total) // len(there) * (1 if total >= 0 else -1)
    return (len(values), (total + 2**31) % 2**32 - 2**31, quotient, min(there), key)


def by_windows(
    rows: Rows, cut: int | None, delay: int, spec: WindowSpec, told: Callable[..., tuple[Any, ...]] = summary
) -> Counter[tuple[Any, ...]]:
    panes: dict[Any, list[int | None]] = {}
    reached = float("-inf")
    for step in steps(rows, cut):
        for time, key, value in step:
            millis = np.array([int(time * 1000)])
            for start, end in [(int(s[0]), int(e[0])) for s, e in spec.bounds(millis)]:
                if end > millis[0] >= start and end - 1 > reached:
                    panes.setdefault((start, end, key), []).append(value)
        reached = max(reached, *((time - delay) * 1000 for time, _, _ in step))
    return Counter((start, end, *told(key, values)) for (start, end, key), values in panes.items())


def by_sessions(rows: Rows, cut: int | None, delay: int, gap: int) -> Counter[tuple[Any, ...]]:
    done: list[tuple[Any, ...]] = []
    sessions: dict[Any, list[Any]] = {}
    reached = float("-inf")
    for step in steps(rows, cut):
        for time, key, value in step:
            start, end = int(time * 1000), int(time * 1000) + gap
            own = sessions.setdefault(key, [])
            touched = [one for one in own if one[0] <= end and start <= one[1]]
            start, end = min([start, *(one[0] for one in touched)]), max([end, *(one[1] for one in touched)])
            if end - 1 <= reached:
                continue
            values = [value for one in touched for value in one[2]] + [value]
            sessions[key] = [one for one in own if one not in touched] + [(start, end, values)]
        reached = max(reached, *((time - delay) * 1000 for time, _, _ in step))
        for key, own in sessions.items():
            done += [(one[0], one[1], *summary(key, one[2])) for one in own if one[1] - 1 <= reached]
            sessions[key] = [one for one in own if one[1] - 1 > reached]
    done += [(start, end, *summary(key, values)) for key, own in sessions.items() for start, end, values in own]
    return Counter(done)


def found(plan: Relation, cut: int | None, parallelism: int = 1, **options: str) -> Counter[tuple[Any, ...]]:
    """The rows of a plan, which begin with start and end, in milliseconds after START."""
    exact = {"pipeline.auto-watermark-interval": "0 ms"} if cut is None else {}
    log = run(plan, environment(parallelism), epoch_records=cut or 7, **exact, **options)
    assert {row[0] for row in log} <= {"+I"}
    unit = datetime.timedelta(milliseconds=1)
    return Counter(((row[1] - START) // unit, (row[2] - START) // unit, *row[3:]) for row in log)


def aggregated(table: Relation) -> Relation:
    """Start and end, then the calls, and the key at the end."""
    names = table.names()
    positions = [names.index(name) for name in ("window_start", "window_end", "k")]
    made = aggregate(table, positions, list(CALLS))
    order = (0, 1, 3, 4, 5, 6, 7, 2)
    return Project(tuple(made.columns[i] for i in order), made, tuple(made.ref(i) for i in order))


def expected_max(counted: Counter[tuple[Any, ...]]) -> Counter[tuple[Any, ...]]:
    """MAX of the key within its own group is the key: the oracle has it once, and the query as call and as key."""
    return Counter({(*row, row[-1]): count for row, count in counted.items()})


@pytest.mark.parametrize("seed", range(18))
def test_aggregates_are_those_of_plain_python(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = random.Random(seed)
    if rng.random() < 0.5:
        monkeypatch.setattr(slice_aggregate, "MOST_ROWS", 3)
        monkeypatch.setattr(chunks, "MOST_CHUNKS", 2)
        monkeypatch.setattr(chunks, "LEAST_ROWS", 4)
    rows, delay, cut = random_rows(rng), rng.choice([0, 2, 10]), rng.choice([None, 1, 3, 20])
    kind = ["TUMBLE", "HOP", "CUMULATE"][seed % 3]
    slide = rng.choice([2, 5, 10])
    size = slide * rng.choice([1, 2, 5])
    offset = rng.choice([0, 1500, -700])
    spec = WindowSpec(kind, size * 1000, slide * 1000, offset)
    table = windows(events(rows, delay, k=STRING, v=INT), kind, size, slide)
    table = WindowTable(table.columns, table.input, kind, 0, size * 1000, slide * 1000, offset)
    expected = expected_max(by_windows(rows, cut, delay, spec))
    assert found(aggregated(table), cut) == expected
    if cut is None and seed % 2:
        late = by_windows(sorted(rows, key=lambda row: row[0]), cut, delay, spec)
        in_order = windows(events(sorted(rows, key=lambda row: row[0]), delay, k=STRING, v=INT), kind, size, slide)
        in_order = WindowTable(in_order.columns, in_order.input, kind, 0, size * 1000, slide * 1000, offset)
        assert found(aggregated(in_order), cut, parallelism=3) == expected_max(late)


DISTINCT = (
    AggregateCall("COUNT", (2,), COUNT, "d", distinct=True),
    AggregateCall("COUNT", (), COUNT, "n"),
    AggregateCall("SUM", (2,), BigIntType(), "s", distinct=True),
)


def distinct(key: Any, values: list[int | None]) -> tuple[Any, ...]:
    there = {value for value in values if value is not None}
    return key, len(there), len(values), sum(there) if there else None


@pytest.mark.parametrize("seed", range(12))
def test_different_values_are_those_of_plain_python(seed: int) -> None:
    """A row is folded into its slice alone, also if that is late for some of its windows."""
    rng = random.Random(seed)
    rows, delay, cut = random_rows(rng), rng.choice([0, 2, 10]), rng.choice([None, 1, 3, 20])
    rows = [(time, key, None if value is None else value % 100) for time, key, value in rows]
    kind, slide = ["HOP", "CUMULATE"][seed % 2], rng.choice([2, 5, 10])
    size, offset = slide * rng.choice([2, 3, 5]), rng.choice([0, 1500, -700])
    table = windows(events(rows, delay, k=STRING, v=BigIntType()), kind, size, slide)
    table = WindowTable(table.columns, table.input, kind, 0, size * 1000, slide * 1000, offset)
    names = table.names()
    plan = aggregate(table, [names.index(name) for name in ("window_start", "window_end", "k")], list(DISTINCT))
    spec = WindowSpec(kind, size * 1000, slide * 1000, offset)
    assert found(plan, cut) == by_windows(rows, cut, delay, spec, distinct)


def test_different_values_are_kept_once_for_all_windows() -> None:
    """An hour of windows that begin every minute: a row is in sixty of them, and in one entry of state."""

    def plan(scan: Relation) -> Relation:
        bounds = (Column("window_start", BOUND), Column("window_end", BOUND), Column("window_time", BOUND, ROWTIME))
        timed = Project(
            (Column("ts", TimestampType(3), ROWTIME), *scan.columns),
            scan,
            (Literal(TimestampType(3), START), scan.ref(0), scan.ref(1)),
        )
        marked = Watermark(timed.columns, timed, 0, timed.ref(0))
        table = WindowTable(marked.columns + bounds, marked, "HOP", 0, 3_600_000, 60_000)
        call = AggregateCall("COUNT", (2,), COUNT, "d", distinct=True)
        return aggregate(table, [3, 4, 1], [call])

    with driven(plan, changelog=False) as harness:
        harness.push_all([Row("a", 1), Row("a", 2), Row("a", 1)])
        assert harness.state_entries() == 1
        harness.end()
        assert Counter(row[3] for row in harness.values()) == {2: 60}
        assert harness.state_entries() == 0


@pytest.mark.parametrize("seed", range(12))
def test_sessions_are_those_of_plain_python(seed: int) -> None:
    rng = random.Random(seed)
    rows, delay, cut = random_rows(rng), rng.choice([0, 2, 10]), rng.choice([None, 1, 3, 20])
    gap = rng.choice([1, 3, 8])
    table = windows(events(rows, delay, k=STRING, v=INT), "SESSION", gap, partition=(1,))
    assert found(aggregated(table), cut) == expected_max(by_sessions(rows, cut, delay, gap * 1000))


@pytest.mark.parametrize("kind", ["TUMBLE", "HOP", "CUMULATE", "SESSION"])
def test_windows_of_a_zone_end_when_its_clock_shows_their_end(kind: str) -> None:
    rows, zone, size, slide = random_rows(random.Random(kind)), 8 * 3_600_000, 10, 5
    table = events(rows, 2, k=STRING, v=INT)
    moment = LocalZonedTimestampType(3)
    utc = datetime.UTC
    zoned = [(ts.replace(tzinfo=utc), k, v, mark.replace(tzinfo=utc)) for ts, k, v, mark in table_rows(table)]
    scan = values(zoned, ts=moment, k=STRING, v=INT, mark=moment)
    marked = Watermark((Column("ts", moment, ROWTIME), *scan.columns[1:]), scan, 0, ref(scan, "mark"))
    partition = (1,) if kind == "SESSION" else ()
    bounds = (Column("window_start", BOUND), Column("window_end", BOUND), Column("window_time", moment, ROWTIME))
    gap = size // 2 if kind == "SESSION" else size
    plan = WindowTable(marked.columns + bounds, marked, kind, 0, gap * 1000, slide * 1000, 0, partition)
    if kind == "SESSION":
        expected = by_sessions(rows, 5, 2, gap * 1000)
    else:
        expected = by_windows(rows, 5, 2, WindowSpec(kind, size * 1000, slide * 1000))
    in_zone = Counter({(start + zone, end + zone, *rest): n for (start, end, *rest), n in expected.items()})
    shown = found(aggregated(plan), 5, **{"table.local-time-zone": "Asia/Shanghai"})
    assert shown == expected_max(in_zone)


def table_rows(table: Watermark) -> Rows:
    assert isinstance(table.input, Values)
    return list(table.input.rows)


@pytest.mark.parametrize(("size", "slide"), [(10, 4), (7, 3), (3, 10), (9, 9), (25, 10)])
def test_group_windows_may_hop_as_they_like(size: int, slide: int) -> None:
    rng = random.Random(size)
    rows, delay = random_rows(rng), 3
    input = events(rows, delay, k=STRING, v=INT)
    columns = (
        Column("window_start", BOUND), Column("window_end", BOUND), Column("k", STRING),
        *(Column(one.name, one.type) for one in CALLS),
    )  # fmt: skip
    own = (*columns[2:], *columns[:2])
    plan = GroupWindow(own, input, "HOP", 0, size * 1000, slide * 1000, (1,), CALLS, ("start", "end"))
    order = (6, 7, 1, 2, 3, 4, 5, 0)
    moved = Project(tuple(own[i] for i in order), plan, tuple(plan.ref(i) for i in order))
    spec = WindowSpec("HOP", size * 1000, slide * 1000)
    assert found(moved, 5) == expected_max(by_windows(rows, 5, delay, spec))


@pytest.mark.parametrize("kind", ["TUMBLE", "HOP", "CUMULATE"])
def test_windows_of_slices_are_the_windows_of_times(kind: str) -> None:
    rng = random.Random(kind)
    times = np.array([rng.randrange(-500, 2000) for _ in range(200)])
    for _ in range(20):
        size, slide, offset = rng.randrange(1, 90), rng.randrange(1, 40), rng.randrange(-50, 50)
        spec, slicing = WindowSpec(kind, size, slide, offset), Slicing(kind, size, slide, offset)
        ends = slicing.slice_ends(times)
        windows_of, there = slicing.window_ends(ends)
        for index, time in enumerate(times):
            bounds = {(int(s[index]), int(e[index])) for s, e in spec.bounds(times)}
            sliced = windows_of[index][there[index]]
            expected = {(start, end) for start, end in bounds if start <= time < end}
            assert set(zip(slicing.starts(sliced).tolist(), sliced.tolist(), strict=True)) == expected
            assert time < ends[index]


# --- joins of windows ---
@pytest.mark.parametrize("kind", ["INNER", "LEFT", "RIGHT", "FULL", "SEMI", "ANTI"])
def test_window_joins_are_those_of_plain_python(kind: str) -> None:
    rng = random.Random(kind)
    sides = [sorted(random_rows(rng, 40), key=lambda row: row[0]) for _ in range(2)]
    one, two = (windows(events(rows, 0, k=STRING, v=INT), "HOP", 20, 10) for rows in sides)
    width = len(one.columns)
    names = one.names()
    equal = [
        call("=", one.ref(position), InputRef(one.columns[position].type, width + position))
        for position in map(names.index, ("k", "window_start", "window_end"))
    ]
    less = call("<=", ref(one, "v"), InputRef(INT, width + names.index("v")))
    log = run(join(one, two, kind, conjunction([*equal, less])), epoch_records=7)
    assert Counter(row[1:] for row in log) == joined(kind, [placed(rows) for rows in sides])


def placed(rows: Rows) -> Rows:
    """Rows as they are in HOP(10, 20): once for each window."""
    second = datetime.timedelta(seconds=1)
    made = []
    for time, key, value in rows:
        for start in (time // 10 * 10 - 10, time // 10 * 10):
            at, begin = START + time * second, START + start * second
            end = begin + 20 * second
            made.append((at, key, value, at, begin, end, end - datetime.timedelta(milliseconds=1)))
    return made


def joined(kind: str, sides: list[Rows]) -> Counter[tuple[Any, ...]]:
    def match(a: tuple[Any, ...], b: tuple[Any, ...]) -> bool:
        whole = None not in (a[1], a[2], b[2])
        return whole and a[1] == b[1] and a[4:6] == b[4:6] and a[2] <= b[2]

    left, right = sides
    if kind in {"SEMI", "ANTI"}:
        return Counter(a for a in left if any(match(a, b) for b in right) is (kind == "SEMI"))
    made = [a + b for a in left for b in right if match(a, b)]
    if kind in {"LEFT", "FULL"}:
        made += [a + (None,) * 7 for a in left if not any(match(a, b) for b in right)]
    if kind in {"RIGHT", "FULL"}:
        made += [(None,) * 7 + b for b in right if not any(match(a, b) for a in left)]
    return Counter(made)


# --- processing time ---
def in_processing_time(kind: str, size: int, slide: int = 0) -> Any:
    def build(scan: Relation) -> Relation:
        moment = LocalZonedTimestampType(3, False)
        timed = Project(
            (*scan.columns, Column("p", moment, PROCTIME)), scan, (scan.ref(0), scan.ref(1), call("PROCTIME"))
        )
        bounds = (Column("window_start", BOUND), Column("window_end", BOUND), Column("window_time", moment, PROCTIME))
        partition = (0,) if kind == "SESSION" else ()
        table = WindowTable(timed.columns + bounds, timed, kind, 2, size, slide, 0, partition)
        return aggregate(table, [0, 3, 4], [AggregateCall("SUM", (1,), INT, "s")])

    return driven(build)


def millis(harness: Any) -> list[tuple[Any, ...]]:
    zero, unit = datetime.datetime(1970, 1, 1), datetime.timedelta(milliseconds=1)
    return sorted((row[0], (row[1] - zero) // unit, (row[2] - zero) // unit, row[3]) for row in harness.values())


def test_hopping_windows_of_processing_time_come_when_they_are_over() -> None:
    with in_processing_time("HOP", 20, 10) as harness:
        harness.advance_processing_time(3)
        harness.push_all([Row("a", 1), Row("b", 2)])
        harness.advance_processing_time(12)
        assert millis(harness) == [("a", -10, 10, 1), ("b", -10, 10, 2)]
        harness.push(Row("a", 4))
        harness.advance_processing_time(60)
        assert millis(harness) == [("a", 0, 20, 5), ("a", 10, 30, 4), ("b", 0, 20, 2)]
        harness.push(Row("a", 8))
        harness.advance_processing_time(90)
        assert millis(harness) == [("a", 50, 70, 8), ("a", 60, 80, 8)]


def test_sessions_of_processing_time_come_when_nothing_came_for_a_while() -> None:
    with in_processing_time("SESSION", 10) as harness:
        harness.advance_processing_time(5)
        harness.push_all([Row("a", 1), Row("b", 2), Row("a", 4)])
        harness.advance_processing_time(13)
        harness.push(Row("a", 8))
        harness.advance_processing_time(14)
        assert millis(harness) == []
        harness.advance_processing_time(15)
        assert millis(harness) == [("b", 5, 15, 2)]
        harness.advance_processing_time(23)
        assert millis(harness) == [("a", 5, 23, 13)]
        assert harness.state_entries() == 0
