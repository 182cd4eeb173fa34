"""One HDFS and one YARN with three node managers for all tests here, and a table of how long recoveries took."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.services.fixtures import started
from tests.services.hadoop import Hadoop
from tests.yarn.yarn_jobs import YarnJob

RECOVERIES: dict[str, list[float]] = {}


@pytest.fixture(scope="session")
def hadoop() -> Iterator[Hadoop]:
    yield from started(Hadoop(nodes=3))


@pytest.fixture
def submit(hadoop: Hadoop, tmp_path: Path):
    """Start a job; it is ended with the test."""
    jobs = []

    def start(mode: str, count: int, rate: int, **settings: str) -> YarnJob:
        job = YarnJob(hadoop, tmp_path, mode, count, rate, {name.replace("__", "."): v for name, v in settings.items()})
        jobs.append(job)
        print(f"starts {job.url}, {mode}", flush=True)
        job.start()
        return job

    yield start
    for job in jobs:
        job.end()


@pytest.fixture
def recoveries() -> dict[str, list[float]]:
    """Seconds by fault, which are printed at the end."""
    return RECOVERIES


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    if RECOVERIES:
        terminalreporter.section("seconds from a fault to the next complete checkpoint")
        for fault, seconds in RECOVERIES.items():
            terminalreporter.line(f"{fault:45} {', '.join(f'{figure:.1f}' for figure in seconds)}")
