"""Requests in flight at a checkpoint are made again, and their results come out once."""

from __future__ import annotations

import asyncio
import gc
import logging
import threading
from collections import Counter
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from penstock.common import Time, Types
from penstock.datastream import (
    AsyncDataStream,
    AsyncFunction,
    AsyncRetryStrategy,
    CheckpointedFunction,
    DataStream,
    ProcessWindowFunction,
    StreamExecutionEnvironment,
)
from penstock.datastream.state import ListStateDescriptor
from penstock.datastream.window import TumblingEventTimeWindows
from penstock.engine.operators.functions import async_wait
from penstock.testing import ManualClock, at, pause, scripted, watermark
from penstock.testing.crashes import Outcome, StoreSink, crash_point, simulate
from tests.recovery.conftest import Build, Stage
from tests.recovery.programs import STORES
from tests.recovery.programs import StoreSink as PlainStoreSink

NUMBERS = range(40)
SEEDS = 60


@pytest.fixture(autouse=True)
def short_epochs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Epochs do not wait for answers, so that requests are in flight at most checkpoints."""
    monkeypatch.setattr(async_wait, "LINGER_SECONDS", 0.0005)
    monkeypatch.setattr(async_wait, "IDLE_LINGER_SECONDS", 0.002)


@pytest.fixture(autouse=True)
def no_thread_is_left() -> Iterator[None]:
    """Slots that are lost are never closed, and yet their threads end with them."""
    yield
    gc.collect()
    for thread in threading.enumerate():
        if thread.name.startswith("async "):
            thread.join(60)
            assert not thread.is_alive(), thread.name


@pytest.fixture
def quiet() -> Iterator[None]:
    """Silence the log: a simulated job dies often, and says so each time."""
    logging.disable(logging.WARNING)
    yield
    logging.disable(logging.NOTSET)


@pytest.fixture
def asked_again(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The requests that operators took over from checkpoints, in order."""
    taken: list[Any] = []
    left_by = async_wait._left_by

    def noted(restored: Any) -> list[Any]:
        left = left_by(restored)
        taken.extend(left)
        return left

    monkeypatch.setattr(async_wait, "_left_by", noted)
    return taken


# --- crashes at any step ---
class Lookup(AsyncFunction):
    """Answers after some milliseconds, some numbers twice and some not at all; some attempts fail."""

    def open(self, runtime_context: Any) -> None:
        crash_point("open")
        self.tried: set[int] = set()

    async def async_invoke(self, value: int) -> list[tuple[str, int]]:
        crash_point("async_invoke")
        if value % 9 == 8 and value not in self.tried:
            self.tried.add(value)
            raise ConnectionError("try again")
        await asyncio.sleep((value * 7 % 5) / 1000)
        crash_point("answered")
        return [("found", value)] * (value % 4)


class Contents(ProcessWindowFunction):
    def process(self, key: Any, context: Any, elements: Iterable[Any]) -> Iterable[Any]:
        yield context.window().start, sorted(elements)


def events() -> list[Any]:
    """Records in order of time, with watermarks and pauses between them."""
    script: list[Any] = []
    for number in NUMBERS:
        script.append(at(number, number * 10))
        if number % 3 == 0:
            script.append(watermark(number * 10 - 5))
        if number % 7 == 0:
            script.append(pause())
    return script


def with_lookups(env: StreamExecutionEnvironment, wait: Any) -> DataStream:
    strategy = AsyncRetryStrategy.fixed_delay(2, 1, None, lambda error: isinstance(error, ConnectionError))
    found: DataStream = wait(scripted(env, *events()).uid("numbers"), Lookup(), Time.seconds(30), strategy, 6)
    return found.uid("lookups")


def build_ordered(env: StreamExecutionEnvironment) -> None:
    env.set_parallelism(1)
    found = with_lookups(env, AsyncDataStream.ordered_wait_with_retry)
    found.sink_to(StoreSink("found")).uid("sink")


def build_windows(env: StreamExecutionEnvironment) -> None:
    """Count results in windows: a result that was emitted after the watermark of its window would be missing."""
    env.set_parallelism(2)
    found = with_lookups(env, AsyncDataStream.unordered_wait_with_retry).key_by(lambda value: value[1] % 2)
    windows = found.window(TumblingEventTimeWindows.of(Time.milliseconds(50)))
    windows.process(Contents()).uid("windows").sink_to(StoreSink("found")).uid("sink")


