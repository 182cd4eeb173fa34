"""Everything that can be wrong with storage, snapshots, functions and settings: a clear error, or another try."""

import errno
import os
import threading
import time

import pytest

from penstock.common import JobStatus
from penstock.datastream.checkpoint_storage import JobManagerCheckpointStorage
from penstock.datastream.functions import CheckpointedFunction, KeyedProcessFunction, MapFunction
from penstock.datastream.state import ListStateDescriptor, ValueStateDescriptor
from penstock.engine.checkpoint.metadata import FILE, VERSION
from penstock.engine.checkpoint.store import read_snapshot
from penstock.errors import (
    CheckpointFailed,
    ConfigurationError,
    CorruptSnapshot,
    JobCancelled,
    JobFailed,
    NoSuchSnapshot,
    SnapshotError,
    StateNotRestored,
    StorageError,
    UnknownFormat,
)
from penstock.testing import pause, scripted

ERRORS: dict = {}
"""By what is done: errors still to be raised there; None lets one pass."""
STARTS: list = []
SEEN: list = []


@pytest.fixture(autouse=True)
def _fresh():
    for shared in (ERRORS, STARTS, SEEN):
        shared.clear()


def hit(what):
    if ERRORS.get(what):
        error = ERRORS[what].pop(0)
        if error is not None:
            raise error


class Stateful(KeyedProcessFunction, CheckpointedFunction):
    """Counts by key and in operator state, and fails as ERRORS says."""

    def initialize_state(self, context):
        STARTS.append(context.is_restored())
        hit("initialize")
        self.total = context.get_operator_state_store().get_list_state(ListStateDescriptor("total"))
        self.count = context.get_keyed_state_store().get_state(ValueStateDescriptor("count"))

    def snapshot_state(self, context):
        hit("snapshot")

    def process_element(self, value, ctx):
        SEEN.append(value)
        hit(value)
        self.count.update((self.count.value() or 0) + 1)
        self.total.add(value)
        yield value, self.count.value(), len(self.total.get())


