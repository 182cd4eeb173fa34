"""A program with every kind of state is stopped somewhere and goes on with another parallelism: nothing shows."""

from __future__ import annotations

import random
from collections.abc import Callable
from itertools import cycle, permutations, product
from pathlib import Path
from typing import Any

import pytest

from penstock.datastream import (
    DataStream,
    EmbeddedRocksDBStateBackend,
    HashMapStateBackend,
    StreamExecutionEnvironment,
)
from penstock.engine.checkpoint.store import read_snapshot
from penstock.engine.state.key_groups import default_max_parallelism
from penstock.errors import StateNotRestored
from penstock.graph.transformations import reachable
from penstock.testing import ManualClock
from tests.recovery.conftest import Build, Job, Stage
from tests.recovery.programs import STORES, Nth, StoreSink, build_everything, seen, write_lines

PARALLELISMS = (1, 2, 5, 8)
BACKENDS = {"hashmap": HashMapStateBackend, "rocksdb": EmbeddedRocksDBStateBackend}
LATEST_STOP = 30
"""The last epoch at which a run may be stopped: every run is longer."""


# --- ways to stop: each gives the path to start from ---
def with_savepoint(stage: Stage, job: Job) -> str:
    return job.stop(stage.savepoints)


def with_savepoint_and_cancel(stage: Stage, job: Job) -> str:
    return job.savepoint_and_cancel(stage.savepoints)


def with_checkpoint(stage: Stage, job: Job) -> str | None:
    job.cancel()
    return stage.newest_checkpoint(job)


STOPS: dict[str, Callable[[Stage, Job], str | None]] = {
    "savepoint": with_savepoint,
    "savepoint and cancel": with_savepoint_and_cancel,
    "checkpoint": with_checkpoint,
}


