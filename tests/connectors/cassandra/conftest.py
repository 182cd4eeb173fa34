import logging
import uuid
from collections.abc import Iterator

import pytest

from penstock.datastream.connectors.cassandra import ClusterBuilder
from tests.services.cassandra import PASSWORD, USER, Cassandra


@pytest.fixture(scope="session")
def node() -> Iterator[Cassandra]:
    logging.getLogger("cassandra").setLevel(logging.CRITICAL)
    service = Cassandra()
    try:
        service.start()
        yield service
    finally:
        service.remove()


@pytest.fixture(scope="session")
def session(node):
    """A second client; the driver finds the node again after a restart."""
    cluster = node.cluster()
    opened = cluster.connect()
    opened.execute("CREATE KEYSPACE shop WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}")
    yield opened
    cluster.shutdown()


@pytest.fixture
def table(session) -> str:
    name = f"shop.words_{uuid.uuid4().hex[:8]}"
    session.execute(f"CREATE TABLE {name} (word text PRIMARY KEY, count int, note text)")
    return name


@pytest.fixture
def builder(node) -> ClusterBuilder:
    return ClusterBuilder("127.0.0.1", port=node.port, user=USER, password=PASSWORD)
