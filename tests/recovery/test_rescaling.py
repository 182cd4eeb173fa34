"""Jobs that get another parallelism while they run: nothing is lost, nothing comes twice, and nothing ends for good."""

from __future__ import annotations

import threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from penstock.datastream import SinkFunction
from penstock.engine.checkpoint.store import FolderStore
from penstock.errors import CheckpointFailed, NotEnoughSlots, StorageError, UnsupportedOperation
from penstock.service.launch import submission
from penstock.service.launch.submission import with_defaults
from tests.recovery.test_adaptive_jobs import KEYS, Cores, Count, StreamExecutionEnvironment, await_slots, options
from tests.server.helping import check_counts
from tests.spark.kill_job import FolderSink
from tests.waiting import until

SEEN: Counter[int] = Counter()
"""How often each number has come to a sink that writes at once and cannot undo it."""


class Writes(SinkFunction):
    def invoke(self, value, context):
        SEEN[value] += 1


class Room(Cores):
    """Tells how many slots it can have, as Spark does."""

    tells = True

    def has_room(self, slots: int) -> bool:
        return slots <= self.cores or not self.tells


def started(cores: Room, folder: Path, **more: str | None):
    SEEN.clear()
    for part in ("prepared", "visible"):
        (folder / part).mkdir(parents=True)
    settings = options(folder, **{"jobmanager.scheduler": "default", **more})
    with with_defaults(cluster=lambda settings, deployment: cores):
        env = StreamExecutionEnvironment.get_execution_environment(settings).set_parallelism(2)
        env.set_max_parallelism(16)
        numbers = env.generate(rate=500).uid("numbers")
        numbers.add_sink(Writes()).uid("writes")
        counted = numbers.key_by(lambda number: number % KEYS).process(Count()).uid("count")
        counted.sink_to(FolderSink(folder)).uid("sink")
        return env.execute_async("rescaled")


def test_a_job_gets_another_parallelism_while_it_runs(tmp_path):
    cores = Room(8)
    client = started(cores, tmp_path)
    await_slots(client, cores, 2)
    for parallelism in (4, 3, 1, 8):
        client._job.rescale(parallelism)
        assert cores.deployed[-1] == parallelism
        await_slots(client, cores, parallelism)
    assert cores.deployed == [2, 4, 3, 1, 8], "each change is one attempt"
    client.cancel().result()
    assert not client._job.view.failures
    assert "SUSPENDED" not in [change.status.name for change in client._job.view.changes]
    check_counts(tmp_path, 1)
    assert set(SEEN.values()) == {1}, "a checkpoint without anything behind it leaves nothing to repeat"
    assert sorted(SEEN) == list(range(len(SEEN)))


def test_the_same_parallelism_changes_nothing(tmp_path):
    cores = Room(8)
    client = started(cores, tmp_path)
    await_slots(client, cores, 2)
    client._job.rescale(3)
    client._job.rescale(3)
    assert cores.deployed == [2, 3]
    client.cancel().result()


def test_an_adaptive_job_keeps_to_the_new_parallelism(tmp_path):
    cores = Room(8)
    client = started(cores, tmp_path, **{"jobmanager.scheduler": "adaptive"})
    await_slots(client, cores, 2)
    client._job.rescale(4)
    await_slots(client, cores, 4)
    cores.cores = 1
    await_slots(client, cores, 1)
    cores.cores = 8
    await_slots(client, cores, 4)
    client.cancel().result()
    check_counts(tmp_path, 1)


# --- what cannot be ---
@pytest.mark.parametrize(
    ("parallelism", "error", "said"),
    [
        (9, UnsupportedOperation, "cores for all slots"),
        (17, Exception, "max"),
    ],
)
def test_what_cannot_be_is_refused_before_anything_stops(tmp_path, parallelism, error, said):
    cores = Room(8 if parallelism == 9 else 100)
    client = started(cores, tmp_path)
    await_slots(client, cores, 2)
    with pytest.raises(error, match=said):
        client._job.rescale(parallelism)
    epoch = client._job.view.epoch
    until(lambda: client._job.view.epoch > epoch + 3)
    assert cores.deployed == [2]
    client.cancel().result()


