"""Windows of queries through crashes, savepoints and rescales, in memory and in RocksDB; and state as it was."""

from __future__ import annotations

import datetime
import random
from collections import Counter
from typing import Any

import pytest

from penstock.datastream import EmbeddedRocksDBStateBackend, StreamExecutionEnvironment
from penstock.errors import StateNotRestored
from penstock.table.builders import Planner
from penstock.table.logical.building import aggregate, join, over, where
from penstock.table.logical.nodes import ROWTIME, Column, Relation, WindowTable
from penstock.table.logical.rex import AggregateCall, Frame, InputRef, Literal, OverSpec, SortKey, conjunction
from penstock.table.operators.window import window_base as window_operator
from penstock.table.rules.implementation import choose_windows
from penstock.table.types.data_types import IntType, TimestampType
from penstock.testing.crashes import StoreSink as SimulatedSink
from penstock.testing.crashes import simulate
from tests.recovery.conftest import Stage
from tests.recovery.programs import STORES, StoreSink
from tests.recovery.test_queries_recovery import COUNT, START, events, from_path, left, quiet, rows, total
from tests.table.runtime.table_programs import INT, Options, call

__all__ = ["quiet"]
SEEDS = 4
BOUND = TimestampType(3, False)
BOUNDS = (Column("window_start", BOUND), Column("window_end", BOUND), Column("window_time", BOUND, ROWTIME))
Rows = list[tuple[Any, ...]]


def table(input: Relation, kind: str, size: int, slide: int = 0) -> WindowTable:
    partition = (1,) if kind == "SESSION" else ()
    return WindowTable(input.columns + BOUNDS, input, kind, 0, size * 1000, slide * 1000, 0, partition)


def sums(input: WindowTable) -> Relation:
    return aggregate(input, [1, 4, 5], [total(2), AggregateCall("COUNT", (), COUNT, "n")])


def queries(env: StreamExecutionEnvironment) -> dict[str, Relation]:
    one, two = events(env, "one", 1), events(env, "two", 2)
    tumbling, hopping, other = table(one, "TUMBLE", 10), table(one, "HOP", 20, 5), table(two, "HOP", 20, 5)
    width = len(hopping.columns)
    equal = [call("=", hopping.ref(i), InputRef(hopping.columns[i].type, width + i)) for i in (1, 4, 5)]
    less = call("<", hopping.ref(2), InputRef(INT, width + 2))
    summed = sums(tumbling)
    rank = AggregateCall("ROW_NUMBER", (), COUNT, "rn")
    ranked = over(summed, [OverSpec((1, 2), (SortKey(3, True, False), SortKey(0)), Frame(True, None, 0), (rank,))])
    return {
        "tumbling": summed,
        "hopping": sums(hopping),
        "cumulating": sums(table(one, "CUMULATE", 20, 5)),
        "sessions": sums(table(one, "SESSION", 3)),
        "join": join(hopping, other, "LEFT", conjunction([*equal, less])),
        "top": where(ranked, call("<=", ranked.ref(5), Literal(IntType(False), 2))),
    }


