"""The sinks of real servers into which random queries go: PostgreSQL, a compacted topic of Kafka, Elasticsearch."""

from __future__ import annotations

import atexit
import gc
import json
import urllib.request
import uuid
from collections.abc import Callable
from contextlib import closing
from functools import cache
from typing import Any

import psycopg
from confluent_kafka import Message, Producer

from penstock.connectors.kafka.commit import KafkaCommitter
from penstock.testing.crashes import Outcome
from tests.services.elasticsearch import Elasticsearch
from tests.services.kafka import Kafka
from tests.services.postgres import Postgres
from tests.table.changelogs.random_changes import Query, Rows
from tests.table.changelogs.sink_runs import Sink, check_sink


@cache
def servers() -> list[Callable[[], Sink]]:
    """What makes a sink in each of the servers, which run until this process ends."""
    postgres, kafka, elasticsearch = Postgres(), Kafka(), Elasticsearch()
    for service in (postgres, kafka, elasticsearch):
        atexit.register(service.remove)
        service.install()
        service.start()
    open_transactions(kafka)
    return [lambda: PostgresTable(postgres), lambda: UpsertTopic(kafka), lambda: Documents(elasticsearch)]


def open_transactions(service: Kafka) -> None:
    """Wait for the topic in which Kafka keeps track of transactions: the first one makes it."""
    Producer({"bootstrap.servers": service.bootstrap, "transactional.id": "first", "log_level": 0}).init_transactions(
        60
    )


def check(seed: int) -> Outcome:
    """Run a seed into one of the servers."""
    made = servers()
    outcome = check_sink(seed, made[seed % len(made)]())
    # What dead processes held is let go here and not later, in the middle of something else.
    gc.collect()
    return outcome


def new_name() -> str:
    """A name that no other run uses."""
    return f"s{uuid.uuid4().hex[:10]}"


class PostgresTable(Sink):
    """A table with a primary key."""

    exactly_once = True

    def __init__(self, service: Postgres) -> None:
        self.service = service
        self.name = new_name()

    def options(self, query: Query) -> dict[str, str]:
        columns = f"{query.columns}, PRIMARY KEY ({', '.join(query.key)})"
        with closing(psycopg.connect(self.service.dsn, autocommit=True)) as database:
            database.execute(f"CREATE TABLE IF NOT EXISTS {self.name} ({columns})".encode())
        return {
            "connector": "jdbc",
            "url": self.service.url,
            "username": self.service.user,
            "password": self.service.password,
            "table-name": self.name,
        }

    def rows(self, query: Query) -> Rows:
        with closing(psycopg.connect(self.service.dsn, autocommit=True)) as database:
            return sorted(database.execute(f"SELECT * FROM {self.name}".encode()).fetchall(), key=repr)

    def remove(self) -> None:
        with closing(psycopg.connect(self.service.dsn, autocommit=True)) as database:
            database.execute(f"DROP TABLE IF EXISTS {self.name}".encode())


class UpsertTopic(Sink):
    """A topic whose last record of each key counts, read back as its consumers would."""

    exactly_once = True
    commits = (KafkaCommitter, "commit")

    def __init__(self, service: Kafka) -> None:
        self.service = service
        self.name = new_name()
        service.create_topic(self.name, 2)

    def options(self, query: Query) -> dict[str, str]:
        return {
            "connector": "upsert-kafka",
            "topic": self.name,
            "properties.bootstrap.servers": self.service.bootstrap,
            "key.format": "json",
            "value.format": "json",
            "sink.transactional-id-prefix": self.name,
        }

    def rows(self, query: Query) -> Rows:
        last = dict[bytes, Message]()
        for message in self.service.read(self.name):
            last[_key(message)] = message
        held = [json.loads(value) for message in last.values() if (value := message.value()) is not None]
        return sorted((tuple(one[name] for name in query.names) for one in held), key=repr)

    def remove(self) -> None:
        self.service.delete_topic(self.name)


def _key(message: Message) -> bytes:
    key = message.key()
    assert isinstance(key, bytes)
    return key


class Documents(Sink):
    """An index whose documents have the key as their id. It is written at least once, so nothing dies."""

    def __init__(self, service: Elasticsearch) -> None:
        self.url = f"http://127.0.0.1:{service.port}"
        self.name = new_name()
        self._ask("PUT", self.name)

    def options(self, query: Query) -> dict[str, str]:
        return {"connector": "elasticsearch-7", "hosts": self.url, "index": self.name}

    def rows(self, query: Query) -> Rows:
        self._ask("POST", f"{self.name}/_refresh")
        found = self._ask("POST", f"{self.name}/_search", {"size": 10_000})
        held = [hit["_source"] for hit in found["hits"]["hits"]]
        return sorted((tuple(one[name] for name in query.names) for one in held), key=repr)

    def remove(self) -> None:
        self._ask("DELETE", self.name)

    def _ask(self, method: str, path: str, body: Any = None) -> Any:
        data = None if body is None else json.dumps(body).encode()
        headers = {"content-type": "application/json"}
        request = urllib.request.Request(f"{self.url}/{path}", data, headers, method=method)
        with urllib.request.urlopen(request, timeout=60) as answer:
            return json.load(answer)
