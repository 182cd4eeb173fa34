"""Checkpoints on a storage that lets two drivers create the same file."""

import pytest

from penstock.common import Configuration
from penstock.datastream import StreamExecutionEnvironment
from penstock.errors import ConfigurationError
from penstock.service.launch.durable_jobs import _is_exclusive
from penstock.testing import in_process


@pytest.fixture(autouse=True)
def _tests_anew():
    """Test each directory anew: the storages of all tests have the same URLs."""
    _is_exclusive.cache_clear()


def run(directory: str, single_driver: str = "false") -> list[int]:
    """Run a short job in this process with checkpoints in the directory."""
    settings = {
        "execution.checkpointing.interval": "10 ms",
        "execution.checkpointing.dir": directory,
        "execution.single-driver": single_driver,
    }
    env = StreamExecutionEnvironment.get_execution_environment(Configuration.from_dict(settings))
    with in_process(), env.from_sequence(1, 3).execute_and_collect("numbers") as results:
        return sorted(results)


def test_it_is_refused_before_anything_is_written(shelf):
    """A rename replaces there, so that nothing tells the second driver that it is the second."""
    with pytest.raises(ConfigurationError) as refused:
        run(shelf.url)
    said = str(refused.value)
    assert "job 'numbers'" in said and f"'{shelf.url}'" in said
    assert "execution.checkpointing.dir" in said and "execution.single-driver" in said
    assert shelf.files == {}


def test_a_user_can_vouch_for_a_single_driver(shelf):
    assert run(shelf.url, "true") == [1, 2, 3]


def test_a_storage_that_refuses_one_of_two_needs_no_option(bucket):
    assert run(bucket.url) == [1, 2, 3]
    assert not [name for name in bucket.files if name.endswith(".trial")]
