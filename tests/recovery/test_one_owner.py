"""Two drivers of one job: only one of them may act, and the other one says who that is."""

from __future__ import annotations

import os
import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from penstock.common import Types
from penstock.common.job import JobStatus
from penstock.datastream import RuntimeExecutionMode, StreamExecutionEnvironment
from penstock.datastream.functions import KeyedProcessFunction
from penstock.datastream.state import ValueStateDescriptor
from penstock.engine.checkpoint.metadata import encode
from penstock.engine.checkpoint.ownership import Ownership
from penstock.engine.checkpoint.store import read_snapshot
from penstock.errors import CheckpointFailed, JobDisplaced, JobRunning, NoSuchSnapshot, NotSerializable, StorageError
from penstock.testing import ManualClock
from tests.recovery.conftest import Build, Job, Stage
from tests.recovery.programs import STORES, StoreSink

JOB_ID = "0e17" * 8
OWN_JOB = {"pipeline_job__id": JOB_ID, "execution_checkpointing_data__inline__threshold": "0 b"}
RECOVERED = {**OWN_JOB, "execution_recover": "latest"}
TAKING_OVER = {**RECOVERED, "execution_takeover": "true"}
NUMBERS = range(1, 97)
RESULTS = [(n % 3, sum(m for m in NUMBERS if m % 3 == n % 3 and m <= n)) for n in NUMBERS]


class Sum(KeyedProcessFunction):
    def open(self, runtime_context: Any) -> None:
        self.sum = runtime_context.get_state(ValueStateDescriptor("sum", Types.LONG()))

    def process_element(self, value: int, ctx: Any) -> Any:
        self.sum.update((self.sum.value() or 0) + value)
        yield ctx.get_current_key(), self.sum.value()


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    """Eight records an epoch, a checkpoint about every second epoch."""
    return Stage(tmp_path, ManualClock(now=1_000_000, tick=4), epoch_records=8)


@pytest.fixture
def store(tmp_path: Path) -> str:
    return str(tmp_path)


@pytest.fixture
def build(store: str) -> Build:
    def build(env: StreamExecutionEnvironment) -> None:
        numbers = env.from_collection(NUMBERS).uid("numbers")
        numbers.key_by(lambda n: n % 3).process(Sum()).uid("sum").sink_to(StoreSink(store)).uid("sink")

    return build


def results(store: str) -> list[Any]:
    return STORES[store].records("out")


def files(stage: Stage) -> dict[str, bytes]:
    """Everything in the folder of the job."""
    folder = stage.checkpoints / JOB_ID
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def displaced(job: Job) -> str:
    """What a driver says that was displaced, once it has ended."""
    job.go_on()
    error = job.outcome()
    assert type(error) is JobDisplaced, error
    assert job.client.get_job_status().result() is JobStatus.SUSPENDED
    return str(error)


def test_a_second_driver_is_refused_and_changes_nothing(stage: Stage, build: Build, store: str) -> None:
    first = stage.start(build, hold_at=5, **OWN_JOB).wait_until_held()
    before = files(stage)
    for options in (OWN_JOB, RECOVERED):
        with pytest.raises(JobRunning, match=f"process {os.getpid()} on .*execution.takeover=true"):
            stage.start(build, **options)
    assert files(stage) == before
    first.finish()
    assert sorted(results(store)) == sorted(RESULTS)


@pytest.mark.parametrize("hold_at", range(13))
def test_the_displaced_driver_ends_and_changes_nothing(stage: Stage, build: Build, store: str, hold_at: int) -> None:
    """Wherever a driver is stopped, the other one goes on from what it has published, and nothing is lost or
    doubled."""
    first = stage.start(build, hold_at=hold_at, **OWN_JOB).wait_until_held()
    second = stage.start(build, hold_at=2, **TAKING_OVER).wait_until_held()
    before = files(stage)
    said = displaced(first)
    assert f"new owner: process {os.getpid()} on " in said and "token 2; this driver had 1" in said
    left = {name: data for name, data in files(stage).items() if name in before}
    assert left == before, "what the owner has is as it was"
    second.finish()
    assert sorted(results(store)) == sorted(RESULTS)


def test_one_that_ends_first_does_not_take_the_checkpoints_of_the_other(stage: Stage, build: Build, store: str) -> None:
    """The first has read everything when it is stopped; all that is left to it is to tidy up."""
    held = stage.start(build, hold_at=13, **OWN_JOB).wait_until_held()
    second = stage.start(build, hold_at=2, **TAKING_OVER).wait_until_held()
    displaced(held)
    newest = stage.newest_checkpoint(second)
    assert newest is not None and all(
        os.path.getsize(file.url.removeprefix("file://")) == file.size
        for slot in read_snapshot(newest).slots
        for file in slot.files
    )
    second.lose_driver()
    stage.run(build, **RECOVERED)
    assert sorted(results(store)) == sorted(RESULTS)


