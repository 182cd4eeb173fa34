"""For all tests."""

import os
import tempfile
from collections.abc import Iterator

import pytest


SERVERS = {"kafka", "postgres", "broker", "node", "server"}
"""Fixtures that start a server: Kafka, PostgreSQL, RabbitMQ, Cassandra, Elasticsearch."""


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
