"""Queries through crashes and rescales: what is committed adds up to what the rows say, whatever dies in between."""

from __future__ import annotations

import datetime
import logging
import random
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest

from penstock.common import Row
from penstock.datastream import StreamExecutionEnvironment
from penstock.errors import StateNotRestored
from penstock.table.builders import Planner
from penstock.table.logical.building import aggregate, join, over, where
from penstock.table.logical.nodes import ROWTIME, Column, Relation, StreamScan, Watermark, WindowTable
from penstock.table.logical.rex import AggregateCall, Call, Frame, InputRef, Literal, OverSpec, SortKey, conjunction
from penstock.table.types.data_types import BigIntType, BooleanType, DayTimeIntervalType, IntType, TimestampType
from penstock.testing.crashes import Outcome, StoreSink, simulate
from tests.recovery.conftest import Stage
from tests.table.runtime.table_programs import INT, STRING, TS, Options, call, columns

SEEDS = 8
COUNT = BigIntType(False)
START = datetime.datetime(2024, 3, 1)


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    logging.disable(logging.WARNING)
    yield
    logging.disable(logging.NOTSET)


def from_path(path: str) -> dict[str, Any]:
    return {"execution_state__recovery_path": path}


def rows(seed: int, count: int = 70) -> list[tuple[Any, ...]]:
    """(time, key, value, watermark), in order of time."""
    rng = random.Random(seed)
    return [
        (at(number), rng.choice(["a", "b", "c", None]), rng.randrange(6), at(number - 2)) for number in range(count)
    ]


def at(seconds: float) -> datetime.datetime:
    return START + datetime.timedelta(seconds=seconds)


def events(env: StreamExecutionEnvironment, name: str, seed: int) -> Relation:
    stream = env.from_collection([Row(*row) for row in rows(seed)])
    stream.uid(name)
    scan = StreamScan(columns(ts=TS, k=STRING, v=INT, mark=TS), stream, name)
    return Watermark((Column("ts", TS, ROWTIME), *scan.columns[1:]), scan, 0, InputRef(TS, 3))


def total(position: int) -> AggregateCall:
    return AggregateCall("SUM", (position,), INT, "s")


def queries(env: StreamExecutionEnvironment) -> dict[str, Relation]:
    one, two = events(env, "one", 1), events(env, "two", 2)
    by_key = aggregate(one, [1], [AggregateCall("COUNT", (), COUNT, "n"), AggregateCall("MAX", (2,), INT, "m")])
    of_counts = aggregate(by_key, [2], [AggregateCall("COUNT", (), COUNT, "n"), AggregateCall("MIN", (1,), COUNT, "l")])
    bound = TimestampType(3, False)
    bounds = (Column("window_start", bound), Column("window_end", bound), Column("window_time", bound, ROWTIME))
    windows = WindowTable(one.columns + bounds, one, "HOP", 0, 20_000, 10_000)
    width = len(one.columns)
    keys = call("=", InputRef(STRING, 1), InputRef(STRING, width + 1))
    same = call("=", InputRef(INT, 2), InputRef(INT, width + 2))
    span = DayTimeIntervalType(nullable=False)
    near = [
        Call(BooleanType(), operator, (InputRef(TS, width), Call(TS, sign, (InputRef(TS, 0), Literal(span, 3000)))))
        for operator, sign in ((">=", "-"), ("<=", "+"))
    ]
    rank = AggregateCall("ROW_NUMBER", (), COUNT, "rn")
    ranked = over(two, [OverSpec((1,), (SortKey(2, True, False), SortKey(0)), Frame(True, None, 0), (rank,))])
    distinct = [AggregateCall(name, (2,), COUNT, name, distinct=True) for name in ("COUNT", "SUM")]
    return {
        "distinct": aggregate(one, [1], distinct),
        "first": _one_each(one, SortKey(0)),
        "counts of counts": of_counts,
        "windows": aggregate(windows, [1, 4, 5], [total(2)]),
        "join": join(one, two, "FULL", conjunction([keys, same])),
        "growing": join(one, two, "INNER", keys),
        "interval": join(one, two, "LEFT", conjunction([keys, *near])),
        "top": where(ranked, call("<=", ranked.ref(4), Literal(IntType(False), 2))),
        "over": over(one, [OverSpec((1,), (SortKey(0),), Frame(True, -3, 0), (total(2),))]),
    }


def _one_each(input: Relation, order: SortKey, keys: tuple[int, ...] = (1, 2)) -> Relation:
    """The first row of each (key, value), or of other keys."""
    rank = AggregateCall("ROW_NUMBER", (), COUNT, "rn")
    ranked = over(input, [OverSpec(keys, (order,), Frame(True, None, 0), (rank,))])
    return where(ranked, call("=", ranked.ref(4), Literal(IntType(False), 1)))