def test_one_that_is_cancelled_after_it_was_displaced_deletes_nothing(stage: Stage, build: Build, store: str) -> None:
    deleting = {"execution_checkpointing_externalized__checkpoint__retention": "DELETE_ON_CANCELLATION"}
    first = stage.start(build, hold_at=7, **OWN_JOB, **deleting).wait_until_held()
    second = stage.start(build, hold_at=2, **TAKING_OVER, **deleting).wait_until_held()
    before = files(stage)
    first.client.cancel()
    displaced(first)
    assert {name: data for name, data in files(stage).items() if name in before} == before
    second.finish()
    assert sorted(results(store)) == sorted(RESULTS)


def test_whoever_waits_for_a_savepoint_of_a_displaced_driver_waits_in_vain(
    stage: Stage, build: Build, store: str
) -> None:
    first = stage.start(build, hold_at=5, **OWN_JOB).wait_until_held()
    second = stage.start(build, hold_at=2, **TAKING_OVER).wait_until_held()
    savepoint = first.asked(None, stage.savepoints)
    displaced(first)
    with pytest.raises(CheckpointFailed, match="new owner"):
        savepoint.result(60)
    second.finish()


def test_three_drivers(stage: Stage, build: Build, store: str) -> None:
    first = stage.start(build, hold_at=3, **OWN_JOB).wait_until_held()
    second = stage.start(build, hold_at=3, **TAKING_OVER).wait_until_held()
    third = stage.start(build, hold_at=3, **TAKING_OVER).wait_until_held()
    assert "token 3; this driver had 1" in displaced(first)
    assert "token 3; this driver had 2" in displaced(second)
    third.finish()
    assert sorted(results(store)) == sorted(RESULTS)


def test_a_driver_that_restarts_after_it_was_displaced_restores_nothing(stage: Stage, build: Build, store: str) -> None:
    first = stage.start(build, hold_at=5, crashes={5: "before"}, **OWN_JOB).wait_until_held()
    second = stage.start(build, hold_at=2, **TAKING_OVER).wait_until_held()
    displaced(first)
    second.finish()
    assert sorted(results(store)) == sorted(RESULTS)


def test_every_attempt_has_a_number_of_its_own(stage: Stage, build: Build, store: str) -> None:
    """So slots of an earlier attempt that live on cannot commit anything."""
    job = stage.start(build, hold_at=9, crashes={3: "before", 6: "after"}, **OWN_JOB).wait_until_held()
    deployed = job.cluster.slots[0].deployment
    assert (deployed.attempt, deployed.owner.number) == (2, 3)
    assert {name for name in files(stage) if name.startswith("owner/")} == {
        "owner/00000003",
        "owner/00000003.began",
        "owner/00000003.newest",
    }
    job.finish()
    assert sorted(results(store)) == sorted(RESULTS)


# --- checkpoints that do not count ---
def test_a_number_that_a_displaced_driver_took_at_the_last_moment_is_passed_over(
    stage: Stage, build: Build, store: str
) -> None:
    """The driver passed its last check before it was displaced, and published afterwards. Nobody may go on from
    that."""
    first = stage.start(build, hold_at=3, **OWN_JOB).wait_until_held()
    published = read_snapshot(stage.newest_checkpoint(first) or "")
    second = stage.start(build, hold_at=0, **TAKING_OVER).wait_until_held()
    displaced(first)
    for number in range(published.number + 2, 30, 2):
        folder = stage.checkpoints / JOB_ID / f"chk-{number}"
        folder.mkdir()
        (folder / "_metadata").write_bytes(encode(replace(published, number=number), folder.as_uri()))
    second.cluster.hold_at = 7
    second.go_on()
    second.wait_until_held()
    second.lose_driver()
    job = stage.run(build, **RECOVERED)
    assert sorted(results(store)) == sorted(RESULTS)
    assert job.restarts() == 0


def test_a_fresh_start_is_not_recovered_from_an_earlier_run(stage: Stage, build: Build, store: str) -> None:
    """The new run dies before its first checkpoint. An older checkpoint is of a run that has nothing to do with it."""
    stage.start(build, hold_at=8, **OWN_JOB).lose_driver()
    STORES[store].committed.clear()
    stage.start(build, hold_at=0, **OWN_JOB).lose_driver()
    stage.run(build, **RECOVERED)
    assert sorted(results(store)) == sorted(RESULTS)


# --- the newest checkpoint is gone ---
def remove_newest(stage: Stage) -> int:
    """Delete the metadata of the newest checkpoint, as a clean-up by mistake would."""
    numbers = [int(path.parent.name.removeprefix("chk-")) for path in (stage.checkpoints / JOB_ID).glob("*/_metadata")]
    (stage.checkpoints / JOB_ID / f"chk-{max(numbers)}" / "_metadata").unlink()
    return max(numbers)


