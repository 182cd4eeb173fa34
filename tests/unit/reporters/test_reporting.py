"""Turns of reporters: they do not hold anything up, go on after errors, and come to a last one."""

import threading
from dataclasses import replace
from typing import ClassVar

import pytest

from penstock.common.configuration import Configuration
from penstock.datastream import StreamExecutionEnvironment
from penstock.engine.checkpoint.checkpoint_history import CheckpointsView
from penstock.engine.job.job_view import FailureView
from penstock.errors import ConfigurationError
from penstock.reporters import Reporter
from penstock.service.reporters import reporter_threads as reporting
from penstock.service.reporters.reporter_threads import place_for
from penstock.service.reporters.spans import SpanFinder
from penstock.testing import in_process
from tests.rest import scripted_jobs
from tests.waiting import until


class Kept(Reporter):
    """Keeps what it is given."""

    made: ClassVar[list["Kept"]] = []

    def open(self, context):
        super().open(context)
        self.turns, self.spans, self.closed = [], [], False
        Kept.made.append(self)

    def report(self, samples):
        self.turns.append(samples)

    def trace(self, spans):
        self.spans.extend(spans)

    def close(self):
        self.closed = True


class Failing(Kept):
    """Fails three times, already when it is opened."""

    left = 3

    def open(self, context):
        super().open(context)
        self.report(None)

    def report(self, samples):
        if Failing.left:
            Failing.left -= 1
            raise OSError("nobody listens")
        super().report(samples)


class Slow(Kept):
    """Stays in its first turn until it is let go."""

    go = threading.Event()

    def report(self, samples):
        super().report(samples)
        Slow.go.wait(60)


@pytest.fixture(autouse=True)
def _nothing_is_left():
    Kept.made.clear()
    yield
    for one in [*reporting._ending.values()]:
        one.join(60)
    assert not reporting._shared


def place(*kinds, interval="10 ms"):
    options = {}
    for kind in kinds:
        options[f"metrics.reporter.{kind.__name__}.factory.class"] = f"{__name__}:{kind.__name__}"
        options[f"metrics.reporter.{kind.__name__}.interval"] = interval
    return place_for(options)


def test_without_reporters_nothing_runs():
    assert place_for({"metrics.latency.interval": "1 s"}) is None


def test_turns_follow_each_other_and_the_last_one_sees_the_end():
    record = [scripted_jobs.job()]
    with_reporters = place(Kept)
    with_reporters.add("a", lambda: record[0])
    until(lambda: Kept.made and len(Kept.made[0].turns) > 2)
    record[0] = scripted_jobs.job(status="FINISHED", slots=(scripted_jobs.slot(0, numRecordsIn=77),))
    with_reporters.leave()
    until(lambda: Kept.made[0].closed)
    assert [one.value for one in Kept.made[0].turns[-1] if one.name == "numRecordsIn"] == [77]


def test_what_fails_is_told_once_and_tried_again(caplog):
    Failing.left = 3
    jobs = place(Failing, Kept)
    jobs.add("a", scripted_jobs.job)
    until(lambda: any(isinstance(one, Failing) and len(one.turns) > 1 for one in Kept.made))
    jobs.leave()
    until(lambda: all(one.closed for one in Kept.made if one.turns))
    assert (
        caplog.text.count(
            "reporter 'Failing' failed and will report again at the next interval: OSError: nobody listens"
        )
        == 1
    )


def test_a_slow_one_leaves_turns_out_and_holds_nobody_up():
    Slow.go.clear()
    jobs = place(Slow, Kept)
    jobs.add("a", scripted_jobs.job)
    quick = until(lambda: next((one for one in Kept.made if type(one) is Kept and len(one.turns) > 5), None))
    slow = next(one for one in Kept.made if isinstance(one, Slow))
    assert len(slow.turns) == 1
    jobs.leave()
    until(lambda: quick.closed)
    assert not slow.closed
    Slow.go.set()
    until(lambda: slow.closed)


