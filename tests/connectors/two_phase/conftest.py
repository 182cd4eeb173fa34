"""Fixtures: a server and a quiet log."""

import logging
from collections.abc import Iterator

import pytest

from tests.services.fixtures import started
from tests.services.postgres import Postgres


@pytest.fixture(scope="session")
def postgres() -> Iterator[Postgres]:
    yield from started(Postgres())


@pytest.fixture
def quiet():
    """Silence the log: processes die in these tests, and say so each time."""
    logging.disable(logging.WARNING)
    yield
    logging.disable(logging.NOTSET)
