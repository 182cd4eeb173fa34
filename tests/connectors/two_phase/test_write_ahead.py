"""Records that wait for their checkpoint: in order, sent again after a crash, and remembered as sent."""

import pickle
from collections import Counter
from types import SimpleNamespace

import pytest

from penstock.common import Types
from penstock.connectors.retrying import Retries
from penstock.datastream import StreamExecutionEnvironment
from penstock.datastream.connectors.jdbc import JdbcConnectionOptions
from penstock.datastream.connectors.prepared import MARKERS_KEPT
from penstock.datastream.connectors.write_ahead import (
    CheckpointCommitter,
    DatabaseCheckpointCommitter,
    FileCheckpointCommitter,
    GenericWriteAheadSink,
)
from penstock.errors import ConnectorError, TypeMismatch
from penstock.testing import in_process
from penstock.testing.crashes import crash_point
from tests.connectors.crashing import RECORDS, Fragile, check_seeds, make_fragile

SENT: dict[str, list] = {}
"""The outside world: what was sent, by the name of the sink and the subtask."""


class Sending(GenericWriteAheadSink):
    """Sends into SENT, and fails now and then."""

    retries = Retries(attempts=4, delay=0)

    def __init__(self, committer, name, refuses_every=3, **settings):
        super().__init__(committer, **settings)
        self.name = name
        self.refuses_every = refuses_every
        self.calls = 0

    def open(self, runtime_context):
        self.subtask = runtime_context.get_index_of_this_subtask()

    def send_values(self, values, checkpoint_id, timestamp):
        self.calls += 1
        if self.calls % self.refuses_every == 0:
            return False
        for value in values:
            crash_point("sending")
            SENT.setdefault(f"{self.name}{self.subtask}", []).append(value)
        crash_point("after sending")
        return True


def test_crashes_with_a_store_that_takes_a_record_twice(tmp_path, monkeypatch):
    """Every record arrives, and each for the first time behind those before it; without crashes none comes twice."""
    import logging

    logging.disable(logging.WARNING)
    make_fragile(monkeypatch)
    options = []

    def fresh(name):
        SENT.clear()
        options[:] = [JdbcConnectionOptions(f"jdbc:sqlite:{tmp_path}/{name}.db")]

    def build(environment):
        environment.set_parallelism(2)
        numbers = environment.from_collection(range(RECORDS)).uid("numbers").rebalance().map(Fragile()).uid("fragile")
        numbers.sink_to(Sending(FileCheckpointCommitter("crash://sent"), "a")).uid("a")
        numbers.sink_to(Sending(DatabaseCheckpointCommitter(options[0]), "b", refuses_every=5)).uid("b")

    def check(what):
        for name in "ab":
            parts = [SENT[f"{name}{subtask}"] for subtask in (0, 1)]
            assert sorted({n for part in parts for n in part}) == list(range(RECORDS)), what
            for part in parts:
                firsts = list(dict.fromkeys(part))
                assert firsts == sorted(firsts), what
                if what == "uninterrupted":
                    assert max(Counter(part).values()) == 1

    try:
        check_seeds(range(1, 21), build, check, fresh)
    finally:
        logging.disable(logging.NOTSET)


# --- one sink, call by call ---
class Remembered(CheckpointCommitter):
    """Remembers in a set that outlives the sink."""

    def __init__(self, memory):
        self.memory = memory
        self.calls = []

    def create_resource(self):
        self.calls.append("create_resource")

    def open(self):
        self.calls.append(f"open {self.job_id} {self.operator_id}")

    def close(self):
        self.calls.append("close")

    def commit_checkpoint(self, subtask_idx, checkpoint_id):
        self.memory.add((self.job_id, self.operator_id, subtask_idx, checkpoint_id))

    def is_checkpoint_committed(self, subtask_idx, checkpoint_id):
        return (self.job_id, self.operator_id, subtask_idx, checkpoint_id) in self.memory


class Listed(GenericWriteAheadSink):
    retries = Retries(attempts=3, delay=0)

    def __init__(self, committer, answers=(), **settings):
        super().__init__(committer, **settings)
        self.sent = []
        self.answers = list(answers)

    def send_values(self, values, checkpoint_id, timestamp):
        works = self.answers.pop(0) if self.answers else True
        if works:
            self.sent.append((list(values), checkpoint_id, timestamp))
        return works


