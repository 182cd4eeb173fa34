"""The kinds of storage that can be had here: local files, fsspec's memory, a real S3 server and a real HDFS."""

import uuid
from collections.abc import Iterator

import fsspec
import pytest

from tests.services.fixtures import started
from tests.services.hadoop import Hadoop
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


@pytest.fixture(scope="session")
def hadoop() -> Iterator[Hadoop]:
    """HDFS alone."""
    yield from started(Hadoop())


@pytest.fixture
def hdfs(hadoop: Hadoop) -> Iterator[str]:
    """The URL of an empty folder of HDFS, over its own protocol."""
    path = f"/tmp/{uuid.uuid4().hex[:8]}"
    yield hadoop.url + path
    hadoop.dfs.getFileSystem().delete(hadoop.jvm.org.apache.hadoop.fs.Path(path), True)


@pytest.fixture
def webhdfs(hadoop: Hadoop, hdfs: str) -> str:
    """The same folder over HTTP."""
    return hdfs.replace(hadoop.url, f"web{hadoop.url.rpartition(':')[0]}:{hadoop.http.rpartition(':')[2]}")


@pytest.fixture
def memory() -> Iterator[str]:
    fs = fsspec.filesystem("memory")
    yield f"memory://{uuid.uuid4().hex[:8]}"
    fs.store.clear()
    fs.pseudo_dirs[:] = [""]


SERVERS = [
    pytest.param("s3", marks=pytest.mark.service),
    pytest.param("hdfs", marks=pytest.mark.service),
    # It does the same as "hdfs" on another way; `make test-yarn` takes it too.
    pytest.param("webhdfs", marks=[pytest.mark.service, pytest.mark.soak]),
]


@pytest.fixture(params=["local", "memory", *SERVERS])
def place(request, tmp_path) -> str:
    """The URL of a folder that does not exist yet."""
    if request.param == "local":
        return f"file://{tmp_path}/folder"
    if request.param == "memory":
        return request.getfixturevalue("memory")
    return on_server(request)


@pytest.fixture(params=["local", *SERVERS])
def shared_place(request, tmp_path) -> str:
    """The same on storages that several processes can see."""
    return f"file://{tmp_path}/folder" if request.param == "local" else on_server(request)


def on_server(request) -> str:
    return f"{request.getfixturevalue('bucket' if request.param == 's3' else request.param)}/folder"
