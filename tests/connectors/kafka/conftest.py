import logging
import uuid
from collections.abc import Iterator

import pytest
from confluent_kafka import Producer

from tests.services.kafka import Kafka


@pytest.fixture(scope="session")
def kafka() -> Iterator[Kafka]:
    service = Kafka()
    try:
        service.start()
        warm_up(service)
        yield service
    finally:
        service.remove()


def warm_up(service: Kafka) -> None:
    """The first transaction waits for Kafka to make the topic that keeps track of them."""
    producer = Producer({"bootstrap.servers": service.bootstrap, "transactional.id": "warm-up", "log_level": 0})
    producer.init_transactions(30)


@pytest.fixture
def name() -> str:
    """A name that no other test uses, for topics, groups and prefixes."""
    return f"t-{uuid.uuid4().hex[:10]}"


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    """The client describes every connection that is lost."""
    client = logging.getLogger("penstock.connectors.kafka")
    before, client.level = client.level, logging.CRITICAL
    yield
    client.level = before