class Context:
    uid = "wal"
    now = 5000

    def __init__(self, subtask=0, job="job1"):
        self.runtime = SimpleNamespace(get_index_of_this_subtask=lambda: subtask, get_job_id=lambda: job)


def started(sink, committables=(), context=None):
    committer = sink.create_committer()
    for pending in committables:
        committer.commit(pending)
    return committer, sink.create_writer(context or Context(), [])


def checkpoint(writer, number, timestamp=None):
    writer.checkpoint_id, writer.checkpoint_timestamp = number, timestamp or 1000 * number
    writer.flush(False)
    assert writer.snapshot_state(number) == []
    return pickle.loads(pickle.dumps(writer.prepare_commit()))


def test_records_are_sent_when_their_checkpoint_is_complete():
    memory = set()
    sink = Listed(Remembered(memory))
    committer, writer = started(sink)
    writer.write("x", None)
    writer.write_all(["y", "z"], None, None)
    pending = checkpoint(writer, 1)
    assert sink.sent == []
    committer.commit(pending)
    assert sink.sent == [(["x", "y", "z"], 1, 1000)]
    assert memory == {("job1", "wal", 0, (1000 << 21) + 1)}
    assert checkpoint(writer, 2) == []
    writer.close()
    committer.close()
    assert sink.committer.calls == ["create_resource", "open job1 wal", "close"]


def test_what_does_not_work_is_sent_again_after_the_next_checkpoint_and_first():
    sink = Listed(Remembered(set()), answers=[False, False])
    committer, writer = started(sink)
    for number in (1, 2, 3):
        writer.write(number, None)
        committer.commit(checkpoint(writer, number))
    assert sink.sent == [([1], 1, 1000), ([2], 2, 2000), ([3], 3, 3000)]
    assert sink.answers == []


def test_order_is_kept_through_checkpoints_that_complete_late():
    """Of three checkpoints under way the first completes and is refused; each later one has all that is unsent."""
    memory = set()
    sink = Listed(Remembered(memory), answers=[False])
    committer, writer = started(sink)
    writer.write(1, None)
    first = checkpoint(writer, 1)
    writer.write(2, None)
    second = checkpoint(writer, 2)
    committer.commit(first)
    writer.write(3, None)
    third = checkpoint(writer, 3)
    assert sink.sent == []
    recovered = Listed(Remembered(memory))
    started(recovered, [second, third])
    assert [values for values, *_ in recovered.sent] == [[1], [2], [3]]
    committer.commit(second)
    committer.commit(third)
    assert [values for values, *_ in sink.sent] == [[1], [2], [3]]


def test_after_a_crash_only_what_was_not_noted_is_sent_again():
    memory = set()
    sink = Listed(Remembered(memory))
    committer, writer = started(sink)
    writer.write(1, None)
    first = checkpoint(writer, 1)
    committer.commit(first)
    writer.write(2, None)
    second = checkpoint(writer, 2)
    again = Listed(Remembered(memory))
    started(again, [first, second])
    assert [values for values, *_ in again.sent] == [[2]]


def test_a_job_that_goes_back_numbers_its_checkpoints_again_and_loses_nothing():
    memory = set()
    for attempt, time in enumerate((1000, 8000)):
        sink = Listed(Remembered(memory))
        committer, writer = started(sink)
        for number in (1, 2):
            writer.write((attempt, number), None)
            committer.commit(checkpoint(writer, number, time + number))
        assert [values for values, *_ in sink.sent] == [[(attempt, 1)], [(attempt, 2)]]
    ids = sorted(identifier for *_, identifier in memory)
    assert len(set(ids)) == 4


def test_what_another_job_left_is_remembered_under_its_name():
    memory = set()
    sink = Listed(Remembered(memory))
    _, writer = started(sink)
    writer.write(1, None)
    pending = checkpoint(writer, 1)
    later = Listed(Remembered(memory))
    committer, writer = started(later, [pending], Context(job="job2"))
    writer.write(2, None)
    committer.commit(checkpoint(writer, 2))
    assert {job for job, *_ in memory} == {"job1", "job2"}
    assert later.committer.calls == [
        "create_resource", "open job1 wal", "close", "create_resource", "open job2 wal",
    ]  # fmt: skip
    named = Listed(Remembered(memory), job_id="own")
    committer, writer = started(named)
    writer.write(3, None)
    committer.commit(checkpoint(writer, 1))
    assert ("own", "wal", 0, (1000 << 21) + 1) in memory


