import logging
import uuid
from collections.abc import Iterator

import pytest

from tests.connectors.rabbitmq.queues import Queues
from tests.services.rabbitmq import RabbitMQ


@pytest.fixture(scope="session")
def broker() -> Iterator[RabbitMQ]:
    service = RabbitMQ()
    try:
        service.start()
        yield service
    finally:
        service.remove()


@pytest.fixture
def queue() -> str:
    return f"queue-{uuid.uuid4().hex[:8]}"


@pytest.fixture
def queues(broker: RabbitMQ) -> Queues:
    return Queues(broker.port)


@pytest.fixture(scope="session", autouse=True)
def quiet_client() -> None:
    """The client describes every connection that is refused in ten lines."""
    logging.getLogger("pika").setLevel(logging.CRITICAL)
