"""Everything in this folder runs on a real Spark; one local[2] session serves all tests of the process."""

from __future__ import annotations

import os
from collections.abc import Callable

import psutil
import pytest

from penstock.datastream import StreamExecutionEnvironment
from penstock.spark.worker import SLOT_VARIABLE


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    here = os.path.dirname(__file__)
    for item in items:
        if str(item.path).startswith(here):
            item.add_marker(pytest.mark.spark)


@pytest.fixture
def env() -> StreamExecutionEnvironment:
    return StreamExecutionEnvironment.create_local_environment(2)


@pytest.fixture
def slot_processes() -> Callable[[], dict[str, int]]:
    """The worker processes of slots that are alive now: {'job/slot': pid}."""

    def find() -> dict[str, int]:
        found = {}
        for process in psutil.Process().children(recursive=True):
            try:
                slot = process.environ().get(SLOT_VARIABLE)
                # The daemon of each pool has the variable too; a worker is the daemon's child.
                if slot is not None and SLOT_VARIABLE in psutil.Process(process.ppid()).environ():
                    job, _, index = slot.split("/")
                    found[f"{job}/{index}"] = process.pid
            except psutil.Error:
                continue
        return found

    return find