def test_jobs_with_the_same_options_share_their_reporters():
    first, second = place(Kept), place(Kept)
    load = {"Status.JVM.CPU.Load": 0.5}
    first.add("a", lambda: scripted_jobs.job(job_id="a" * 32, usage=load))
    second.add("b", lambda: scripted_jobs.job(job_id="b" * 32, usage=load))
    both = {"a" * 32, "b" * 32}
    until(lambda: any(both <= {one.variables.get("<job_id>") for one in turn} for k in Kept.made for turn in k.turns))
    assert len(Kept.made) == 1
    # The load of the driver, which they have in common, is told once.
    assert all(sum(one.name == "Load" for one in turn) == 1 for turn in Kept.made[0].turns if turn)
    first.leave()
    assert not Kept.made[0].closed
    second.leave()
    until(lambda: Kept.made[0].closed)


def test_a_job_is_reported_from_its_start_to_its_end():
    """A whole job, in this process."""
    with in_process():
        environment = StreamExecutionEnvironment.get_execution_environment(
            Configuration.from_dict(
                {
                    "parallelism.default": "2",
                    "metrics.reporter.kept.factory.class": f"{__name__}:Kept",
                    "metrics.reporter.kept.interval": "1 h",
                    "metrics.reporter.kept.filter.includes": "taskmanager.job.task*:numRecordsIn",
                    "traces.reporter.spans.factory.class": f"{__name__}:Kept",
                }
            )
        )
        environment.from_collection(range(20)).key_by(lambda x: x % 3).map(lambda x: x).print()
        environment.execute("numbers")
    until(lambda: [one.closed for one in Kept.made] == [True, True])
    (metrics,) = [one.turns[-1] for one in Kept.made if one.turns]
    assert {one.name for one in metrics} == {"numRecordsIn"}
    assert {one.variables["<job_name>"] for one in metrics} == {"numbers"}
    received = [one for one in metrics if "Source" not in one.variables["<task_name>"]]
    assert sum(one.value for one in received if one.logical_scope[-1] == "task") == 20
    # The map and the sink behind it.
    assert sum(one.value for one in received if one.logical_scope[-1] == "operator") == 2 * 20
    assert [one.name for kept in Kept.made for one in kept.spans] == ["JobInitialization"]


def test_a_reporter_that_cannot_work_keeps_the_job_from_starting():
    with in_process():
        environment = StreamExecutionEnvironment.get_execution_environment(
            Configuration.from_dict({"metrics.reporter.x.factory.class": "prometheus", "metrics.reporter.x.port": "no"})
        )
        environment.from_collection([1]).print()
        with pytest.raises(ConfigurationError, match=r"metrics\.reporter\.x\.port"):
            environment.execute()


# --- spans ---
def test_every_checkpoint_and_start_is_told_once():
    finder, record = SpanFinder(), scripted_jobs.job()
    assert [span.attributes.get("checkpointId") for span in finder.new(record)] == [1, 2, 3, None]
    assert finder.new(record) == []
    more = replace(record.checkpoints, completed=(*record.checkpoints.completed, scripted_jobs.checkpoint(4)))
    assert [span.attributes["checkpointId"] for span in finder.new(replace(record, checkpoints=more))] == [4]


def test_a_restart_is_a_span_from_the_failure_to_the_new_slots():
    failure = FailureView(scripted_jobs.NOW - 5000, 0, "JobFailed", "boom")
    record = scripted_jobs.job(
        attempt=1, failures=(failure,), deployed=scripted_jobs.NOW - 3000, checkpoints=CheckpointsView()
    )
    (span,) = SpanFinder().new(record)
    assert (span.name, span.ended - span.began) == ("JobInitialization", 2000)
    assert span.attributes["attempt"] == 1
    assert span.attributes["failure"] == "JobFailed: boom"