@pytest.fixture(scope="module")
def lines(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_lines(tmp_path_factory.mktemp("input"))


@pytest.fixture(scope="module")
def uninterrupted(lines: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What the program yields when nothing happens to it."""
    stage = matrix_stage(tmp_path_factory.mktemp("whole"))
    stage.run(build_everything("uninterrupted", lines))
    return seen("uninterrupted")


def matrix_stage(folder: Path) -> Stage:
    return Stage(folder, ManualClock(now=1_000_000, tick=4), epoch_records=40)


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    return matrix_stage(tmp_path)


def settings(backend: str, max_parallelism: int | None) -> Callable[[StreamExecutionEnvironment], None]:
    def configure(env: StreamExecutionEnvironment) -> None:
        env.set_state_backend(BACKENDS[backend]())
        if max_parallelism is not None:
            env.set_max_parallelism(max_parallelism)

    return configure


def check_same(got: dict[str, Any], expected: dict[str, Any]) -> None:
    """Branch by branch, so that a failure names the branch."""
    for branch, results in expected.items():
        assert got[branch] == results, branch


def run_in_parts(
    stage: Stage,
    lines: Path,
    parallelisms: tuple[int, ...],
    stops: list[str],
    configure: Callable[[StreamExecutionEnvironment], None],
    seed: int,
) -> dict[str, Any]:
    """Run the program with one parallelism after the other; all but the last run are stopped somewhere."""
    store = str(stage.checkpoints)
    chance, path = random.Random(seed), None
    build = build_everything(store, lines)
    common = {"configure": configure, "execution_checkpointing_interval": "30 ms"}
    for parallelism, stop in zip(parallelisms, stops, strict=False):
        epoch = chance.randint(1, LATEST_STOP // len(stops))
        job = stage.start(build, parallelism, hold_at=epoch, execution_state__recovery_path=path, **common)
        path = STOPS[stop](stage, job) or path
        stage.clock.advance(chance.choice([0, 50, 10_000]))
    stage.run(build, parallelisms[-1], execution_state__recovery_path=path, **common)
    try:
        return seen(store)
    finally:
        del STORES[store]


def matrix() -> list[Any]:
    """All pairs; the other choices take turns, so that each is met with many pairs."""
    pairs = [*permutations(PARALLELISMS, 2), *((same, same) for same in PARALLELISMS)]
    choices = cycle(product(STOPS, (128, 10)))
    return [
        pytest.param(before, after, stop, maximum, id=f"{before} to {after}, {stop}, max {maximum}")
        for (before, after), (stop, maximum) in zip(pairs, choices, strict=False)
    ]


@pytest.mark.parametrize(("before", "after", "stop", "maximum"), matrix())
def test_pair(
    stage: Stage, lines: Path, uninterrupted: dict[str, Any], before: int, after: int, stop: str, maximum: int
) -> None:
    backend = settings("hashmap", maximum)
    check_same(run_in_parts(stage, lines, (before, after), [stop], backend, before * 100 + after), uninterrupted)


@pytest.mark.parametrize(("before", "after"), [(1, 5), (8, 2), (2, 2), (2, 1), (5, 8), (5, 5)])
def test_pair_in_rocksdb(stage: Stage, lines: Path, uninterrupted: dict[str, Any], before: int, after: int) -> None:
    stop = list(STOPS)[(before + after) % 3]
    backend = settings("rocksdb", 128)
    check_same(run_in_parts(stage, lines, (before, after), [stop], backend, before * 100 + after), uninterrupted)


@pytest.mark.parametrize("stop", STOPS)
def test_chain_of_rescales(stage: Stage, lines: Path, uninterrupted: dict[str, Any], stop: str) -> None:
    parallelisms = (1, 5, 2, 8, 1)
    check_same(run_in_parts(stage, lines, parallelisms, [stop] * 4, settings("hashmap", None), 7), uninterrupted)


def test_ways_to_stop_take_turns(stage: Stage, lines: Path, uninterrupted: dict[str, Any]) -> None:
    stops = [*STOPS, *STOPS][:5]
    parallelisms = (2, 2, 5, 5, 1, 2)
    check_same(run_in_parts(stage, lines, parallelisms, stops, settings("hashmap", 10), 8), uninterrupted)


# --- crashes: the same job goes on ---
def through_crashes(stage: Stage, lines: Path, backend: str, seed: int) -> dict[str, Any]:
    """Crashes in one run, then a rescale, then crashes in the other."""
    chance, store = random.Random(seed), f"crashes {stage.checkpoints}"
    build = build_everything(store, lines)
    common = {"configure": settings(backend, None), "execution_checkpointing_interval": "20 ms"}

    def crashes(before: int) -> dict[int, str]:
        return {chance.randrange(before): chance.choice(["before", "after"]) for _ in range(3)}

    stop_at = chance.randrange(10, LATEST_STOP)
    job = stage.start(build, chance.choice([1, 2, 5]), crashes=crashes(stop_at), hold_at=stop_at, **common)
    path = STOPS[chance.choice(list(STOPS))](stage, job)
    parallelism = chance.choice([1, 2, 5])
    stage.run(build, parallelism, crashes=crashes(30), execution_state__recovery_path=path, **common)
    return seen(store)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("backend", BACKENDS)
def test_crashes_and_a_rescale(
    stage: Stage, lines: Path, uninterrupted: dict[str, Any], backend: str, seed: int
) -> None:
    check_same(through_crashes(stage, lines, backend, seed), uninterrupted)


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(100, 200))
@pytest.mark.parametrize("backend", BACKENDS)
def test_many_crashes_and_a_rescale(
    stage: Stage, lines: Path, uninterrupted: dict[str, Any], backend: str, seed: int
) -> None:
    check_same(through_crashes(stage, lines, backend, seed), uninterrupted)


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("maximum", [128, 10])
@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("stop", STOPS)
@pytest.mark.parametrize(("before", "after"), list(product(PARALLELISMS, PARALLELISMS)))
def test_whole_matrix(
    stage: Stage,
    lines: Path,
    uninterrupted: dict[str, Any],
    before: int,
    after: int,
    stop: str,
    backend: str,
    maximum: int,
    seed: int,
) -> None:
    got = run_in_parts(stage, lines, (before, after), [stop], settings(backend, maximum), seed)
    check_same(got, uninterrupted)


# --- operators of different parallelism ---
def of_mixed_parallelism(build: Build, seed: int) -> Build:
    """The same program, in which chance decides how many subtasks an operator has that does not say so itself."""

    def mixed(env: StreamExecutionEnvironment) -> None:
        build(env)
        chance = random.Random(seed)
        for node in reachable(env.sinks):
            if node.parallelism is None and not node.non_parallel:
                node.parallelism = chance.choice([1, 2, 3, 5])

    return mixed


def unordered(results: dict[str, Any]) -> dict[str, Any]:
    """Where records of a key travel by several subtasks, nothing comes in order."""
    return {
        branch: sorted(((key, v) for key, vs in values.items() for v in vs), key=repr)
        if isinstance(values, dict)
        else values
        for branch, values in results.items()
    }


@pytest.mark.parametrize(("seed", "stop"), list(zip(range(4), cycle(STOPS))))
def test_operators_of_different_parallelism(
    stage: Stage, lines: Path, uninterrupted: dict[str, Any], seed: int, stop: str
) -> None:
    store = f"mixed {stage.checkpoints}"
    build = build_everything(store, lines)
    job = stage.start(of_mixed_parallelism(build, seed), hold_at=random.Random(seed).randint(12, 36))
    path = STOPS[stop](stage, job)
    assert path is not None
    stage.run(of_mixed_parallelism(build, seed + 100), execution_state__recovery_path=path)
    check_same(unordered(seen(store)), unordered(uninterrupted))


# --- max parallelism ---
def counting(store: str, operator: Callable[[DataStream], Any] = lambda stream: stream) -> Build:
    """Numbers by 30 keys, counted. `operator` may set the counting operator's own parallelism."""

    def build(env: StreamExecutionEnvironment) -> None:
        numbers = env.from_collection(range(600)).uid("numbers").key_by(lambda n: n % 30)
        operator(numbers.process(Nth("count")).uid("count")).sink_to(StoreSink(store)).uid("sink")

    return build


COUNTED = sorted(("count", key, number) for key in range(30) for number in range(1, 21))


def stopped(stage: Stage, build: Build, parallelism: int, **settings: Any) -> str:
    return stage.start(build, parallelism, hold_at=3, **settings).stop(stage.savepoints)


def with_maximum(maximum: int) -> Callable[[StreamExecutionEnvironment], Any]:
    return lambda env: env.set_max_parallelism(maximum)


@pytest.mark.parametrize(("written_with", "maximum"), [(2, None), (2, 10), (90, None)])
@pytest.mark.parametrize("after", [1, 9])
def test_max_parallelism_is_taken_over(stage: Stage, written_with: int, maximum: int | None, after: int) -> None:
    """Each of these parallelisms would give the operator another max parallelism by default."""
    build = counting(str(stage.checkpoints))
    configure = None if maximum is None else with_maximum(maximum)
    path = stopped(stage, build, written_with, configure=configure)
    fixed = read_snapshot(path).shapes["count"].max_parallelism
    assert fixed == (maximum or default_max_parallelism(written_with))
    again = stopped(stage, build, after, execution_state__recovery_path=path)
    assert read_snapshot(again).shapes["count"].max_parallelism == fixed
    stage.run(build, 2, execution_state__recovery_path=again)
    assert sorted(STORES[str(stage.checkpoints)].records("out")) == COUNTED


@pytest.mark.parametrize("other", [64, 256])
def test_another_max_parallelism_is_refused(stage: Stage, other: int) -> None:
    build = counting(str(stage.checkpoints))
    path = stopped(stage, build, 2)
    with pytest.raises(StateNotRestored, match=rf"uid count.*max parallelism is {other}.*written with 128"):
        stage.start(build, 2, configure=with_maximum(other), execution_state__recovery_path=path)


def test_another_max_parallelism_of_one_operator_is_refused(stage: Stage) -> None:
    path = stopped(stage, counting(str(stage.checkpoints)), 2)
    changed = counting(str(stage.checkpoints), lambda stream: stream.set_max_parallelism(20))
    with pytest.raises(StateNotRestored, match=r"uid count.*max parallelism is 20.*written with 128"):
        stage.start(changed, 2, execution_state__recovery_path=path)


def test_parallelism_above_the_max_parallelism_of_the_savepoint_is_refused(stage: Stage) -> None:
    build = counting(str(stage.checkpoints))
    path = stopped(stage, build, 2, configure=with_maximum(10))
    with pytest.raises(StateNotRestored, match=r"uid count.*parallelism 11 is above the max parallelism 10"):
        stage.start(build, 11, execution_state__recovery_path=path)
    stage.run(build, 10, execution_state__recovery_path=path)
    assert sorted(STORES[str(stage.checkpoints)].records("out")) == COUNTED


def test_max_parallelism_of_operators_without_keyed_state_may_change(stage: Stage) -> None:
    """Only operators with keyed state must keep their max parallelism."""
    build = counting(str(stage.checkpoints), lambda stream: stream.set_max_parallelism(20))
    path = stopped(stage, build, 2, configure=with_maximum(30))
    stage.run(build, 3, configure=with_maximum(40), execution_state__recovery_path=path)
    assert sorted(STORES[str(stage.checkpoints)].records("out")) == COUNTED