class Build:
    """Defines the program; each driver may find another parallelism."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)

    def __call__(self, env: StreamExecutionEnvironment) -> None:
        env.set_parallelism(self._random.choice([1, 2, 3])).set_max_parallelism(64)
        program(env, SimulatedSink)


def program(env: StreamExecutionEnvironment, sink: Any) -> None:
    planner = Planner(env, Options(), False)
    for name, plan in queries(env).items():
        plain = planner.rows(plan).map(lambda row: (str(row.get_row_kind()), *row)).uid(f"plain {name}")
        plain.sink_to(sink(name)).uid(f"sink {name}")


# --- what the rows say ---
def seconds(count: float) -> datetime.timedelta:
    return datetime.timedelta(seconds=count)


def windows_of(time: datetime.datetime, kind: str, size: int, slide: int) -> Rows:
    passed = int((time - START).total_seconds())
    if kind == "CUMULATE":
        start = passed - passed % size
        found = [(start, end) for end in range(start + slide, start + size + 1, slide) if end > passed]
    else:
        last = passed - passed % slide
        found = [(start, start + size) for start in range(last - size + slide, last + 1, slide)]
    return [(START + seconds(start), START + seconds(end)) for start, end in found]


def summed(kind: str, size: int, slide: int) -> Counter[tuple[Any, ...]]:
    panes: dict[Any, list[int]] = {}
    for time, key, value, _ in rows(1):
        for window in windows_of(time, kind, size, slide):
            panes.setdefault((key, *window), []).append(value)
    return Counter((*pane, sum(values), len(values)) for pane, values in panes.items())


def sessions(gap: int) -> Counter[tuple[Any, ...]]:
    found: dict[Any, list[Any]] = {}
    for time, key, value, _ in rows(1):
        own = found.setdefault(key, [])
        if own and time <= own[-1][1]:
            own[-1][1] = time + seconds(gap)
            own[-1][2].append(value)
        else:
            own.append([time, time + seconds(gap), [value]])
    return Counter((key, start, end, sum(v), len(v)) for key, own in found.items() for start, end, v in own)


def joined() -> Counter[tuple[Any, ...]]:
    def placed(seed: int) -> Rows:
        whole = [(row, window) for row in rows(seed) for window in windows_of(row[0], "HOP", 20, 5)]
        return [(*row, *window, window[1] - datetime.timedelta(milliseconds=1)) for row, window in whole]

    made: Rows = []
    right = placed(2)
    for a in placed(1):
        met = [b for b in right if a[1] == b[1] is not None and a[4:6] == b[4:6] and a[2] < b[2]]
        made += [a + b for b in met] or [a + (None,) * len(a)]
    return Counter(made)


def oracle() -> dict[str, Counter[tuple[Any, ...]]]:
    tumbling = summed("HOP", 10, 10)
    by_window: dict[Any, Rows] = {}
    for row in tumbling:
        by_window.setdefault(row[1], []).append(row)
    top = Counter(
        (*row, rank)
        for own in by_window.values()
        for rank, row in enumerate(sorted(own, key=lambda row: (-row[3], row[0] is not None, row[0] or ""))[:2], 1)
    )
    return {
        "tumbling": tumbling,
        "hopping": summed("HOP", 20, 5),
        "cumulating": summed("CUMULATE", 20, 5),
        "sessions": sessions(3),
        "join": joined(),
        "top": top,
    }


def test_windows_are_exact_through_crashes_and_rescales() -> None:
    expected = oracle()
    whole = simulate(Build(0), seed=0)
    for name, counted in expected.items():
        assert left(whole, name) == counted, name
    crashes = 0
    for seed in range(1, SEEDS + 1):
        outcome = simulate(Build(seed), seed, steps=whole.steps)
        crashes += len(outcome.crashes)
        for name, counted in expected.items():
            assert left(outcome, name) == counted, f"seed {seed}, {name}, {outcome.crashes}"
    assert crashes


@pytest.mark.parametrize("rocks", [False, True])
def test_savepoints_and_rescales_do_not_show(stage: Stage, rocks: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """In RocksDB nothing waits in memory for longer than an epoch."""
    stage.epoch_records = 5
    monkeypatch.setattr(window_operator, "MOST_BYTES", 0)
    names = {name: f"{stage.savepoints} {name}" for name in oracle()}

    def build(env: StreamExecutionEnvironment) -> None:
        env.set_max_parallelism(64)
        program(env, lambda name: StoreSink(names[name]))

    def configure(env: StreamExecutionEnvironment) -> None:
        if rocks:
            env.set_state_backend(EmbeddedRocksDBStateBackend())

    path = None
    for parallelism, epoch in ((1, 5), (3, 4)):
        job = stage.start(build, parallelism, hold_at=epoch, configure=configure, execution_state__recovery_path=path)
        path = job.stop(stage.savepoints)
    stage.run(build, 2, configure=configure, execution_state__recovery_path=path)
    for name, counted in oracle().items():
        records = [record for part in STORES.pop(names[name]).committed.values() for record in part]
        assert Counter(row[1:] for row in records) == counted, name


# --- state of earlier layouts ---
def summing(kind: str, sink: StoreSink) -> Any:
    def build(env: StreamExecutionEnvironment) -> None:
        env.set_max_parallelism(64)
        stream = Planner(env, Options(), False).rows(sums(table(events(env, "one", 1), kind, 20, 5)))
        stream.map(tuple).uid("plain").sink_to(sink).uid("sink")

    return build


def test_state_of_whole_windows_goes_on_in_columns(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    stage.epoch_records = 10
    build = summing("TUMBLE", StoreSink(str(stage.savepoints)))
    with monkeypatch.context() as earlier:
        earlier.setattr(choose_windows, "groups_in_arrow", lambda keys, folds: False)
        path = stage.start(build, hold_at=3).stop(stage.savepoints)
    stage.run(build, parallelism=2, **from_path(path))
    records = [record for part in STORES.pop(str(stage.savepoints)).committed.values() for record in part]
    assert Counter(records) == summed("HOP", 20, 20)


@pytest.mark.parametrize("kind", ["HOP", "CUMULATE", "SESSION"])
def test_state_of_windows_that_are_slices_now_is_refused(
    stage: Stage, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    stage.epoch_records = 10
    build = summing(kind, StoreSink(str(stage.savepoints)))
    with monkeypatch.context() as earlier:
        earlier.setattr(choose_windows, "groups_in_arrow", lambda keys, folds: False)
        path = stage.start(build, hold_at=3).stop(stage.savepoints)
    with pytest.raises(StateNotRestored, match=r"Shared Window Aggregate \(uid shared-|Session Table"):
        stage.start(build, **from_path(path))
