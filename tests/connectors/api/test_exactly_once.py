"""A source of splits, two sinks and a committer for all of them, through crashes and changes of parallelism."""

import logging
from collections import Counter
from functools import cache
from uuid import uuid4

import pytest

from penstock.common import Configuration, WatermarkStrategy
from penstock.datastream import StreamExecutionEnvironment
from penstock.datastream.connectors.base import Committer, GlobalCommitter, Sink, SinkWriter
from penstock.datastream.functions import MapFunction
from penstock.errors import JobFailed
from penstock.testing import ManualClock, in_process
from penstock.testing.crashes import StoreSink, crash_point, current_store, simulate
from tests.connectors.api.logs import Logs, by_record_time
from tests.waiting import until

LOGS = {f"log{n}": [(t * 10 + n, (n, t)) for t in range(9 + 3 * n)] for n in range(4)}
APPEARS = {"log2": 3, "log3": 9}


@pytest.fixture(autouse=True)
def quiet():
    """Silence the log: a simulated job dies often, and says so each time."""
    logging.disable(logging.WARNING)
    yield
    logging.disable(logging.NOTSET)


class Manifest(Sink):
    """Its parts become visible together, by an entry that the driver writes; a part named twice counts once."""

    commits_globally = True

    def create_writer(self, context, restored):
        return Parts(context)

    def create_global_committer(self):
        return Entries()


class Parts(SinkWriter):
    def __init__(self, context):
        self.name = f"{context.runtime.get_index_of_this_subtask()}-{len(current_store().prepared)}"
        self.count = 0
        self.values = []

    def write(self, value, context):
        crash_point("writing a part")
        self.values.append(value)

    def prepare_commit(self):
        if not self.values:
            return []
        values, self.values = self.values, []
        self.count += 1
        # Two lives of a slot may name their parts alike: the checkpoint's own number tells them apart.
        name = f"manifest/{self.name}-{self.count}-{self.checkpoint_timestamp}"
        current_store().prepare(name, values)
        return [name]


class Entries(GlobalCommitter):
    def commit(self, committables):
        for name in committables:
            current_store().commit(name)


class Tenfold(MapFunction):
    def map(self, value):
        crash_point("mapping")
        return value[0], value[1] * 10


def build(environment):
    environment.set_parallelism(2)
    stream = environment.from_source(Logs(LOGS, APPEARS, most=2), by_record_time(), "Logs").uid("logs")
    stream.map(Tenfold()).sink_to(StoreSink("store")).uid("store")
    stream.sink_to(Manifest()).uid("manifest")


@cache
def uninterrupted():
    return simulate(build, seed=0)


def seen(outcome):
    return {name: Counter(outcome.store.visible(name)) for name in ("store", "manifest")}


def test_the_uninterrupted_run_has_everything():
    everything = [value for log in LOGS.values() for _, value in log]
    assert seen(uninterrupted()) == {
        "manifest": Counter(everything),
        "store": Counter((n, t * 10) for n, t in everything),
    }


@pytest.mark.parametrize("first", range(1, 201, 50))
def test_two_sinks_and_a_global_committer_through_crashes(first):
    drivers = 0
    for seed in range(first, first + 50):
        outcome = simulate(build, seed, steps=uninterrupted().steps)
        assert seen(outcome) == seen(uninterrupted()), f"seed {seed}, {outcome.crashes}, {outcome.settings}"
        drivers += outcome.drivers - 1
    assert drivers > 5


# --- without checkpoints, and errors ---
class Lists(GlobalCommitter):
    calls: list = []

    def commit(self, committables):
        self.calls.append(sorted(committables))


class Listed(Sink):
    commits_globally = True

    def create_writer(self, context, restored):
        return Batch()

    def create_global_committer(self):
        return Lists()


class Batch(SinkWriter):
    def __init__(self):
        self.values = []

    def write(self, value, context):
        self.values.append(value)

    def prepare_commit(self):
        values, self.values = self.values, []
        return values


def test_without_checkpoints_everything_is_committed_at_the_end_in_one_call():
    Lists.calls.clear()
    with in_process(epoch_records=3):
        environment = StreamExecutionEnvironment(Configuration()).set_parallelism(3)
        environment.from_sequence(1, 20).sink_to(Listed())
        environment.execute()
    assert Lists.calls == [list(range(1, 21))]


class Refusing(Lists):
    def commit(self, committables):
        raise PermissionError("the catalog is read-only")


class Refused(Listed):
    def create_global_committer(self):
        return Refusing()


def test_an_error_of_the_global_committer_names_the_sink():
    with in_process(), pytest.raises(JobFailed, match=r"Sink: Catalog|Catalog \(uid.*read-only"):
        environment = StreamExecutionEnvironment(Configuration()).set_parallelism(1)
        environment.from_sequence(1, 3).sink_to(Refused()).name("Catalog")
        environment.execute()