@cache
def uninterrupted(build: Build) -> Outcome:
    return simulate(build, seed=0)


EXPECTED = [("found", number) for number in NUMBERS for _ in range(number % 4)]


def test_the_uninterrupted_runs_say_what_the_programs_mean(quiet: None) -> None:
    assert uninterrupted(build_ordered).store.visible("found") == EXPECTED
    windows = uninterrupted(build_windows).store.visible("found")
    assert sorted(value for _, values in windows for value in values) == sorted(EXPECTED)
    assert all(start <= 10 * number < start + 50 for start, values in windows for _, number in values)


@pytest.mark.parametrize("build", [build_ordered, build_windows])
def test_nothing_is_lost_and_nothing_comes_twice(build: Build, quiet: None, asked_again: list[Any]) -> None:
    outcomes = []
    for seed in range(1, SEEDS // 2 + 1):
        outcome = simulate(build, seed, steps=uninterrupted(build).steps)
        assert_same(outcome, build)
        outcomes.append(outcome)
    assert sum(len(outcome.crashes) for outcome in outcomes) > SEEDS / 4
    assert sum(1 for kind, _, _ in asked_again if kind == "record") > SEEDS / 4
    assert any(kind == "watermark" for kind, _, _ in asked_again)


def assert_same(outcome: Outcome, build: Build) -> None:
    seen, expected = (run.store.visible("found") for run in (outcome, uninterrupted(build)))
    if build is build_ordered:
        assert seen == expected, f"seed {outcome.seed}, {outcome.crashes}"
    else:
        assert Counter(map(repr, seen)) == Counter(map(repr, expected)), f"seed {outcome.seed}, {outcome.crashes}"


# --- another parallelism ---
class Held(AsyncFunction):
    """Answers nothing until the test says so."""

    answering = threading.Event()
    asked: list[int] = []

    async def async_invoke(self, value: int) -> list[int]:
        self.asked.append(value)
        while not self.answering.is_set():
            await asyncio.sleep(0.001)
        return [value]


@pytest.fixture
def held() -> Iterator[type[Held]]:
    Held.answering.clear()
    Held.asked.clear()
    yield Held
    Held.answering.set()


def holding(store: str, mode: str) -> Build:
    wait = AsyncDataStream.ordered_wait if mode == "ordered" else AsyncDataStream.unordered_wait

    def build(env: StreamExecutionEnvironment) -> None:
        numbers = scripted(env, *events(), *[pause()] * 3).uid("numbers").set_parallelism(1)
        found = wait(numbers.rebalance(), Held(), Time.minutes(1), 1000).uid("lookups")
        windows = found.key_by(lambda value: value % 3).window(TumblingEventTimeWindows.of(Time.milliseconds(50)))
        windows.process(Contents()).uid("windows").sink_to(PlainStoreSink(store)).uid("sink")

    return build


def in_windows() -> list[tuple[int, list[int]]]:
    windows: dict[tuple[int, int], list[int]] = {}
    for number in NUMBERS:
        windows.setdefault((number * 10 // 50 * 50, number % 3), []).append(number)
    return sorted((start, values) for (start, _), values in windows.items())


@pytest.mark.parametrize("mode", ["ordered", "unordered"])
def test_what_is_in_flight_is_dealt_to_the_subtasks_there_are(tmp_path: Path, held: type[Held], mode: str) -> None:
    stage = Stage(tmp_path, ManualClock(now=1_000_000, tick=4), epoch_records=8)
    build, path = holding(str(tmp_path), mode), None
    asked: list[set[int]] = []
    for parallelism, hold_at in ((1, 2), (3, 2)):
        held.asked.clear()
        job = stage.start(build, parallelism, hold_at=hold_at, execution_state__recovery_path=path)
        path = job.stop(stage.savepoints)
        asked.append(set(held.asked))
    first, second = asked
    assert first and first < second < set(NUMBERS)
    held.answering.set()
    held.asked.clear()
    stage.run(build, 2, execution_state__recovery_path=path)
    assert sorted(held.asked) == list(NUMBERS)
    assert sorted(STORES.pop(str(tmp_path)).records("out")) == in_windows()


def test_event_time_that_waited_goes_on_after_a_change_of_parallelism(tmp_path: Path, held: type[Held]) -> None:
    """No further watermark has to come for the windows before the savepoint to fire."""
    stage = Stage(tmp_path, ManualClock(now=1_000_000, tick=4), epoch_records=8)
    store = str(tmp_path)

    def build(env: StreamExecutionEnvironment) -> None:
        script = [at(1, 10), at(2, 20), watermark(100), pause()]
        numbers = scripted(env, *script, stay=True).uid("numbers").set_parallelism(1)
        found = AsyncDataStream.ordered_wait(numbers.rebalance(), Held(), Time.minutes(1)).uid("lookups")
        windows = found.key_by(lambda value: 0).window(TumblingEventTimeWindows.of(Time.milliseconds(50)))
        windows.process(Contents()).uid("windows").sink_to(PlainStoreSink(store)).uid("sink")

    path = stage.start(build, 1, hold_at=3).stop(stage.savepoints)
    held.answering.set()
    job = stage.start(build, 2, execution_state__recovery_path=path)
    job.until(lambda: STORES[store].records("out"))
    job.client.cancel().result(60)
    assert STORES.pop(store).records("out") == [(0, [1, 2])]


def test_a_smaller_capacity_than_there_were_requests_in_flight(tmp_path: Path, held: type[Held]) -> None:
    stage = Stage(tmp_path, ManualClock(now=1_000_000, tick=4), epoch_records=8)
    store = str(tmp_path)

    def build_with(capacity: int) -> Build:
        def build(env: StreamExecutionEnvironment) -> None:
            numbers = scripted(env, *events()).uid("numbers")
            found = AsyncDataStream.ordered_wait(numbers, Held(), Time.minutes(1), capacity).uid("lookups")
            found.sink_to(PlainStoreSink(store)).uid("sink")

        return build

    path = stage.start(build_with(100), 1, hold_at=3).stop(stage.savepoints)
    held.answering.set()
    stage.run(build_with(2), 1, execution_state__recovery_path=path)
    assert STORES.pop(store).records("out") == list(NUMBERS)


# --- the function's own state ---
class Counting(AsyncFunction, CheckpointedFunction):
    """Numbers what it is asked; a number is given again if its request has to be made again."""

    def initialize_state(self, context: Any) -> None:
        self.state = context.get_operator_state_store().get_list_state(ListStateDescriptor("given", Types.INT()))
        self.given = sum(self.state.get())

    def snapshot_state(self, context: Any) -> None:
        self.state.update([self.given])

    async def async_invoke(self, value: int) -> list[int]:
        self.given += 1
        return [self.given]


def test_the_function_takes_part_in_checkpoints(stage: Stage) -> None:
    store = str(stage.checkpoints)

    def build(env: StreamExecutionEnvironment) -> None:
        numbers = scripted(env, *events()).uid("numbers")
        counted = AsyncDataStream.ordered_wait(numbers, Counting(), Time.minutes(1)).uid("lookups")
        counted.sink_to(PlainStoreSink(store)).uid("sink")

    stage.epoch_records = 8
    path = stage.start(build, 1, hold_at=3).stop(stage.savepoints)
    stage.run(build, 1, execution_state__recovery_path=path)
    numbers = STORES.pop(store).records("out")
    assert len(numbers) == len(NUMBERS)
    assert numbers == sorted(numbers)
    assert numbers[-1] >= len(NUMBERS)


@pytest.mark.parametrize("drain", [False, True])
def test_stopping_with_requests_in_flight(tmp_path: Path, held: type[Held], drain: bool) -> None:
    """A drained job waits for every answer; one that is not leaves them to its successor."""
    stage = Stage(tmp_path, ManualClock(now=1_000_000, tick=4), epoch_records=8)
    store = str(tmp_path)

    def build(env: StreamExecutionEnvironment) -> None:
        numbers = scripted(env, *events(), *[pause()] * 50).uid("numbers")
        found = AsyncDataStream.unordered_wait(numbers, Held(), Time.minutes(1)).uid("lookups")
        found.sink_to(PlainStoreSink(store)).uid("sink")

    job = stage.start(build, 1, hold_at=4).wait_until_held()
    if drain:
        held.answering.set()
    path = job.stop(stage.savepoints, drain=drain)
    assert held.asked
    assert sorted(STORES[store].records("out")) == (sorted(held.asked) if drain else [])
    held.answering.set()
    stage.run(build, 1, execution_state__recovery_path=path)
    assert sorted(STORES.pop(store).records("out")) == list(NUMBERS)
