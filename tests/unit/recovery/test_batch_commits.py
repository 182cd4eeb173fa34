"""Sinks of BATCH jobs: what one run of every subtask has prepared is committed, and all others leave nothing behind."""

from dataclasses import dataclass, field
from itertools import count

import pytest

from penstock.datastream import RuntimeExecutionMode, StreamExecutionEnvironment
from penstock.datastream.connectors.base import Committer, Sink, SinkWriter
from penstock.datastream.functions import MapFunction
from penstock.engine.job.driver_parts import DriverParts
from penstock.engine.messages.commands_and_reports import Report
from penstock.engine.operators.sinks.committing import AT_THE_END
from penstock.errors import JobFailed
from penstock.service.launch.submission import plan_of
from penstock.testing import pause, scripted

OUTSIDE: dict = {}
"""By transaction: begun, prepared, committed or aborted."""
VISIBLE: list = []
ERRORS: dict = {}
"""By what is done: how often it fails before it works."""
IDS = count()
RIVALS: list = []
FLUSHES: list = []


@pytest.fixture(autouse=True)
def _fresh():
    for shared in (OUTSIDE, VISIBLE, ERRORS, RIVALS, FLUSHES):
        shared.clear()


def hit(what):
    if ERRORS.get(what, 0):
        ERRORS[what] -= 1
        raise ValueError(f"{what} is not possible")


@dataclass(frozen=True)
class Transaction:
    id: int
    values: tuple = field(default=(), compare=False)


class Writer(SinkWriter):
    def __init__(self, context):
        RIVALS.append(context.has_rivals)
        self.id = next(IDS)
        self.values = []
        OUTSIDE[self.id] = "begun"

    def begun(self):
        return [Transaction(self.id)]

    def write(self, value, context):
        self.values.append(value)

    def flush(self, end_of_input):
        FLUSHES.append(end_of_input)

    def prepare_commit(self):
        OUTSIDE[self.id] = "prepared"
        return [Transaction(self.id, tuple(self.values))]

    def close(self):
        """End what was only begun, as a writer does when it is closed."""
        if OUTSIDE[self.id] == "begun":
            del OUTSIDE[self.id]


class Commits(Committer):
    def commit(self, committables):
        for transaction in committables:
            hit("commit")
            OUTSIDE[transaction.id] = "committed"
            VISIBLE.extend(transaction.values)

    def abort(self, begun):
        hit("abort")
        for transaction in begun:
            if OUTSIDE.get(transaction.id) != "committed":
                OUTSIDE[transaction.id] = "aborted"


class Transactions(Sink):
    def create_writer(self, context, restored):
        return Writer(context)

    def create_committer(self):
        return Commits()


class Fragile(MapFunction):
    def map(self, value):
        hit(value)
        return value


def program(env):
    """A program that fails once the sink has everything."""
    env.set_runtime_mode(RuntimeExecutionMode.BATCH)
    env.from_collection([1, 2, 3]).rebalance().sink_to(Transactions()).uid("sink")
    return scripted(env, pause(), pause(), 4).map(Fragile())


def options(restarts, attempts):
    return {**restarts(attempts, "1 ms"), "execution.checkpointing.interval": None}


def test_a_failed_attempt_leaves_nothing_behind(run, restarts):
    ERRORS[4] = 1
    run(program, options(restarts, 1), parallelism=2)
    assert sorted(VISIBLE) == [1, 2, 3]
    assert sorted(OUTSIDE.values()) == ["aborted", "aborted", "committed", "committed"]


def test_a_job_that_fails_for_good_leaves_nothing_behind(run, restarts):
    ERRORS[4] = 2
    with pytest.raises(JobFailed, match="4 is not possible"):
        run(program, options(restarts, 1), parallelism=2)
    assert VISIBLE == [] and set(OUTSIDE.values()) == {"aborted"}


def test_a_commit_that_fails_half_way_leaves_nothing_behind(run, restarts):
    """What is committed stays; the documentation says that it comes again."""
    ERRORS["commit"] = 1
    run(program, options(restarts, 1), parallelism=2)
    assert sorted(VISIBLE) == [1, 2, 3] and set(OUTSIDE.values()) == {"aborted", "committed"}


def test_what_cannot_be_undone_is_told_beside_the_failure(run, restarts, caplog):
    ERRORS.update({4: 1, "abort": 1})
    with pytest.raises(JobFailed, match="4 is not possible"):
        run(program, options(restarts, 0))
    assert "(uid sink) has begun was not undone: abort is not possible" in caplog.text


def test_tasks_have_rivals_and_the_driver_has_none(run, restarts):
    run(program, options(restarts, 0), parallelism=2)
    assert RIVALS == [True, True, False]


def parts_of_a_job(parallelism):
    env = StreamExecutionEnvironment().set_parallelism(parallelism)
    program(env).discard()
    parts = DriverParts(plan_of(env, None))
    parts.open({})
    return parts


def begun(parts, number):
    OUTSIDE[number] = "prepared"
    parts.begun([("sink", [Transaction(number)])])


def ended(slot, number):
    """The report of a slot whose run has counted."""
    return Report(slot, 0, finished=True, committables=[("sink", AT_THE_END, [Transaction(number, (number,))])])


@pytest.mark.parametrize("counts", [100, 101], ids=["the first run counts", "the second run counts"])
def test_a_task_that_is_run_again(counts):
    parts = parts_of_a_job(2)
    for number in (100, 101, 102):
        begun(parts, number)
    parts.commit([ended(0, counts), ended(1, 102)])
    parts.close()
    lost = 201 - counts
    assert sorted(VISIBLE) == sorted([counts, 102]) and OUTSIDE[lost] == "aborted"
    assert OUTSIDE[counts] == OUTSIDE[102] == "committed"


def test_nothing_is_undone_where_every_task_was_run_once():
    ERRORS["abort"] = 1
    parts = parts_of_a_job(2)
    begun(parts, 100)
    begun(parts, 101)
    parts.commit([ended(0, 100), ended(1, 101)])
    parts.close()
    assert OUTSIDE == {100: "committed", 101: "committed"} and ERRORS["abort"] == 1


def test_the_writer_beside_the_drivers_committer_is_at_its_end():
    """Some writers finish on the driver what those of the tasks have left, and do so when the input has ended."""
    parts = parts_of_a_job(1)
    begun(parts, 100)
    FLUSHES.clear()
    parts.commit([ended(0, 100)])
    assert FLUSHES == [True]
    parts.close()