SCRIPT = tuple(step for n in range(8) for step in (n, pause()))
RESULTS = [(n, n // 2 + 1, n + 1) for n in range(8)]


def program(env):
    stream = scripted(env, *SCRIPT).uid("source").key_by(lambda n: n % 2)
    return stream.process(Stateful()).name("Stateful").uid("stateful")


def endless(env):
    stream = scripted(env, *SCRIPT, stay=True).uid("source").key_by(lambda n: n % 2)
    stream.process(Stateful()).name("Stateful").uid("stateful").discard()


def tolerating(number):
    return {"execution.checkpointing.tolerable-failed-checkpoints": number}


@pytest.fixture
def on_files(hooked):
    """Options for checkpoints on the file system with the hook, with every state in a file of its own."""
    return {
        "execution.checkpointing.dir": hooked.url,
        "execution.checkpointing.data-inline-threshold": "0 b",
    }


def full(call, path):
    if call in ("write", "move"):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


class TestStorage:
    def test_nothing_wrong(self, run, on_files, hooked):
        assert run(program, on_files).results == RESULTS
        assert hooked.names() == [], "a job that has ended leaves nothing"

    def test_a_full_disk_fails_the_job(self, run, on_files, hooked):
        hooked.on(lambda call, path: full(call, path) if "chk-" in path else None)
        with pytest.raises(CheckpointFailed) as raised:
            run(program, on_files)
        message = str(raised.value)
        assert "No space left on device" in message and "hooked://ckpt/" in message and "chk-1/slot-0" in message
        assert "0 failures in a row are tolerated (execution.checkpointing.tolerable-failed-checkpoints)" in message
        tries = [path for call, path in hooked.fs.calls if call == "write" and "chk-" in path]
        assert len(tries) == 1, "another try does not make room"

    def test_or_is_tolerated_until_there_is_room(self, run, on_files, hooked, caplog):
        attempts = []

        def for_a_while(call, path):
            if call == "write" and "slot-" in path and len(attempts) < 3:
                attempts.append(path)
                full(call, path)

        hooked.on(for_a_while)
        outcome = run(program, {**on_files, **tolerating(3)})
        assert outcome.results == RESULTS and len(attempts) == 3
        assert caplog.text.count("failed and is tolerated") == 3
        assert outcome.coordinator.history[0].number == 4

    def test_or_the_job_restarts_from_the_last_complete_one(self, run, on_files, hooked, restarts):
        numbers = []

        def third(call, path):
            if call == "write" and "chk-3/slot-" in path:
                numbers.append(path)
                full(call, path)

        hooked.on(third)
        assert run(program, {**on_files, **restarts(1)}).results == RESULTS
        assert len(numbers) == 1 and STARTS == [False, True]

    def test_a_full_disk_at_the_publication(self, run, on_files, hooked, restarts):
        published = []

        def second(call, path):
            if call == "move" and path.endswith(f"chk-2/{FILE}"):
                published.append(path)
                full(call, path)

        hooked.on(second)
        assert run(program, {**on_files, **restarts(1)}).results == RESULTS
        assert len(published) == 1 and STARTS == [False, True]

    def test_the_last_complete_checkpoint_is_never_damaged(self, run, on_files, hooked):
        """Whatever becomes of the second checkpoint: when the job has failed, the first is there and whole."""
        hooked.on(lambda call, path: full(call, path) if "chk-2" in path else None)
        with pytest.raises(CheckpointFailed):
            run(program, on_files)
        hooked.on(lambda call, path: None)
        (metadata,) = [name for name in hooked.names() if name.endswith(FILE)]
        assert "chk-1" in metadata
        ERRORS.clear()
        results = run(program, {"execution.state-recovery.path": f"hooked://{metadata}"}).results
        assert results and results == RESULTS[-len(results) :]

    @pytest.mark.parametrize("phase", [0, 1, 2])
    def test_a_storage_that_fails_every_third_call(self, run, on_files, hooked, restarts, phase):
        """Tries, tolerated checkpoints and restarts together bring the job to its end, with the right results."""
        calls = []

        def third(call, path):
            calls.append(call)
            if len(calls) % 3 == phase:
                raise ConnectionResetError(errno.ECONNRESET, "Connection reset by peer")

        hooked.on(third)
        assert run(program, {**on_files, **tolerating(5), **restarts(5)}).results == RESULTS

    def test_a_storage_that_fails_now_and_then(self, run, on_files, hooked, restarts):
        """Every seventh call of the storage fails."""
        calls = []

        def seventh(call, path):
            calls.append(call)
            if len(calls) % 7 == 0:
                raise ConnectionResetError(errno.ECONNRESET, "Connection reset by peer")

        hooked.on(seventh)
        assert run(program, {**on_files, **tolerating(5), **restarts(5)}).results == RESULTS

    def test_a_storage_that_hangs(self, start, on_files, hooked, gate):
        hooked.on(lambda call, path: gate.wait(600) if call == "write" and "chk-" in path else None)
        options = {**on_files, "execution.checkpointing.timeout": "100 ms", "execution.checkpointing.interval": "10 ms"}
        client = start(endless, options)
        with pytest.raises(CheckpointFailed, match=r"checkpoint 1 failed.*it was not complete after 100 ms"):
            client.get_job_execution_result().result(60)

    def test_records_flow_while_it_hangs(self, start, on_files, hooked, gate, until, caplog):
        """Records flow while the upload hangs, and a checkpoint that comes too late is thrown away."""
        hooked.on(lambda call, path: gate.wait(600) if call == "write" and "chk-1/" in path else None)
        options = {
            **on_files,
            **tolerating(10_000),
            "execution.checkpointing.timeout": "300 ms",
            "execution.checkpointing.interval": "10 ms",
        }
        client = start(endless, options)
        until(lambda: len(SEEN) == 8)
        until(lambda: "checkpoint 1 failed and is tolerated: it was not complete after 300 ms" in caplog.text)
        gate.set()
        until(lambda: client._job.job_driver.coordinator.history)
        until(lambda: not [name for name in hooked.names() if f"{client.get_job_id()}/chk-1/" in name])
        assert client.get_job_status().result(60) is JobStatus.RUNNING

    def test_cancelling_while_it_hangs(self, start, on_files, hooked, gate, until):
        hooked.on(lambda call, path: gate.wait(600) if call == "write" and "chk-" in path else None)
        client = start(endless, {**on_files, "execution.checkpointing.interval": "10 ms"})
        until(lambda: client._job.job_driver.coordinator.awaits_slots())
        client.cancel().result(60)
        assert not gate.is_set()
        assert client.get_job_status().result(60) is JobStatus.CANCELED

    @pytest.mark.parametrize("call", ["delete", "find"])
    def test_tidying_up_that_fails_does_not_fail_the_job(self, run, on_files, hooked, call, caplog):
        """The job has done its work, and its results are out."""

        def refuse(name, path):
            if name == call and len(SEEN) == 8:
                raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))

        hooked.on(refuse)
        assert run(program, on_files).results == RESULTS
        assert "not deleted" in caplog.text

    def test_nor_does_an_end_that_cannot_be_noted_down(self, run, on_files, hooked, caplog):
        hooked.on(lambda call, path: full(call, path) if ".over" in path else None)
        assert run(program, {**on_files, "pipeline.job-id": "ab" * 16}).results == RESULTS
        assert "not deleted" in caplog.text and ".over" in caplog.text

    def test_the_last_checkpoint_is_not_tried_in_a_frenzy(self, run, on_files, hooked, recording_clock):
        """The input is over and the disk is full: the last checkpoint is tried again at the pace of the others."""
        failures = []

        def for_a_while(call, path):
            if call == "write" and len(SEEN) == 8 and len(failures) < 50:
                failures.append(clock.now())
                full(call, path)

        hooked.on(for_a_while)
        clock = recording_clock()
        assert run(program, {**on_files, **tolerating(1000)}, clock=clock).results == RESULTS
        assert failures[-1] - failures[0] >= 40 * 100, (
            f"50 tries within {failures[-1] - failures[0]} ms, not 100 ms each"
        )