def test_a_job_without_checkpoints_is_refused(tmp_path):
    cores = Room(8)
    client = started(cores, tmp_path, **{"execution.checkpointing.interval": None})
    until(lambda: cores.deployed == [2])
    with pytest.raises(UnsupportedOperation, match="it needs checkpoints in a directory"):
        client._job.rescale(3)
    client.cancel().result()


def test_cores_that_go_away_meanwhile_lead_back(tmp_path, monkeypatch):
    """The checkpoint was taken, and then an executor is lost: the job continues with as many slots as before."""
    cores = Room(8)
    client = started(cores, tmp_path)
    await_slots(client, cores, 2)
    taking = submission.take_ownership

    def lose_cores(*given):
        cores.cores = 2
        return taking(*given)

    monkeypatch.setattr(submission, "take_ownership", lose_cores)
    with pytest.raises(NotEnoughSlots, match=r"earlier parallelism, 2 slots, .*: there are not enough cores"):
        client._job.rescale(6)
    await_slots(client, cores, 2)
    client.cancel().result()
    assert set(cores.deployed) == {2}
    check_counts(tmp_path, 1)


def test_slots_that_do_not_start_lead_back(tmp_path, monkeypatch):
    """Nobody knew how many cores there are, and there are too few."""
    cores = Room(8)
    client = started(cores, tmp_path)
    await_slots(client, cores, 2)
    cores.tells = False
    monkeypatch.setattr(cores, "capacity", lambda: None)
    with pytest.raises(NotEnoughSlots, match=r"earlier parallelism, 2 slots, .*there are 8 cores"):
        client._job.rescale(9)
    await_slots(client, cores, 2)
    client._job.rescale(3)
    await_slots(client, cores, 3)
    client.cancel().result()
    check_counts(tmp_path, 1)


# --- storage that fails ---
def test_a_storage_that_fails_meanwhile_does_not_end_the_job(tmp_path, monkeypatch):
    """No token of a new owner can be written for a while, as on a full disk."""
    cores = Room(8)
    client = started(cores, tmp_path)
    await_slots(client, cores, 2)
    taking, failures = submission.take_ownership, iter(range(2))

    def fail(*given):
        if next(failures, None) is not None:
            raise StorageError("No space left on device")
        return taking(*given)

    monkeypatch.setattr(submission, "take_ownership", fail)
    monkeypatch.setattr("penstock.engine.job.rescaling.RETRY_SECONDS", 0.01)
    client._job.rescale(4)
    await_slots(client, cores, 4)
    client.cancel().result()
    check_counts(tmp_path, 1)


def test_a_checkpoint_that_fails_leaves_the_job_as_it_is(tmp_path, monkeypatch):
    cores = Room(8)
    more = {"execution.checkpointing.tolerable-failed-checkpoints": "1000"}
    client = started(cores, tmp_path, **more)
    await_slots(client, cores, 2)
    publish, is_full = FolderStore.publish, threading.Event()

    def fail(self, *given):
        if is_full.is_set():
            raise StorageError("No space left on device")
        return publish(self, *given)

    monkeypatch.setattr(FolderStore, "publish", fail)
    is_full.set()
    with pytest.raises(CheckpointFailed, match="No space left"):
        client._job.rescale(4)
    is_full.clear()
    await_slots(client, cores, 2)
    assert cores.deployed == [2]
    client._job.rescale(4)
    await_slots(client, cores, 4)
    client.cancel().result()
    check_counts(tmp_path, 1)
    assert set(SEEN.values()) == {1}


# --- ends ---
def test_a_job_that_is_cancelled_meanwhile_ends(tmp_path, monkeypatch):
    cores = Room(8)
    client = started(cores, tmp_path)
    await_slots(client, cores, 2)
    taking, reached, held = submission.take_ownership, threading.Event(), threading.Event()

    def hold(*given):
        reached.set()
        held.wait(60)
        return taking(*given)

    monkeypatch.setattr(submission, "take_ownership", hold)
    with ThreadPoolExecutor(2) as pool:
        rescaling = pool.submit(client._job.rescale, 4)
        assert reached.wait(60)
        cancelling = pool.submit(client._job.cancel)
        until(lambda: client._job._driver._stopped.is_set())
        held.set()
        cancelling.result()
        with pytest.raises(CheckpointFailed, match="the job has ended while it was rescaled"):
            rescaling.result()
    assert client.get_job_status().result().name == "CANCELED"
    check_counts(tmp_path, 1)