class Build:
    """Defines the program; each driver may find another parallelism."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)

    def __call__(self, env: StreamExecutionEnvironment) -> None:
        env.set_parallelism(self._random.choice([1, 2, 3])).set_max_parallelism(64)
        planner = Planner(env, Options(), False)
        for name, plan in queries(env).items():
            stream = planner.rows(plan)
            plain = stream.map(lambda row: (str(row.get_row_kind()), *row)).uid(f"plain {name}")
            plain.sink_to(StoreSink(name)).uid(f"sink {name}")


def left(outcome: Outcome, name: str) -> Counter[tuple[Any, ...]]:
    """What is left when all changes are added up."""
    found: Counter[tuple[Any, ...]] = Counter()
    for kind, *row in outcome.store.visible(name):
        found[tuple(row)] += 1 if kind[0] == "+" else -1
    return Counter({row: count for row, count in found.items() if count})


def oracle() -> dict[str, Counter[tuple[Any, ...]]]:
    one, two = rows(1), rows(2)
    groups: dict[Any, list[int]] = {}
    panes: dict[Any, list[int]] = {}
    for time, key, value, _ in one:
        groups.setdefault(key, []).append(value)
        first = time - datetime.timedelta(seconds=time.second % 10)
        for start in (first - datetime.timedelta(seconds=10), first):
            panes.setdefault((key, start, start + datetime.timedelta(seconds=20)), []).append(value)
    of_max: dict[int, list[int]] = {}
    for values in groups.values():
        of_max.setdefault(max(values), []).append(len(values))
    joined = [a + b for a in one for b in two if _equal(a, b)]
    joined += [(*a, None, None, None, None) for a in one if not any(_equal(a, b) for b in two)]
    joined += [(None, None, None, None, *b) for b in two if not any(_equal(a, b) for a in one)]
    growing = [a + b for a in one for b in two if a[1] == b[1] is not None]
    near = [a + b for a in one for b in two if _near(a, b)]
    near += [(*a, None, None, None, None) for a in one if not any(_near(a, b) for b in two)]
    top: list[tuple[Any, ...]] = []
    over_rows: list[tuple[Any, ...]] = []
    for key in ("a", "b", "c", None):
        own = sorted((row for row in two if row[1] == key), key=lambda row: (-row[2], row[0]))
        top += [(*row, number + 1) for number, row in enumerate(own[:2])]
        mine = [row for row in one if row[1] == key]
        over_rows += [(*row, sum(r[2] for r in mine[max(i - 3, 0) : i + 1])) for i, row in enumerate(mine)]
    firsts = {row[1:3]: (*row, 1) for row in reversed(one)}
    return {
        "distinct": Counter((key, len(set(values)), sum(set(values))) for key, values in groups.items()),
        "first": Counter(firsts.values()),
        "counts of counts": Counter((most, len(counts), min(counts)) for most, counts in of_max.items()),
        "windows": Counter((*pane, sum(values)) for pane, values in panes.items()),
        "join": Counter(joined),
        "growing": Counter(growing),
        "interval": Counter(near),
        "top": Counter(top),
        "over": Counter(over_rows),
    }


def _equal(a: tuple[Any, ...], b: tuple[Any, ...]) -> bool:
    return a[1] is not None and a[1:3] == b[1:3]


def _near(one: tuple[Any, ...], two: tuple[Any, ...]) -> bool:
    return one[1] == two[1] is not None and abs((two[0] - one[0]).total_seconds()) <= 3


def test_queries_are_exact_through_crashes_and_rescales(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("penstock.table.operators.join.append_join.PAGE_ROWS", 4)
    monkeypatch.setattr("penstock.table.operators.join.join_state.MOST_TOGETHER", 2)
    expected = oracle()
    whole = simulate(Build(0), seed=0)
    for name, counted in expected.items():
        assert left(whole, name) == counted, name
    crashes = drivers = 0
    for seed in range(1, SEEDS + 1):
        outcome = simulate(Build(seed), seed, steps=whole.steps)
        crashes += len(outcome.crashes)
        drivers += outcome.drivers
        for name, counted in expected.items():
            assert left(outcome, name) == counted, f"seed {seed}, {name}, {outcome.crashes}"
    assert crashes > SEEDS / 2 and drivers > SEEDS


def of_numbers(function: str) -> Any:
    """A program that groups rows, with a function of its own."""

    def build(env: StreamExecutionEnvironment) -> None:
        env.set_max_parallelism(64)
        plan = aggregate(events(env, "one", 1), [1], [AggregateCall(function, (2,), INT, "x")])
        Planner(env, Options(), False).rows(plan).discard().uid("nowhere")

    return build


def test_the_same_query_goes_on_and_another_one_is_refused(stage: Stage) -> None:
    stage.epoch_records = 10
    path = stage.start(of_numbers("SUM"), hold_at=3).stop(stage.savepoints)
    stage.run(of_numbers("SUM"), parallelism=2, **from_path(path))
    with pytest.raises(StateNotRestored, match=r"Group Aggregate \(uid group-aggregate-"):
        stage.start(of_numbers("MAX"), **from_path(path))