class TestPlaces:
    def test_a_directory_that_does_not_exist_is_made(self, run, tmp_path):
        options = {"execution.checkpointing.dir": tmp_path / "not" / "there", **tolerating(0)}
        assert run(program, options).results == RESULTS

    @pytest.mark.parametrize("below", ["", "/deeper"])
    def test_a_file_where_the_directory_should_be(self, run, tmp_path, below):
        (tmp_path / "file").write_text("x")
        options = {"execution.checkpointing.dir": f"{tmp_path}/file{below}"}
        with pytest.raises((StorageError, CheckpointFailed), match=f"{tmp_path}/file"):
            run(program, options)

    def test_a_directory_that_cannot_be_written(self, run, on_files, hooked):
        def refuse(call, path):
            if call in ("makedirs", "write", "move"):
                raise PermissionError(errno.EACCES, "Permission denied", path)

        hooked.on(refuse)
        with pytest.raises(StorageError, match=r"cannot write 'hooked://ckpt/.*Permission denied"):
            run(program, on_files)
        assert len([1 for call, _ in hooked.fs.calls if call in ("makedirs", "write")]) == 1
        assert SEEN == [], "that is found out before the job starts"

    def test_a_directory_that_cannot_be_looked_into(self, run, on_files, hooked):
        def refuse(call, path):
            raise PermissionError(errno.EACCES, "Permission denied", path)

        hooked.fs.store["/ckpt/x"] = None
        hooked.on(refuse)
        with pytest.raises(StorageError, match=r"cannot \w+ 'hooked://ckpt.*Permission denied"):
            run(program, {**on_files, "pipeline.job-id": "ab" * 16})

    def test_a_bucket_that_does_not_exist(self, run, on_files, hooked, restarts):
        """Object stores say FileNotFoundError. Publishing is a checkpoint that fails, as any other."""

        def missing(call, path):
            if call in ("write", "move") and FILE in path:
                raise FileNotFoundError("The specified bucket does not exist")

        hooked.on(missing)
        with pytest.raises(CheckpointFailed, match="The specified bucket does not exist"):
            run(program, on_files)

    @pytest.mark.parametrize("url", ["nowhere://x/y", "s3nope://bucket"])
    def test_a_file_system_that_is_not_known(self, run, url):
        with pytest.raises(StorageError, match=f"cannot use '{url}"):
            run(program, {"execution.checkpointing.dir": url})

    def test_state_that_is_too_large_for_the_driver(self, run):
        def build(env):
            env.get_checkpoint_config().set_checkpoint_storage(JobManagerCheckpointStorage(max_state_size=300))
            return program(env)

        with pytest.raises(
            CheckpointFailed,
            match=r"the state of slot 0 has \d+ bytes.*driver's memory may have 300.*checkpointing.dir",
        ):
            run(build)

    def test_a_savepoint_is_not_limited_by_that(self, start, tmp_path, until):
        def build(env):
            env.get_checkpoint_config().set_checkpoint_storage(JobManagerCheckpointStorage(max_state_size=300))
            endless(env)

        client = start(build, {"execution.checkpointing.interval": "1 h"})
        until(lambda: len(SEEN) == 8)
        assert client.trigger_savepoint(str(tmp_path)).result(60)