class Promising(Sink):
    commits_globally = True

    def create_writer(self, context, restored):
        return Batch()


def test_a_sink_that_commits_globally_must_have_a_global_committer():
    with in_process(), pytest.raises(JobFailed, match="create_global_committer returned None"):
        environment = StreamExecutionEnvironment(Configuration()).set_parallelism(1)
        environment.from_sequence(1, 3).sink_to(Promising())
        environment.execute()


# --- what a writer is told ---
class Told(Sink):
    def create_writer(self, context, restored):
        return Telling(context)


class Telling(SinkWriter):
    log: list = []

    def __init__(self, context):
        self.log.append((context.uid, context.is_restored, context.input_type, context.all_restored))
        self.due = context.now + 500

    def write(self, value, context):
        raise AssertionError("chunks are taken whole")

    def write_all(self, values, timestamps, context):
        self.log.append(values)
        return True

    def end_epoch(self, now):
        if self.due is not None and now >= self.due:
            self.log.append(("due", True))
            self.due = None

    def next_due(self):
        return self.due

    def flush(self, end_of_input):
        self.log.append(("flush", end_of_input, self.checkpoint_id))


def test_a_writer_takes_chunks_and_is_woken_when_it_asked_to_be():
    Telling.log.clear()
    with in_process(clock=ManualClock()):
        environment = StreamExecutionEnvironment(Configuration()).set_parallelism(1)
        stream = environment.generate(lambda n: n, rate=1, count=3)
        stream.sink_to(Told()).uid("told")
        environment.execute()
    assert Telling.log[0] == ("told", False, None, [])
    assert ("due", True) in Telling.log
    assert [entry for entry in Telling.log if isinstance(entry, list)] == [[0], [1], [2]]
    assert Telling.log.index(("due", True)) < Telling.log.index([1])
    assert Telling.log[-1] == ("flush", True, None)


# --- rescaling ---
class Recording(Sink):
    found: list = []
    known: set = set()
    """Committing again changes nothing."""

    def create_writer(self, context, restored):
        return Recorder()

    def create_committer(self):
        return Kept()


class Recorder(Batch):
    def prepare_commit(self):
        return [(uuid4().hex, super().prepare_commit())]


class Kept(Committer):
    def commit(self, committables):
        for name, values in committables:
            if name not in Recording.known:
                Recording.known.add(name)
                Recording.found.extend(values)


@pytest.mark.parametrize(("before", "after"), [(1, 3), (3, 1), (2, 4), (4, 2), (3, 3)])
def test_splits_go_to_other_subtasks_with_their_positions_and_times(before, after, tmp_path):
    def program(parallelism, savepoint=None):
        options = Configuration()
        options.set_string("execution.checkpointing.interval", "50 ms")
        options.set_string("execution.checkpointing.savepoint-dir", str(tmp_path))
        if savepoint is not None:
            options.set_string("execution.state-recovery.path", savepoint)
        environment = StreamExecutionEnvironment(options).set_parallelism(parallelism)
        source = Logs({f"log{n}": [(t, (n, t)) for t in range(100)] for n in range(5)}, most=1)
        stream = environment.from_source(
            source, by_record_time(), "Logs", rate_limit=25 if savepoint is None else None
        ).uid("logs")
        stream.sink_to(Recording()).uid("sink")
        return environment

    Recording.found.clear()
    with in_process():
        client = program(before).execute_async()
        until(lambda: len(Recording.found) >= 30)
        savepoint = client.stop_with_savepoint(False, str(tmp_path)).result()
        client.get_job_execution_result().result()
        part = len(Recording.found)
        program(after, savepoint).execute()
    assert 30 <= part < 500
    assert Counter(Recording.found) == Counter((n, t) for n in range(5) for t in range(100))


FAILURES: list = []


class FailingOnce(MapFunction):
    def map(self, value):
        if value == (0, 5) and not FAILURES:
            FAILURES.append(value)
            raise RuntimeError("once")
        return value


def test_a_source_keeps_its_place_over_a_restart_without_watermarks():
    FAILURES.clear()
    options = Configuration()
    options.set_string("execution.checkpointing.interval", "10 ms")
    options.set_string("restart-strategy.type", "fixed-delay")
    Recording.found.clear()
    with in_process(epoch_records=1, clock=ManualClock(tick=5)):
        environment = StreamExecutionEnvironment(options).set_parallelism(1)
        source = Logs({"log0": [(t, (0, t)) for t in range(10)]}, most=1)
        environment.from_source(source, WatermarkStrategy.no_watermarks(), "Logs").map(FailingOnce()).sink_to(
            Recording()
        )
        environment.execute()
    assert FAILURES
    assert sorted(Recording.found) == [(0, t) for t in range(10)]
