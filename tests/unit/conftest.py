"""Fixtures for tests that run whole programs in this process."""

import pytest

from penstock.datastream import RuntimeExecutionMode, StreamExecutionEnvironment
from penstock.service.options import known_options
from penstock.testing import ManualClock, in_process


@pytest.fixture
def env():
    """An environment of parallelism 1 whose jobs run in this process, on a clock that needs no waiting."""
    with in_process(clock=ManualClock()):
        yield StreamExecutionEnvironment().set_parallelism(1)


@pytest.fixture
def run():
    """Runs the stream that a function builds on a fresh environment, and gives its results."""

    def run(build, *, parallelism=1, mode="STREAMING", epoch_records=None, clock=None):
        with in_process(epoch_records=epoch_records, clock=clock or ManualClock()):
            environment = StreamExecutionEnvironment().set_parallelism(parallelism)
            environment.set_runtime_mode(RuntimeExecutionMode[mode])
            with build(environment).execute_and_collect() as results:
                return list(results)

    return run


@pytest.fixture
def fresh_warnings(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lets options be warned of that an earlier test has been warned of."""
    monkeypatch.setattr(known_options, "_judged", set())