class TestFunctions:
    def test_snapshot_state_that_raises_fails_the_job(self, run):
        ERRORS["snapshot"] = [None, ValueError("not like this")]
        with pytest.raises(CheckpointFailed) as raised:
            run(program)
        message = str(raised.value)
        assert "checkpoint 2 failed" in message and "Stateful (uid stateful, subtask 0)" in message
        assert "ValueError: not like this" in message and "snapshot_state" in message

    @pytest.mark.parametrize("tolerable", [1, 2, 3])
    def test_as_many_in_a_row_as_are_tolerated(self, run, tolerable):
        ERRORS["snapshot"] = [None, *[ValueError("no")] * tolerable, None, *[ValueError("no")] * tolerable]
        assert run(program, tolerating(tolerable)).results == RESULTS
        ERRORS["snapshot"] = [None, *[ValueError("no")] * (tolerable + 1)]
        with pytest.raises(
            CheckpointFailed, match=f"checkpoint {tolerable + 2} failed, and {tolerable} failures in a row"
        ):
            run(program, tolerating(tolerable))

    def test_or_it_restarts(self, run, restarts):
        ERRORS["snapshot"] = [None, ValueError("once")]
        assert run(program, restarts(1)).results == RESULTS
        assert STARTS == [False, True]

    def test_initialize_state_that_raises(self, run, restarts):
        ERRORS["initialize"] = [ValueError("not ready")]
        with pytest.raises(JobFailed, match=r"Stateful \(uid stateful, subtask 0\) failed: ValueError: not ready"):
            run(program)
        ERRORS["initialize"] = [ValueError("not ready")]
        assert run(program, restarts(1)).results == RESULTS

    def test_initialize_state_that_raises_when_restored(self, run, restarts):
        ERRORS[4] = [ValueError("boom")]
        ERRORS["initialize"] = [None, ValueError("not ready"), ValueError("still not")]
        outcome = run(program, restarts(3))
        assert outcome.results == RESULTS and STARTS == [False, True, True, True]

    def test_a_keyed_value_that_cannot_be_pickled(self, run):
        def build(env):
            return (
                scripted(env, 1, pause(), 2, pause()).key_by(lambda n: n).process(Unpicklable()).name("Locks").uid("l")
            )

        with pytest.raises(CheckpointFailed, match=r"Locks \(uid l, subtask 0\) failed.*cannot pickle '_thread.lock'"):
            run(build)

    def test_exit_does_not_end_the_process(self, run):
        ERRORS["snapshot"] = [SystemExit(3)]
        with pytest.raises(CheckpointFailed, match="SystemExit: 3"):
            run(program)


class Unpicklable(KeyedProcessFunction):
    def open(self, runtime_context):
        self.state = runtime_context.get_state(ValueStateDescriptor("my locks"))

    def process_element(self, value, ctx):
        self.state.update(threading.Lock())
        yield value


