"""A name service of HDFS with two name nodes: the one that is active is found, before and after the other has died."""

import uuid

import pytest

from penstock.base.storage import Storage
from tests.services.fixtures import started
from tests.services.hadoop import Hadoop

pytestmark = [pytest.mark.soak, pytest.mark.service]


@pytest.fixture(scope="module")
def service():
    yield from started(Hadoop(service="Lake"))


def test_files_outlive_a_name_node(service, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HADOOP_CONF_DIR", str(service.conf))
    folder = uuid.uuid4().hex
    storages = [Storage(url) for url in (f"hdfs://Lake/{folder}", f"webhdfs://Lake/{folder}", f"hdfs:///{folder}")]
    for number, storage in enumerate(storages):
        storage.create(f"before-{number}", b"1")
    service.fail_over()
    for number, storage in enumerate(storages):
        storage.create(f"after-{number}", b"22")
        assert storage.is_exclusive()
    names = sorted(f"{when}-{number}" for when in ("before", "after") for number in range(3))
    assert [storage.names() for storage in storages] == [names] * 3
