"""Fixtures for all tests."""

import os
import pickle
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from io import BytesIO
from typing import Any, ClassVar

import pytest
from hypothesis import HealthCheck, settings

from penstock.base import pickling
from penstock.dataset.operators import gathering  # noqa: F401 - these keep the `dumps` of now
from penstock.engine.operators.batch import external_sort  # noqa: F401
from penstock.engine.operators.sinks import sink_operators  # noqa: F401
from penstock.engine.slot import slot  # noqa: F401
from tests.compat.persisted import RECORDED, recorded_names

os.environ["PENSTOCK_CHECK_CHANGELOGS"] = "across"  # also in the processes that tests start
# How long an example takes says something about the machine, which may be slow or busy.
settings.register_profile("any machine", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("any machine")
SERVERS = {
    *("kafka", "postgres", "store", "broker", "node", "server", "s3", "hadoop"),
    *("zookeeper", "prometheus", "pushgateway"),
}
"""Fixtures that start a server."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if SERVERS & set(getattr(item, "fixturenames", ())):
            item.add_marker("service")


@pytest.fixture(scope="session", autouse=True)
def databases_in_memory() -> Iterator[None]:
    """RocksDB writes and syncs files whenever a database is closed, and tests close a great many."""
    before = tempfile.tempdir
    if os.access("/dev/shm", os.W_OK):
        tempfile.tempdir = "/dev/shm"
    yield
    tempfile.tempdir = before


class _Names(pickle.Unpickler):
    """Notes which of Penstock's classes and functions a pickle refers to."""

    seen: ClassVar[set[str]] = set()

    def find_class(self, module: str, name: str) -> Any:
        if module.startswith("penstock."):
            self.seen.add(f"{module}:{name}")
        return super().find_class(module, name)


@pytest.fixture(scope="session", autouse=True)
def names_are_noted() -> Iterator[None]:
    """Note the names in what is pickled for checkpoints. Frames and results are pickled by modules that import the
    function itself, and so are left out."""
    dumps = pickling.dumps

    def noting(value: Any) -> bytes:
        data = dumps(value)
        if b"penstock." in data:
            with suppress(Exception):  # what cannot be read again is the business of the test
                _Names(BytesIO(data)).load()
        return data

    pickling.dumps = noting
    yield
    pickling.dumps = dumps


@pytest.fixture(autouse=True)
def persisted_names_are_recorded(names_are_noted: None) -> Iterator[None]:
    """Check that every class of Penstock's in a checkpoint has a recorded name, which does not change."""
    yield
    new = _Names.seen - recorded_names()
    _Names.seen.clear()
    assert not new, f"{sorted(new)} came into a checkpoint: see penstock/persisted.py, then add it to {RECORDED}"
