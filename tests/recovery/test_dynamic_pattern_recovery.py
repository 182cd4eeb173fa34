"""Patterns that are replaced, through crashes and rescales.

When a pattern arrives among the events is left to chance. So these tests look at what does not depend on it: if a
pattern is replaced by one that means the same and matches are kept, nothing changes; and no subtask ever goes back to
an earlier pattern.
"""

from __future__ import annotations

import logging
import random
from collections.abc import Iterator
from itertools import groupby
from typing import Any

import pytest

from penstock.cep import CEP, Pattern, PatternUpdate
from penstock.common import WatermarkStrategy
from penstock.common.watermark_strategy import TimestampAssigner
from penstock.datastream import EmbeddedRocksDBStateBackend, StreamExecutionEnvironment
from penstock.testing import ManualClock, in_process
from penstock.testing.crashes import StoreSink as CrashStoreSink
from penstock.testing.crashes import simulate
from tests.recovery.conftest import Stage
from tests.recovery.programs import STORES, StoreSink

KEYS = 5
FORMS = [
    "a+(type = 'a') -> b(type = 'b') within 190 ms",
    "a+(not (type != 'a')) -> b(type in ('b')) within 190 ms",
    "a{1,}(type = 'a' and true) -> b(type = 'b' or false) within 190 ms",
]
"""Three ways to say the same."""


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    """Silence the log: a simulated job dies often, and says so each time."""
    logging.disable(logging.WARNING)
    yield
    logging.disable(logging.NOTSET)


def events() -> list[dict[str, Any]]:
    chance = random.Random(15)
    return [{"key": n % KEYS, "type": chance.choice("aab"), "number": n, "time": 10 * n + 1} for n in range(120)]


class FromEvent(TimestampAssigner):
    def extract_timestamp(self, value: dict[str, Any], record_timestamp: int) -> int:
        return int(value["time"])


def program(first: str, updates: list[Any], sink: Any) -> Any:
    def build(env: StreamExecutionEnvironment) -> None:
        times = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(FromEvent())
        stream = env.from_collection(events()).assign_timestamps_and_watermarks(times).set_parallelism(1)
        patterns = env.from_collection(updates)
        keyed = stream.key_by(lambda event: event["key"])
        found = CEP.dynamic_pattern(keyed, Pattern.parse(first), patterns).select(numbers).uid("patterns")
        found.sink_to(sink).set_parallelism(1)

    return build


def numbers(match: dict[str, list[Any]]) -> Any:
    return [(name, event["key"], event["number"]) for name, taken in match.items() for event in taken]


def same(results: list[Any]) -> list[str]:
    return sorted(map(str, results))


@pytest.fixture(scope="module")
def expected() -> list[str]:
    with in_process(clock=ManualClock()):
        env = StreamExecutionEnvironment.get_execution_environment()
        times = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(FromEvent())
        stream = env.from_collection(events()).assign_timestamps_and_watermarks(times).set_parallelism(1)
        found = CEP.pattern(stream.key_by(lambda event: event["key"]), Pattern.parse(FORMS[0])).select(numbers)
        with found.execute_and_collect() as results:
            return same(list(results))


KEPT = [PatternUpdate(form, keep_matches=True) for form in FORMS[1:] * 20]


def test_crashes_do_not_show(expected: list[str]) -> None:
    build = program(FORMS[0], KEPT, CrashStoreSink("matches"))
    steps, crashes = simulate(build, seed=0).steps, 0
    for seed in range(1, 9):
        outcome = simulate(build, seed, steps=steps)
        crashes += len(outcome.crashes)
        assert same(outcome.store.visible("matches")) == expected
    assert crashes > 5


@pytest.mark.parametrize("rocks", [False, True])
def test_rescales_do_not_show(stage: Stage, rocks: bool, expected: list[str]) -> None:
    stage.epoch_records = 4
    store = str(stage.savepoints)
    build = program(FORMS[0], KEPT, StoreSink(store))
    results = run_in_three_parts(stage, build, rocks)
    assert same(results) == expected


def test_no_key_goes_back_to_an_earlier_pattern(stage: Stage) -> None:
    """Every event is a match, whose only element tells the pattern; the patterns come before the first savepoint."""
    stage.epoch_records = 6
    build = program("p0", ["p1", "p2", "not a pattern", "p3"], StoreSink(str(stage.savepoints)))
    results = run_in_three_parts(stage, build, rocks=False)
    assert sorted(number for [(_, _, number)] in results) == list(range(120))
    by_key = sorted((key, number, name) for [(name, key, number)] in results)
    for _, group in groupby(by_key, key=lambda result: result[0]):
        names = [name for _, _, name in group]
        assert names == sorted(names) and names[-1] == "p3"


def run_in_three_parts(stage: Stage, build: Any, rocks: bool) -> list[Any]:
    """Stopped twice with a savepoint, each time with another parallelism."""

    def configure(env: StreamExecutionEnvironment) -> None:
        if rocks:
            env.set_state_backend(EmbeddedRocksDBStateBackend())

    path = None
    for parallelism in (1, 4):
        job = stage.start(build, parallelism, hold_at=3, configure=configure, execution_state__recovery_path=path)
        path = job.stop(stage.savepoints)
    stage.run(build, 2, configure=configure, execution_state__recovery_path=path)
    return [record for records in STORES.pop(str(stage.savepoints)).committed.values() for record in records]