@pytest.mark.parametrize("retained", ["1", "3"])
def test_a_newest_checkpoint_that_is_gone_is_noticed(stage: Stage, build: Build, store: str, retained: str) -> None:
    options = {"state_checkpoints_num__retained": retained}
    stage.start(build, hold_at=9, **OWN_JOB, **options).wait_until_held().lose_driver()
    number = remove_newest(stage)
    before = files(stage)
    message = rf"checkpoint {number} of job {JOB_ID} was published and is now missing.*execution.recover=older"
    with pytest.raises(NoSuchSnapshot, match=message):
        stage.start(build, **RECOVERED, **options)
    after = {name: data for name, data in files(stage).items() if not name.startswith("owner/")}
    assert after == {name: data for name, data in before.items() if not name.startswith("owner/")}
    with pytest.raises(NoSuchSnapshot, match=message):
        stage.start(build, **RECOVERED, **options)
    job = stage.run(build, **{**RECOVERED, "execution_recover": "older"}, **options)
    assert job.restarts() == 0
    assert set(results(store)) == set(RESULTS)


def test_a_loss_that_was_accepted_is_no_loss_afterwards(stage: Stage, build: Build, store: str) -> None:
    options = {"state_checkpoints_num__retained": "3"}
    stage.start(build, hold_at=9, **OWN_JOB, **options).wait_until_held().lose_driver()
    remove_newest(stage)
    accepting = {**RECOVERED, "execution_recover": "older"}
    stage.start(build, hold_at=0, **accepting, **options).wait_until_held().lose_driver()
    stage.run(build, **RECOVERED, **options)
    assert set(results(store)) == set(RESULTS)


# --- giving back ---
def test_a_job_that_failed_to_start_is_free(stage: Stage, build: Build, store: str) -> None:
    first = stage.start(build, hold_at=4, **OWN_JOB).wait_until_held()

    def unfit(env: StreamExecutionEnvironment) -> None:
        build(env)
        lock = threading.Lock()
        env.from_elements(1).map(lambda n: (n, lock)).discard()

    with pytest.raises(NotSerializable):
        stage.start(unfit, **TAKING_OVER)
    first.finish()
    assert sorted(results(store)) == sorted(RESULTS), "who cannot run the job does not take it"


def test_an_owner_that_cannot_be_known_is_no_reason_to_go_on(
    stage: Stage, build: Build, store: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The storage is away when the job asks whether it may commit: it restarts, and asks again."""
    job = stage.start(build, hold_at=4, **OWN_JOB).wait_until_held()
    asked = []
    check = Ownership.check

    def away(self: Ownership) -> None:
        asked.append(len(results(store)))
        if len(asked) < 4:
            raise StorageError("away")
        check(self)

    monkeypatch.setattr(Ownership, "check", away)
    job.finish()
    assert job.restarts() > 0 and sorted(results(store)) == sorted(RESULTS)


# --- BATCH ---
class TestBatch:
    """A BATCH job commits at its end, once, on the driver. No checkpoint says what another run of the job has
    committed."""

    @pytest.fixture
    def batch(self, build: Build) -> Build:
        def of_batch(env: StreamExecutionEnvironment) -> None:
            env.set_runtime_mode(RuntimeExecutionMode.BATCH)
            build(env)

        return of_batch

    def test_the_displaced_one_commits_nothing(self, stage: Stage, batch: Build, store: str) -> None:
        first = stage.start(batch, hold_at=0, **OWN_JOB).wait_until_held()
        with pytest.raises(JobRunning):
            stage.start(batch, **OWN_JOB)
        second = stage.start(batch, hold_at=0, **OWN_JOB, execution_takeover="true").wait_until_held()
        displaced(first)
        assert results(store) == []
        second.finish()
        assert sorted(results(store)) == sorted(RESULTS)

    def test_one_that_commits_cannot_be_displaced(
        self, stage: Stage, batch: Build, store: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        refused: list[str] = []
        decide = Ownership.decide

        def contested(self: Ownership) -> None:
            decide(self)
            monkeypatch.undo()
            with pytest.raises(JobRunning) as error:
                stage.start(batch, **OWN_JOB, execution_takeover="true")
            refused.append(str(error.value))

        monkeypatch.setattr(Ownership, "decide", contested)
        stage.run(batch, **OWN_JOB)
        assert "is committing the results of the job" in refused[0]
        assert sorted(results(store)) == sorted(RESULTS)
        stage.run(batch, **OWN_JOB)
        assert len(results(store)) == 2 * len(RESULTS), "once it has ended, it can be run again"
