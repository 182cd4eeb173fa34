"""The kinds of storage that can be had here: local files, fsspec's memory, and a real S3 server."""

import uuid
from collections.abc import Iterator

import fsspec
import pytest

from tests.services.fixtures import started
from tests.services.s3 import S3


@pytest.fixture(scope="session")
def s3_server() -> Iterator[S3]:
    yield from started(S3())


@pytest.fixture
def s3(s3_server: S3, monkeypatch: pytest.MonkeyPatch) -> S3:
    """A server that every client in this process finds, as long as the test runs."""
    for name, value in s3_server.environment.items():
        monkeypatch.setenv(name, value)
    return s3_server


@pytest.fixture
def bucket(s3: S3) -> Iterator[str]:
    """The URL of an empty bucket."""
    name = f"test-{uuid.uuid4().hex[:8]}"
    yield s3.bucket(name)
    s3.remove_bucket(name)


@pytest.fixture
def memory() -> Iterator[str]:
    fs = fsspec.filesystem("memory")
    yield f"memory://{uuid.uuid4().hex[:8]}"
    fs.store.clear()
    fs.pseudo_dirs[:] = [""]


ON_S3 = pytest.param("s3", marks=pytest.mark.service)


@pytest.fixture(params=["local", "memory", ON_S3])
def place(request, tmp_path) -> str:
    """The URL of a folder that does not exist yet."""
    if request.param == "local":
        return f"file://{tmp_path}/folder"
    if request.param == "memory":
        return request.getfixturevalue("memory")
    return f"{request.getfixturevalue('bucket')}/folder"


@pytest.fixture(params=["local", ON_S3])
def shared_place(request, tmp_path) -> str:
    """The same on storages that several processes can see."""
    return f"file://{tmp_path}/folder" if request.param == "local" else f"{request.getfixturevalue('bucket')}/folder"
