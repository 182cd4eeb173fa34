"""A clock that is set while the driver waits: the job does not wait for the difference."""

from __future__ import annotations

import threading
from types import SimpleNamespace
from typing import Any

import pytest

from penstock.engine.job.decisions import Wait
from penstock.engine.job.job_driver import LONGEST_REST, JobDriver
from penstock.engine.job.processing_time import WallClock

HOUR = 3_600_000


class SetClock(WallClock):
    """Shows the given times one after the other, and notes how long it is waited for."""

    def __init__(self, *times: int) -> None:
        self._times = iter(times)
        self.rests: list[int | None] = []

    def now(self) -> int:
        return next(self._times)

    def rest(self, millis: int | None, woken: threading.Event) -> None:
        self.rests.append(millis)


@pytest.mark.parametrize(
    ("decided_at", "until", "times", "rests"),
    [
        pytest.param(HOUR, HOUR + 500, [HOUR, HOUR + 500], [500], id="not set"),
        pytest.param(HOUR, HOUR + 500, [HOUR, 200], [500], id="set back during the wait"),
        pytest.param(HOUR, HOUR + 500, [0], [], id="set back before the wait"),
        pytest.param(0, HOUR, [0, HOUR + 1], [LONGEST_REST], id="set forward"),
        pytest.param(0, 25_000, [0, 10_000, 20_000, 25_000], [10_000, 10_000, 5_000], id="a long wait"),
    ],
)
def test_a_wait_ends_in_time(decided_at: int, until: int, times: list[int], rests: list[int]) -> None:
    clock = SetClock(*times)
    driver: Any = SimpleNamespace(_clock=clock, _wake=threading.Event(), _decided_at=decided_at)
    answer = JobDriver._rest(driver, Wait(until))
    assert answer.in_full
    assert clock.rests == rests