@pytest.fixture
def savepoint(start, until, tmp_path):
    """The path of a savepoint of the program."""

    def savepoint(build=endless, parallelism=1):
        client = start(build, {"execution.checkpointing.interval": None}, parallelism=parallelism)
        until(lambda: len(SEEN) == 8)
        path = client.stop_with_savepoint(False, str(tmp_path / "savepoints")).result(60)
        SEEN.clear()
        STARTS.clear()
        return path.removeprefix("file://")

    return savepoint


class TestSnapshots:
    def starting(self, path, **more):
        return {"execution.state-recovery.path": path, **more}

    def test_nothing_wrong(self, run, savepoint):
        assert run(program, self.starting(savepoint())).results == [] and STARTS == [True]

    def test_of_another_job(self, run, savepoint):
        path = savepoint()

        def other(env):
            return scripted(env, 1).uid("my source").map(Passes()).uid("mine")

        with pytest.raises(StateNotRestored) as raised:
            run(other, self.starting(path))
        message = str(raised.value)
        assert path in message and "Penstock job" in message
        assert "Stateful (uid stateful)" in message and "(uid source)" in message, "what was found"
        assert "mine, my source" in message.replace("collect-2, ", ""), "what there is"
        assert "allow-non-restored-state (-n)" in message

    def test_of_another_job_on_purpose(self, run, savepoint):
        options = self.starting(savepoint(), **{"execution.state-recovery.ignore-unclaimed-state": "true"})
        assert run(lambda env: scripted(env, 1).uid("my source").map(Passes()).uid("mine"), options).results == [1]

    def test_that_is_not_there(self, run, tmp_path):
        with pytest.raises(NoSuchSnapshot, match=f"no checkpoint or savepoint at '{tmp_path}/nothing'"):
            run(program, self.starting(f"{tmp_path}/nothing"))

    def test_written_by_a_newer_version(self, run, savepoint):
        path = savepoint()
        self.edit(path, lambda data: data.replace(f"penstock-snapshot {VERSION} ".encode(), b"penstock-snapshot 9 "))
        with pytest.raises(UnknownFormat, match=rf"has format version 9.*reads up to {VERSION}"):
            run(program, self.starting(path))

    @pytest.mark.parametrize("damage", [lambda data: data[:-10], lambda data: b"", lambda data: b"hello" + data])
    def test_torn_metadata(self, run, savepoint, damage):
        path = savepoint()
        self.edit(path, damage)
        with pytest.raises(CorruptSnapshot, match=f"{path}/{FILE}"):
            run(program, self.starting(path))

    def edit(self, path, change, name=FILE):
        with open(f"{path}/{name}", "rb") as file:
            data = file.read()
        with open(f"{path}/{name}", "wb") as file:
            file.write(change(data))

    def large(self, savepoint, monkeypatch):
        """A savepoint whose state is in a file."""
        monkeypatch.setattr("penstock.engine.snapshots.writing.SAVEPOINT_INLINE", 0)
        path = savepoint()
        (name,) = [name for name in os.listdir(path) if name != FILE]
        return path, name

    def test_a_damaged_file_fails_the_job_at_once(self, run, savepoint, monkeypatch, restarts):
        path, name = self.large(savepoint, monkeypatch)
        self.edit(path, lambda data: data[:40] + bytes([data[40] ^ 1]) + data[41:], name)
        with pytest.raises(CorruptSnapshot, match=rf"(?s)file 'file://{path}/{name}' of the checkpoint cannot be used"):
            run(program, {**self.starting(path), **restarts(5)})
        assert len(STARTS) <= 1, "another try would not help"

    def test_a_missing_file(self, run, savepoint, monkeypatch, restarts):
        path, name = self.large(savepoint, monkeypatch)
        os.remove(f"{path}/{name}")
        with pytest.raises(CorruptSnapshot, match=rf"file 'file://{path}/{name}' of the checkpoint is missing"):
            run(program, {**self.starting(path), **restarts(5)})

    def test_a_storage_that_cannot_be_reached_for_a_moment(self, run, start, until, hooked, restarts, monkeypatch):
        """Unlike damage, this passes: the call, or the job, is tried again."""
        monkeypatch.setattr("penstock.engine.snapshots.writing.SAVEPOINT_INLINE", 0)
        client = start(endless, {"execution.checkpointing.interval": None})
        until(lambda: len(SEEN) == 8)
        path = client.stop_with_savepoint(False, "hooked://savepoints").result(60)
        down = [1] * 4

        def read(call, name):
            if call == "read" and "slot-" in name and down:
                down.pop()
                raise ConnectionResetError(errno.ECONNRESET, "Connection reset by peer")

        hooked.on(read)
        assert run(program, {**self.starting(path), **restarts(5)}).results == [] and not down

    def test_more_parallelism_than_key_groups(self, run, savepoint):
        def build(env):
            env.set_max_parallelism(2)
            endless(env)

        path = savepoint(build)
        with pytest.raises(StateNotRestored, match=r"Stateful \(uid stateful\): parallelism 3 is above.* 2 "):
            run(program, self.starting(path), parallelism=3)

    def test_another_max_parallelism(self, run, savepoint):
        path = savepoint()

        def build(env):
            env.set_max_parallelism(7)
            return program(env)

        with pytest.raises(StateNotRestored, match=r"max parallelism is 7.*was written with 128.*set it to 128"):
            run(build, self.starting(path))

    def test_a_function_that_asks_for_another_kind_of_state(self, run, savepoint, restarts):
        path = savepoint()

        def build(env):
            stream = scripted(env, *SCRIPT, 8).uid("source").key_by(lambda n: n % 2)
            return stream.process(AsksForAList()).uid("stateful")

        with pytest.raises(JobFailed, match=r"'count'.*value.*list"):
            run(build, {**self.starting(path), **restarts(3)})


