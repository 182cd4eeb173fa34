import logging
import uuid
from collections.abc import Iterator

import pytest

from tests.connectors.elasticsearch.indices import Indices, Moody
from tests.services.elasticsearch import Elasticsearch


@pytest.fixture(scope="session")
def server() -> Iterator[Elasticsearch]:
    logging.getLogger("elastic_transport").setLevel(logging.ERROR)
    service = Elasticsearch()
    try:
        service.start()
        yield service
    finally:
        service.remove()


@pytest.fixture
def indices(server: Elasticsearch) -> Indices:
    return Indices(f"http://127.0.0.1:{server.port}")


@pytest.fixture
def index() -> str:
    return f"index-{uuid.uuid4().hex[:8]}"


@pytest.fixture
def moody(server: Elasticsearch) -> Iterator[Moody]:
    proxy = Moody(f"http://127.0.0.1:{server.port}")
    yield proxy
    proxy.close()
