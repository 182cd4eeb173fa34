"""Streams of columns through crashes: what a checkpoint holds back of them, it holds as records."""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest

from penstock.common import Time
from penstock.datastream import AsyncDataStream, AsyncFunction, StreamExecutionEnvironment
from penstock.engine.operators.functions import async_wait
from penstock.testing.crashes import Outcome, StoreSink, simulate
from tests.unit.runtime.columnar_programs import Total, totals, warm_readings

COUNT = 60
SEEDS = 40


@pytest.fixture(autouse=True)
def quiet(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Silence the log, since a simulated job dies often; epochs do not wait for answers."""
    monkeypatch.setattr(async_wait, "LINGER_SECONDS", 0.0005)
    monkeypatch.setattr(async_wait, "IDLE_LINGER_SECONDS", 0.002)
    logging.disable(logging.WARNING)
    yield
    logging.disable(logging.NOTSET)


class Later(AsyncFunction):
    async def async_invoke(self, value: Any) -> list[Any]:
        await asyncio.sleep(0.002)
        return [value]


def straight(env: StreamExecutionEnvironment) -> None:
    env.set_parallelism(2)
    stream = warm_readings(env, COUNT).uid("warm").key_by("sensor").process(Total()).uid("totals")
    stream.sink_to(StoreSink("out")).uid("sink")


def held_back(env: StreamExecutionEnvironment) -> None:
    """Rows wait for answers, in checkpoints too, before they are sent on."""
    env.set_parallelism(2)
    waiting = AsyncDataStream.ordered_wait(warm_readings(env, COUNT).uid("warm"), Later(), Time.seconds(30), 5)
    stream = waiting.uid("wait").key_by("sensor").process(Total()).uid("totals")
    stream.sink_to(StoreSink("out")).uid("sink")


def counts(outcome: Outcome) -> Counter[Any]:
    """Records of several subtasks reach a key in any order, so that sums on the way differ, and counts do not."""
    return Counter((sensor, count) for sensor, count, _, _ in outcome.store.visible("out"))


@pytest.mark.parametrize("build", [straight, held_back])
def test_nothing_is_lost_and_nothing_comes_twice(build: Any) -> None:
    whole = simulate(build, seed=0)
    expected = Counter((sensor, count) for sensor, count, _, _ in totals(COUNT))
    assert counts(whole) == expected
    crashes = 0
    for seed in range(1, SEEDS // 2 + 1):
        outcome = simulate(build, seed, steps=whole.steps)
        crashes += len(outcome.crashes)
        assert counts(outcome) == expected, f"seed {seed}, {outcome.crashes}"
    assert crashes > SEEDS / 4