class Passes(MapFunction):
    def map(self, value):
        return value


class AsksForAList(KeyedProcessFunction):
    def open(self, runtime_context):
        STARTS.append("open")
        self.state = runtime_context.get_list_state(ListStateDescriptor("count"))

    def process_element(self, value, ctx):
        yield value


JOB_ID = "ab" * 16


class TestRecovery:
    """execution.recover=latest: a new driver looks for the checkpoints of the one before."""

    def options(self, tmp_path, **more):
        return {
            "execution.checkpointing.dir": tmp_path,
            "pipeline.job-id": JOB_ID,
            "execution.recover": "latest",
            "execution.checkpointing.data-inline-threshold": "0 b",
            **more,
        }

    def folder(self, tmp_path):
        return tmp_path / JOB_ID

    def failed(self, run, tmp_path):
        """A job that has failed for good behind some checkpoints."""
        ERRORS[6] = [ValueError("boom")]
        with pytest.raises(JobFailed):
            run(program, self.options(tmp_path))
        SEEN.clear()
        STARTS.clear()

    def test_it_goes_on(self, run, tmp_path):
        self.failed(run, tmp_path)
        results = run(program, self.options(tmp_path)).results
        assert results and results == RESULTS[-len(results) :] and STARTS == [True]

    def test_a_job_that_has_ended_is_not_run_again(self, run, tmp_path, caplog):
        run(program, self.options(tmp_path))
        SEEN.clear()
        assert run(program, self.options(tmp_path)).results == []
        assert SEEN == [] and "nothing to recover" in caplog.text

    @pytest.mark.parametrize("missing", ["execution.checkpointing.dir", "pipeline.job-id"])
    def test_it_needs_a_place_and_an_id(self, run, tmp_path, missing):
        with pytest.raises(ConfigurationError, match=f"execution.recover=latest.*{missing} is not set"):
            run(program, self.options(tmp_path, **{missing: None}))

    def test_a_newest_checkpoint_that_is_damaged_is_named(self, run, tmp_path):
        self.failed(run, tmp_path)
        (metadata,) = self.folder(tmp_path).glob(f"chk-*/{FILE}")
        metadata.write_bytes(metadata.read_bytes()[:-1])
        with pytest.raises(CorruptSnapshot, match=str(metadata)):
            run(program, self.options(tmp_path))

    def test_another_program_under_the_same_id(self, run, tmp_path):
        self.failed(run, tmp_path)
        with pytest.raises(StateNotRestored, match=rf"checkpoint \d+ of job {JOB_ID}.*Stateful \(uid stateful\)"):
            run(lambda env: scripted(env, 1).map(Passes()), self.options(tmp_path))

    def test_half_a_checkpoint_is_passed_over_and_cleared_away(self, run, tmp_path):
        self.failed(run, tmp_path)
        half = self.folder(tmp_path) / "chk-99"
        half.mkdir()
        (half / "slot-0-x").write_bytes(b"half")
        outcome = run(program, self.options(tmp_path))
        assert outcome.results == RESULTS[-len(outcome.results) :]
        assert min(c.number for c in outcome.coordinator.history) == 100, "its number is not used again"
        assert not half.exists()

    def test_what_a_driver_left_that_died_at_its_first_checkpoint_is_cleared_away(self, run, tmp_path):
        half = self.folder(tmp_path) / "chk-1"
        half.mkdir(parents=True)
        (half / "slot-0-x").write_bytes(b"half")
        assert run(program, self.options(tmp_path)).results == RESULTS
        assert not half.exists()

    RETAIN = {"execution.checkpointing.externalized-checkpoint-retention": "RETAIN_ON_CANCELLATION"}

    def cancelled(self, start, until, tmp_path, build, ready, **more):
        client = start(build, self.options(tmp_path, **more))
        until(lambda: ready(client))
        client.cancel().result(60)
        with pytest.raises(JobCancelled):
            client.get_job_execution_result().result(60)

    def complete(self, tmp_path):
        return sorted(path.parent.name for path in self.folder(tmp_path).glob(f"chk-*/{FILE}"))

    def test_a_cancelled_job_leaves_nothing(self, start, until, tmp_path):
        self.cancelled(
            start, until, tmp_path, endless, lambda c: c._job.job_driver.coordinator.history, **{INTERVAL: "10 ms"}
        )
        assert self.complete(tmp_path) == []

    def test_unless_it_retains(self, start, until, tmp_path):
        more = {**self.RETAIN, INTERVAL: "10 ms"}
        self.cancelled(start, until, tmp_path, endless, lambda c: c._job.job_driver.coordinator.history, **more)
        (kept,) = self.complete(tmp_path)
        assert read_snapshot(f"{self.folder(tmp_path)}/{kept}")

    def test_a_recovered_job_that_retains_keeps_what_it_was_recovered_from(self, start, run, until, tmp_path):
        """It is cancelled before it has taken a checkpoint of its own; the earlier one is all there is."""
        self.failed(run, tmp_path)
        before = self.complete(tmp_path)
        assert before
        self.cancelled(start, until, tmp_path, endless, lambda c: SEEN, **self.RETAIN, **{INTERVAL: "1 h"})
        assert self.complete(tmp_path) == before

    def test_what_is_not_claimed_is_not_deleted(self, run, start, until, tmp_path):
        """NO_CLAIM: the job starts from a checkpoint of the run before, which has the same id, and does not own it."""
        self.failed(run, tmp_path)
        (before,) = self.complete(tmp_path)
        path = f"{self.folder(tmp_path)}/{before}"
        options = self.options(tmp_path, **{"execution.recover": "none", "execution.state-recovery.path": path})
        run(program, {**options, "execution.state-recovery.claim-mode": "NO_CLAIM"})
        assert self.complete(tmp_path) == [before]

    def test_what_is_claimed_is(self, run, tmp_path):
        self.failed(run, tmp_path)
        path = f"{self.folder(tmp_path)}/{self.complete(tmp_path)[0]}"
        options = {
            "execution.checkpointing.dir": tmp_path / "other",
            "execution.state-recovery.path": path,
            "execution.state-recovery.claim-mode": "CLAIM",
        }
        results = run(program, options).results
        assert results == RESULTS[-len(results) :]
        assert self.complete(tmp_path) == []


