"""A storage that lets two drivers create one file at the same moment: a job warns, and a lease on it is refused."""

import logging
import uuid

import fsspec
import pytest
from fsspec.implementations.memory import MemoryFileSystem

from penstock.base.storage import Storage
from penstock.datastream import StreamExecutionEnvironment
from penstock.errors import ConfigurationError
from penstock.service.server.leadership.elections import election_of
from penstock.service.server.leadership.storage_lease import LeaseElection
from penstock.service.server.server_options import ServerSettings
from penstock.testing import in_process


def run_job(directory):
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(1)
    env.enable_checkpointing(10)
    env.get_checkpoint_config().set_checkpoint_storage_dir(directory)
    with in_process():
        env.from_elements(1, 2, 3).map(lambda n: n).discard()
        env.execute()


@pytest.fixture
def warnings(caplog):
    caplog.set_level(logging.WARNING, "penstock.job")
    return lambda: [record.getMessage() for record in caplog.records if "docs/storage.md" in record.getMessage()]


def test_a_storage_whose_rename_replaces_is_named_once(shelf, warnings):
    directory = f"{shelf.url}/{uuid.uuid4().hex}"
    run_job(directory)
    run_job(directory)
    (warning,) = warnings()
    assert f"'{directory}'" in warning
    assert not [name for name in shelf.files if name.endswith(".trial")]


def test_a_storage_that_refuses_the_second_creator_is_tested_once_in_silence(bucket, warnings):
    directory = f"{bucket.url}/{uuid.uuid4().hex}"
    made = set()
    bucket.faults.before = lambda number, call: made.update(name for name in bucket.files if name.endswith(".trial"))
    run_job(directory)
    run_job(directory)
    assert len(made) == 1 and warnings() == []


def test_a_local_disk_is_not_tested(disk, tmp_path, warnings):
    made = set()
    disk.faults.before = lambda number, call: made.update(path.name for path in tmp_path.rglob("*"))
    run_job(disk.url)
    assert "_metadata" in made and not [name for name in made if ".trial" in name]
    assert warnings() == []


def test_memory_is_not_tested(warnings):
    made = []

    class Watched(MemoryFileSystem):
        protocol = ("watched", "memory")

        @classmethod
        def _strip_protocol(cls, path):
            return "/" + path.removeprefix("watched://").strip("/")

        def pipe_file(self, path, value, mode="overwrite", **settings):
            made.append(path)
            super().pipe_file(path, value, mode, **settings)

    fsspec.register_implementation("watched", Watched, clobber=True)
    run_job(f"watched://{uuid.uuid4().hex}")
    assert made and not [path for path in made if ".trial" in path]
    assert warnings() == []


def elect(url, tmp_path):
    given = {"high-availability.type": "storage", "high-availability.storageDir": url}
    settings = ServerSettings.of(tmp_path, given)
    return election_of(settings, Storage(settings.storage), {"id": "one", "address": "http://one:8081"})


def test_a_lease_on_a_storage_whose_rename_replaces_is_refused(shelf, tmp_path):
    with pytest.raises(ConfigurationError, match=r"storageDir, '\w+://place/folder/.*', lets two servers.*zookeeper"):
        elect(shelf.url, tmp_path)
    assert not shelf.files


def test_a_lease_needs_a_storage_that_refuses_the_second_creator(bucket, tmp_path):
    for url in (bucket.url, tmp_path.as_uri()):
        assert isinstance(elect(url, tmp_path), LeaseElection)
