"""The example and the query of the page `docs/kafka-to-postgres.md`, with a real Kafka and a real PostgreSQL."""

import importlib.util
import json
import re
import sys
from pathlib import Path

import pytest
import sqlalchemy
from confluent_kafka import Producer

from penstock.connectors.jdbc.database import database_url
from penstock.datastream.connectors.jdbc import JdbcConnectionOptions
from penstock.table import EnvironmentSettings, TableEnvironment
from penstock.testing import in_process
from tests.services.fixtures import started
from tests.services.postgres import Postgres

ROOT = Path(__file__).parents[3]
ORDERS = [(1, "ann", 9.5), (2, "bo", 1.0), (3, "ann", 0.5), (4, "cy", 2.25), (5, "ann", 10.0)]
TOTALS = [("ann", 3, 20.0), ("bo", 1, 1.0), ("cy", 1, 2.25)]


@pytest.fixture(scope="module")
def postgres():
    yield from started(Postgres())


@pytest.fixture
def shop(kafka, postgres):
    """The tables of the page, empty, and the orders in a topic. Returns the database and a way to look at it."""
    if "orders" not in kafka.topics():
        kafka.create_topic("orders", 2)
        producer = Producer({"bootstrap.servers": kafka.bootstrap})
        for number, customer, amount in ORDERS:
            producer.produce("orders", json.dumps({"id": number, "customer": customer, "amount": amount}))
        producer.flush(60)
    options = JdbcConnectionOptions(postgres.url, None, postgres.user, postgres.password)
    engine = sqlalchemy.create_engine(database_url(options), poolclass=sqlalchemy.NullPool)
    page = (ROOT / "docs" / "kafka-to-postgres.md").read_text()
    with engine.begin() as connection:
        connection.exec_driver_sql("DROP TABLE IF EXISTS orders, totals")
        connection.exec_driver_sql(re.search(r"```sql\n(.*?)```", page, re.S)[1])
    return options, engine


def rows(engine, query):
    with engine.begin() as connection:
        return [tuple(row) for row in connection.exec_driver_sql(query)]


def test_the_example_copies_and_sums(kafka, shop):
    options, engine = shop
    spec = importlib.util.spec_from_file_location("kafka_to_postgres", ROOT / "examples" / "kafka_to_postgres.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    with in_process():
        module.copy_orders(kafka.bootstrap, options, bounded=True)
    assert rows(engine, "SELECT id, customer, amount FROM orders ORDER BY id") == ORDERS
    assert rows(engine, "SELECT customer, orders, amount FROM totals ORDER BY customer") == TOTALS


def test_the_query_of_the_page_sums(kafka, postgres, shop):
    _, engine = shop
    page = (ROOT / "docs" / "kafka-to-postgres.md").read_text()
    script = re.search(r"<!-- totals.sql -->\n```sql\n(.*?)```", page, re.S)[1]
    script = script.replace("'localhost:9092'", f"'{kafka.bootstrap}', 'scan.bounded.mode' = 'latest-offset'")
    script = script.replace("jdbc:postgresql://localhost:5432/shop", postgres.url)
    script = script.replace(
        "'username' = 'shop'", f"'username' = '{postgres.user}', 'password' = '{postgres.password}'"
    )
    environment = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
    with in_process():
        for statement in script.split(";\n"):
            if statement.startswith("SET"):
                environment.get_config().set("execution.checkpointing.interval", "5 s")
            elif statement.strip():
                environment.execute_sql(statement).wait()
    assert rows(engine, "SELECT customer, orders, amount FROM totals ORDER BY customer") == TOTALS
