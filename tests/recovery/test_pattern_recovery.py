"""Recorded patterns through crashes and rescales: they give what FlinkCEP gave without any."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from penstock.cep import CEP, Pattern, PatternProcessFunction
from penstock.common import RestartStrategies, Time, WatermarkStrategy
from penstock.datastream import EmbeddedRocksDBStateBackend, StreamExecutionEnvironment
from penstock.datastream.functions import RuntimeContext
from penstock.datastream.state import StateTtlConfig, ValueStateDescriptor
from penstock.errors import StateMigrationException
from penstock.testing.crashes import StoreSink as CrashStoreSink
from penstock.testing.crashes import simulate
from tests.cep import check
from tests.recovery.conftest import Stage
from tests.recovery.programs import STORES, StoreSink

RECORDED = Path(check.__file__).parent
PARTS = 4


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    """Silence the log: a simulated job dies often, and says so each time."""
    logging.disable(logging.WARNING)
    yield
    logging.disable(logging.NOTSET)


def recorded(part: int) -> list[tuple[dict[str, Any], list[Any]]]:
    """Some of the cases with keys and event time that do not end in an error, each rich enough to be interrupted."""
    pairs = []
    for prefix in ("", "random_"):
        cases, expected = check.load(RECORDED / f"{prefix}cases.json", RECORDED / f"{prefix}expected.json")
        pairs += [(case, expected[case["name"]]) for case in cases]
    chosen = [
        (case, results)
        for case, results in pairs
        if isinstance(results, list) and check.is_timed(case) and case.get("keyed", True) and len(case["events"]) > 7
    ]
    return chosen[part :: 4 * PARTS]


def add_events(env: StreamExecutionEnvironment, case: dict[str, Any]) -> Any:
    """A case's events from one subtask, so that their order stays; only the pattern runs in several."""
    strategy = WatermarkStrategy.for_generator(lambda context: check.Markers())
    return (
        env.from_collection([check.event_of(entry) for entry in case["events"]])
        .assign_timestamps_and_watermarks(strategy.with_timestamp_assigner(check.FromEvent()))
        .set_parallelism(1)
        .filter(check.is_event)
        .set_parallelism(1)
        .key_by(lambda event: event[0])
    )


def program(part: int, sink: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setattr(check, "events_of", add_events)

    def build(env: StreamExecutionEnvironment) -> None:
        first, *others = [check.build(env, case) for case, _ in recorded(part)]
        first.union(*others).sink_to(sink).set_parallelism(1)

    return build


def compare(part: int, results: list[Any]) -> None:
    cases = recorded(part)
    got = check.sorted_by_case([case for case, _ in cases], results)
    for case, expected in cases:
        verdict, lines = check.compare(case, expected, got[case["name"]])
        assert verdict == "ok", "\n".join([case["name"], *lines])


@pytest.mark.parametrize("part", range(PARTS))
def test_crashes_do_not_show(part: int, monkeypatch: pytest.MonkeyPatch) -> None:
    build = program(part, CrashStoreSink("matches"), monkeypatch)
    steps = simulate(build, seed=0).steps
    crashes = 0
    for seed in range(2 * part + 1, 2 * part + 3):
        outcome = simulate(build, seed, steps=steps)
        crashes += len(outcome.crashes)
        compare(part, outcome.store.visible("matches"))
    assert crashes


@pytest.mark.parametrize("part", range(PARTS))
def test_rescales_do_not_show(part: int, stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    """Stopped twice with a savepoint, each time with another parallelism; every other time in RocksDB."""
    stage.epoch_records = 2 * len(recorded(part))
    store = str(stage.savepoints)
    build = program(part, StoreSink(store), monkeypatch)

    def configure(env: StreamExecutionEnvironment) -> None:
        if part % 2:
            env.set_state_backend(EmbeddedRocksDBStateBackend())

    path = None
    for parallelism, epoch in ((1, 3 + part % 3), (5, 3)):
        job = stage.start(build, parallelism, hold_at=epoch, configure=configure, execution_state__recovery_path=path)
        path = job.stop(stage.savepoints)
    stage.run(build, 2, configure=configure, execution_state__recovery_path=path)
    compare(part, [record for records in STORES.pop(store).committed.values() for record in records])


# --- a restored job whose pattern has changed ---

EVENTS = [(kind, number % 3, number) for number, kind in enumerate("aaabbbaaacccbbbccc")]


def changing(pattern: str, sink: Any) -> Any:
    """A job that counts matches in state that expires, beside the state of the pattern."""

    def build(env: StreamExecutionEnvironment) -> None:
        times = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(lambda event: event[2] + 1)
        stream = env.from_collection(EVENTS).assign_timestamps_and_watermarks(times).set_parallelism(1)
        found = CEP.pattern(stream.key_by(lambda event: event[1]), Pattern.parse(pattern)).process(Counting())
        found.uid("pattern").sink_to(sink).set_parallelism(1)

    return build


class Counting(PatternProcessFunction):
    def open(self, runtime_context: RuntimeContext) -> None:
        descriptor = ValueStateDescriptor("count")
        descriptor.enable_time_to_live(StateTtlConfig.new_builder(Time.hours(1)).build())
        self.count = runtime_context.get_state(descriptor)

    def process_match(self, match: dict[str, list[Any]], ctx: Any) -> Iterator[Any]:
        count = (self.count.value() or 0) + 1
        self.count.update(count)
        yield ("".join(event[0] for events in match.values() for event in events), match["a"][0][1], count)


BEFORE = "a(f0 = 'a') -> b(f0 = 'c') within 1 s"


@pytest.mark.parametrize("rocks", [False, True])
def test_conditions_and_times_of_a_restored_pattern_may_change(stage: Stage, rocks: bool) -> None:
    """Until the savepoint a is taken and no c has come; afterwards b is what is waited for."""
    after = "a(f0 = 'a') -> b(f0 = 'b') within 2 s"
    results, _ = restored_with(after, stage, rocks)
    assert sorted(results) == [("ab", key, count) for key in range(3) for count in (1, 2)]


@pytest.mark.parametrize(
    "after", ["a(f0 = 'a') -> c(f0 = 'c')", "a(f0 = 'a') => b(f0 = 'c')", "a(f0 = 'a') -> b(f0 = 'c') -> c"]
)
def test_other_elements_are_refused(stage: Stage, after: str) -> None:
    results, outcome = restored_with(after, stage, rocks=False)
    assert results == [] and isinstance(outcome, StateMigrationException)
    assert "pattern" in str(outcome) and "the saved partial matches belong to another pattern" in str(outcome)


def restored_with(after: str, stage: Stage, rocks: bool) -> tuple[list[Any], Any]:
    stage.epoch_records = 3
    store = str(stage.savepoints)

    def configure(env: StreamExecutionEnvironment) -> None:
        env.set_restart_strategy(RestartStrategies.no_restart())
        if rocks:
            env.set_state_backend(EmbeddedRocksDBStateBackend())

    job = stage.start(changing(BEFORE, StoreSink(store)), 1, hold_at=1, configure=configure)
    path = job.stop(stage.savepoints)
    job = stage.start(changing(after, StoreSink(store)), 2, configure=configure, execution_state__recovery_path=path)
    outcome = job.outcome()
    return [record for records in STORES.pop(store).committed.values() for record in records], outcome
