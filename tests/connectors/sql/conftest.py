"""Both databases, empty for each test."""

from __future__ import annotations

import logging
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest
import sqlalchemy

from penstock.connectors.jdbc.database import database_url
from penstock.datastream import StreamExecutionEnvironment
from penstock.datastream.connectors.jdbc import JdbcConnectionOptions
from penstock.testing import ManualClock, in_process
from tests.services.fixtures import started
from tests.services.postgres import Postgres

END_OTHERS = """SELECT pg_terminate_backend(pid, 2000) FROM pg_stat_activity
    WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()"""
"""For PostgreSQL: a process that is gone in a simulation, but not really, keeps its connections."""


@dataclass
class Store:
    """A database under test, seen from outside."""

    options: JdbcConnectionOptions
    engine: sqlalchemy.Engine

    def run(self, *statements: str) -> None:
        with self.engine.begin() as connection:
            for statement in statements:
                connection.exec_driver_sql(statement)

    def rows(self, query: str) -> list[tuple[Any, ...]]:
        with self.engine.begin() as connection:
            return [tuple(row) for row in connection.exec_driver_sql(query)]


@pytest.fixture(scope="session")
def postgres() -> Iterator[Postgres]:
    yield from started(Postgres())


@pytest.fixture
def postgres_store(postgres: Postgres) -> Iterator[Store]:
    schema = f"test_{uuid.uuid4().hex[:8]}"
    url = f"{postgres.url}?currentSchema={schema}"
    options = JdbcConnectionOptions(url, None, postgres.user, postgres.password)
    store = Store(options, sqlalchemy.create_engine(database_url(options), poolclass=sqlalchemy.NullPool))
    store.run(f"CREATE SCHEMA {schema}")
    yield store
    store.run(END_OTHERS, "SET lock_timeout = '5s'", f"DROP SCHEMA {schema} CASCADE")


@pytest.fixture
def sqlite_store(tmp_path) -> Iterator[Store]:
    options = JdbcConnectionOptions(f"jdbc:sqlite:{tmp_path}/test.db")
    store = Store(options, sqlalchemy.create_engine(database_url(options), poolclass=sqlalchemy.NullPool))
    # Tests need no disk that waits.
    store.run("PRAGMA journal_mode=MEMORY")
    return store


@pytest.fixture(params=["sqlite", "postgres"])
def store(request) -> Store:
    return request.getfixturevalue(f"{request.param}_store")


@pytest.fixture
def env() -> Iterator[StreamExecutionEnvironment]:
    with in_process(clock=ManualClock()):
        yield StreamExecutionEnvironment().set_parallelism(1)


@pytest.fixture
def quiet() -> Iterator[None]:
    """Silence the log: processes die or are away in these tests, and say so each time."""
    logging.disable(logging.WARNING)
    yield
    logging.disable(logging.NOTSET)