INTERVAL = "execution.checkpointing.interval"


class TestAskingForSavepoints:
    def test_without_a_place(self, start):
        with pytest.raises(ConfigurationError, match=r"a savepoint needs a directory.*savepoint-dir"):
            start(endless).trigger_savepoint().result(60)

    def test_a_place_that_is_full(self, start, hooked, until):
        """Whoever asked for the savepoint is told that it failed, and the job goes on."""
        client = start(endless)
        until(lambda: len(SEEN) == 8)
        hooked.on(full)
        with pytest.raises(CheckpointFailed, match=r"the savepoint failed:.*No space left on device"):
            client.trigger_savepoint("hooked://savepoints").result(60)
        hooked.on(lambda call, path: None)
        assert client.trigger_savepoint("hooked://savepoints").result(60)
        assert client.get_job_status().result(60) is JobStatus.RUNNING

    def test_a_place_that_is_not_known(self, start):
        with pytest.raises(StorageError, match="cannot use 'nowhere://x'"):
            start(endless).trigger_savepoint("nowhere://x").result(60)

    def test_stopping_with_one_that_fails_does_not_stop(self, start, hooked, until):
        client = start(endless)
        until(lambda: len(SEEN) == 8)
        hooked.on(full)
        with pytest.raises(CheckpointFailed, match="No space left on device"):
            client.stop_with_savepoint(False, "hooked://savepoints").result(60)
        hooked.on(lambda call, path: None)
        until(lambda: client.get_job_status().result(60) is JobStatus.RUNNING)
        client.stop_with_savepoint(False, "hooked://savepoints").result(60)
        assert client.get_job_status().result(60) is JobStatus.FINISHED

    def test_draining_with_one_that_fails_recovers(self, start, hooked, until, restarts):
        """Draining has brought time to its end, which cannot be undone: the job goes back to its last checkpoint."""
        client = start(endless, {**restarts(1, "1 ms"), INTERVAL: "10 ms"})
        until(lambda: client._job.job_driver.coordinator.history and len(SEEN) == 8)
        hooked.on(full)
        with pytest.raises(CheckpointFailed, match="No space left on device"):
            client.stop_with_savepoint(True, "hooked://savepoints").result(60)
        until(lambda: STARTS == [False, True])
        assert "the job was drained, and the savepoint failed" in client._job.view.failures[0].message

    def test_of_a_job_that_has_ended(self, start, tmp_path):
        client = start(lambda env: program(env).discard())
        client.get_job_execution_result().result(60)
        with pytest.raises(CheckpointFailed, match="FINISHED: no savepoint can be taken"):
            client.trigger_savepoint(str(tmp_path)).result(60)

    def test_of_a_job_that_has_failed(self, start, tmp_path):
        client = start(lambda env: program(env).map(lambda value: value[7]).discard())
        with pytest.raises(JobFailed) as failure:
            client.get_job_execution_result().result(60)
        with pytest.raises(CheckpointFailed, match="FAILED: no savepoint can be taken") as refused:
            client.trigger_savepoint(str(tmp_path)).result(60)
        assert refused.value.__cause__ is failure.value, "the traceback goes on with the reason"

    def test_of_a_job_that_is_ending(self, start, on_files, hooked, gate, until, tmp_path):
        """All is read, and the job clears its checkpoints away: nobody is there any more to take a savepoint."""
        clearing = threading.Event()

        def slow(call, path):
            if call == "find" and len(SEEN) == 8:
                clearing.set()
                gate.wait(60)

        hooked.on(slow)
        client = start(lambda env: program(env).discard(), {**on_files, INTERVAL: "10 ms"})
        assert clearing.wait(60)
        asked = client.trigger_savepoint(str(tmp_path))
        time.sleep(0.05)
        gate.set()
        client.get_job_execution_result().result(60)
        assert isinstance(asked.exception(60), CheckpointFailed), "who asked waits for ever"

    def test_of_a_job_that_fails(self, start, gate, until, tmp_path):
        ERRORS["snapshot"] = [ValueError("no")]
        client = start(endless, {INTERVAL: "1 h"})
        until(lambda: len(SEEN) == 8)
        with pytest.raises(CheckpointFailed, match=r"the savepoint failed.*Stateful.*ValueError: no"):
            client.trigger_savepoint(str(tmp_path)).result(60)


def test_errors_are_penstocks_own():
    """Both can be caught as errors of a snapshot."""
    assert issubclass(StateNotRestored, SnapshotError) and issubclass(UnknownFormat, SnapshotError)
