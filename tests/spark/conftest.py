"""Everything in this folder runs on a real Spark; one local[2] session serves all tests of the process."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress

import psutil
import pytest
from pyspark.sql import SparkSession

from penstock.datastream import StreamExecutionEnvironment
from tests.spark.kills import SLOT

REMOTE = "PENSTOCK_TEST_REMOTE"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    here = os.path.dirname(__file__)
    for item in items:
        if str(item.path).startswith(here):
            item.add_marker(pytest.mark.spark)


@pytest.fixture(scope="session", autouse=True)
def connect_session() -> None:
    """Use the Spark Connect server that the environment names, if it does, in place of local sessions."""
    if url := os.environ.get(REMOTE):
        SparkSession.builder.remote(url).getOrCreate()


@pytest.fixture
def env() -> StreamExecutionEnvironment:
    return StreamExecutionEnvironment.create_local_environment(2)


@pytest.fixture
def slot_processes() -> Callable[[str], dict[int, int]]:
    """The processes of a job's slots that are alive now: {slot: pid}. A slot's process bears its name."""

    def find(job: str) -> dict[int, int]:
        found = {}
        for process in psutil.Process().children(recursive=True):
            with suppress(psutil.Error):
                slot = SLOT.fullmatch(process.name())
                if slot is not None and job.startswith(slot[2]):
                    found[int(slot[1])] = process.pid
        return found

    return find
