"""The same random queries into real servers: PostgreSQL, upsert-kafka read back, Elasticsearch.

`make soak-servers` goes on from here until it is stopped.
"""

from __future__ import annotations

import gc
import logging
from collections.abc import Callable, Iterator

import pytest

from penstock.testing.crashes import Outcome
from tests.services.elasticsearch import Elasticsearch
from tests.services.fixtures import started
from tests.services.kafka import Kafka
from tests.services.postgres import Postgres
from tests.table.changelogs.service_sinks import Documents, PostgresTable, UpsertTopic, open_transactions
from tests.table.changelogs.sink_runs import Sink, check_sink

SEEDS = {"postgres": 12, "kafka": 6, "elasticsearch": 8}
"""How many seeds run here; each is another shape of query."""
MANY = 600


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    logging.disable(logging.WARNING)
    yield
    logging.disable(logging.NOTSET)


@pytest.fixture(scope="module")
def postgres() -> Iterator[Postgres]:
    yield from started(Postgres())


@pytest.fixture(scope="module")
def kafka() -> Iterator[Kafka]:
    for service in started(Kafka()):
        open_transactions(service)
        yield service


@pytest.fixture(scope="module")
def server() -> Iterator[Elasticsearch]:
    yield from started(Elasticsearch())


def run(seeds: range, sink: Callable[[], Sink]) -> list[Outcome]:
    """Check seeds, each in a sink of its own."""
    outcomes = []
    for seed in seeds:
        outcomes.append(check_sink(seed, sink()))
        # What dead processes held is let go here and not later, in the middle of something else.
        gc.collect()
    return outcomes


def test_a_table_of_postgresql_is_the_result_of_the_query(postgres: Postgres) -> None:
    outcomes = run(range(SEEDS["postgres"]), lambda: PostgresTable(postgres))
    assert sum(len(outcome.crashes) for outcome in outcomes) > 2


def test_a_topic_read_back_is_the_result_of_the_query(kafka: Kafka) -> None:
    outcomes = run(range(100, 100 + SEEDS["kafka"]), lambda: UpsertTopic(kafka))
    assert any(outcome.crashes for outcome in outcomes)


def test_an_index_is_the_result_of_the_query(server: Elasticsearch) -> None:
    run(range(200, 200 + SEEDS["elasticsearch"]), lambda: Documents(server))


@pytest.mark.soak
def test_all_of_them_hold_the_results_of_many_queries(postgres: Postgres, kafka: Kafka, server: Elasticsearch) -> None:
    for make in (lambda: PostgresTable(postgres), lambda: UpsertTopic(kafka), lambda: Documents(server)):
        run(range(1000, 1000 + MANY), make)