def test_at_the_end_it_is_tried_a_few_times_and_then_the_job_fails():
    sink = Listed(Remembered(set()), answers=[False, False])
    committer, writer = started(sink)
    writer.write(1, None)
    writer.flush(True)
    committer.commit(writer.prepare_commit())
    assert sink.sent == [([1], None, None)]
    stubborn = Listed(Remembered(set()), answers=[False] * 9)
    committer, writer = started(stubborn)
    writer.write(1, None)
    writer.flush(True)
    with pytest.raises(ConnectorError, match=r"Listed.send_values failed 3 times"):
        committer.commit(writer.prepare_commit())


def test_types_are_checked_and_mistakes_found():
    sink = Listed(Remembered(set()), type_info=Types.INT())
    _, writer = started(sink)
    with pytest.raises(TypeMismatch, match="'x'"):
        writer.write("x", None)
    with pytest.raises(TypeMismatch, match="'x'"):
        writer.write_all([1, "x"], None, None)
    with pytest.raises(TypeError, match="must be a CheckpointCommitter"):
        Listed("file:///tmp/x")
    with pytest.raises(TypeError, match="type_info must be a TypeInformation"):
        Listed(Remembered(set()), type_info=5)


def test_without_checkpoints_everything_is_sent_at_the_end(tmp_path):
    SENT.clear()
    with in_process():
        environment = StreamExecutionEnvironment().set_parallelism(1)
        environment.from_collection([1, 2, 3]).sink_to(Sending(FileCheckpointCommitter(str(tmp_path)), "end"))
        environment.execute()
    assert SENT == {"end0": [1, 2, 3]}
    assert len([path for path in tmp_path.rglob("*") if path.is_file()]) == 1


# --- committers ---
@pytest.fixture(params=["files", "sqlite", "postgres"])
def make(request, tmp_path):
    if request.param == "files":
        return lambda: FileCheckpointCommitter(tmp_path.as_uri())
    if request.param == "sqlite":
        return lambda: DatabaseCheckpointCommitter(JdbcConnectionOptions(f"jdbc:sqlite:{tmp_path}/c.db"))
    server = request.getfixturevalue("postgres")
    options = JdbcConnectionOptions(server.url, None, server.user, server.password)
    return lambda: DatabaseCheckpointCommitter(options, f"public.c_{tmp_path.name}"[:50].lower())


def opened(make, job="job/1", operator="the sink: ä"):
    committer = pickle.loads(pickle.dumps(make()))
    committer.set_job_id(job)
    committer.set_operator_id(operator)
    committer.create_resource()
    committer.open()
    return committer


def test_a_committer_remembers(make):
    committer = opened(make)
    assert not committer.is_checkpoint_committed(0, 7)
    committer.commit_checkpoint(0, 7)
    committer.commit_checkpoint(0, 7)
    committer.close()
    again = opened(make)
    assert again.is_checkpoint_committed(0, 7)
    others = [again.is_checkpoint_committed(0, 6), again.is_checkpoint_committed(0, 8)]
    others.append(again.is_checkpoint_committed(1, 7))
    others.append(opened(make, job="job").is_checkpoint_committed(0, 7))
    others.append(opened(make, operator="another").is_checkpoint_committed(0, 7))
    assert others == [False] * 5


def test_a_committer_keeps_the_last_of_each_subtask(make):
    first = 1_700_000_000_000 << 21
    committer = opened(make)
    committer.commit_checkpoint(1, first)
    for number in range(60):
        committer.commit_checkpoint(0, first + number)
    committer.close()
    committer = opened(make)
    for number in range(60, MARKERS_KEPT + 5):
        committer.commit_checkpoint(0, first + number)
    kept = [committer.is_checkpoint_committed(0, first + number) for number in range(MARKERS_KEPT + 5)]
    assert kept == [False] * 5 + [True] * MARKERS_KEPT
    assert committer.is_checkpoint_committed(1, first)
