"""The state machine of a job, decision by decision."""

import pytest

from penstock.common.job import JobStatus
from penstock.common.restart_strategy import RestartStrategies
from penstock.datastream import StreamExecutionEnvironment
from penstock.engine.checkpoint.checkpoint_storage_actions import (
    Archive,
    Covered,
    Discard,
    Publish,
    Reply,
    SavepointRequest,
    Tidy,
)
from penstock.engine.checkpoint.coordinator import CheckpointRules, Coordinator
from penstock.engine.checkpoint.metadata import Metadata
from penstock.engine.checkpoint.store import MemoryStore
from penstock.engine.job import facts
from penstock.engine.job.decisions import Commit, Deploy, Ended, HandOutLast, Look, Refuse, Release, RunEpoch, Wait
from penstock.engine.job.durability import Durability
from penstock.engine.job.epochs import EpochOptions
from penstock.engine.job.queued_queries import BRISK_MILLIS
from penstock.engine.job.resize import Resized
from penstock.engine.job.restarts import restarts_of
from penstock.engine.job.state_machine import JobMachine
from penstock.engine.job.state_queries import StateQuery
from penstock.engine.messages.commands_and_reports import Acknowledgement, Report
from penstock.engine.queryable.query_requests import QueryRequest
from penstock.engine.records.failures import Failure
from penstock.engine.state.snapshot_file import SlotSnapshot
from penstock.errors import CheckpointFailed, JobDisplaced, JobFailed, SlotLost, StateUnavailable, StorageError
from penstock.service.launch.submission import plan_of

FAILURE = Failure("Map", "map-1", 1, "3", "ValueError", "no", "Traceback …")
LOST = SlotLost("a host is gone")


class Machine:
    """A machine that is told what has become of its decisions, one millisecond after the other."""

    def __init__(self, interval=None, attempts=5, delay=0, tolerable=0, timeout=600_000, **durability):
        env = StreamExecutionEnvironment().set_parallelism(1)
        env.from_sequence(1, 2).map(str).print()
        plan, store = plan_of(env, "job"), MemoryStore("job")
        rules = CheckpointRules(interval=interval, tolerable_failures=tolerable, timeout=timeout)
        self.coordinator = Coordinator(plan, "job", rules, store.folder)
        restarts = restarts_of(RestartStrategies.fixed_delay_restart(attempts, delay), True)
        parts = Durability(self.coordinator, Archive(store), restarts, seals=interval is not None, **durability)
        self.machine = JobMachine(plan, "job", EpochOptions(1000, 50, 100), parts)
        self.now = 0
        self.decision = self.answer(facts.Answer)

    @property
    def view(self):
        return self.machine.view

    def answer(self, kind, *parts, **more):
        self.now += 1
        self.decision = self.machine.decide(kind(self.now, *parts, **more))
        return self.decision

    def done(self):
        return self.answer(facts.Answer)

    def fails(self, error=LOST):
        return self.answer(facts.Failed, error)

    def deploy(self):
        assert isinstance(self.decision, Deploy)
        return self.answer(facts.Deployed, [Report(0, -1)])

    def run(self, positions=None, **report):
        """Run the epoch that was decided. With `done`, the checkpoint that it takes is acknowledged."""
        command = self.decision.command
        if report.pop("done", False):
            report["acknowledgements"] = [Acknowledgement(command.checkpoint.number, 0, SlotSnapshot([]))]
        more, look_in = report.pop("more", False), report.pop("look_in", None)
        made = Report(0, command.epoch, **report)
        return self.answer(facts.EpochRan, [made], positions or {}, more=more, look_in=look_in, millis=1.0)

    def publish(self):
        assert isinstance(self.decision, Publish)
        return self.answer(facts.Published, self.decision, "path")

    def hear(self, message):
        self.machine.hear(message)
        return self

    def end(self):
        """The decisions up to the end, if nothing goes wrong."""
        seen = [self.decision]
        while not isinstance(self.decision, Ended):
            kinds = {Release: lambda: self.answer(facts.Released, [])}
            kinds.get(type(self.decision), self.done)()
            seen.append(self.decision)
        return seen


def kinds(decisions):
    return [type(decision) for decision in decisions]


# --- the way of a job ---
def test_a_job_without_checkpoints_ends_when_its_input_has():
    machine = Machine()
    assert machine.decision == Deploy(0, 1, None, False, True)
    first = machine.deploy()
    command = first.command
    assert (command.epoch, command.attempt, command.now, command.max_records, command.max_millis) == (0, 0, 2, 1000, 50)
    assert (command.wait_millis, command.checkpoint, command.notices) == (0, None, [])
    assert not command.drain and not command.paused and machine.view.deployed == 2
    assert machine.run(backlog=True).command.epoch == 1
    assert machine.run(finished=True).reports == [Report(0, 1, finished=True)]
    ended = machine.end()
    assert kinds(ended) == [Commit, Release, HandOutLast, Tidy, Ended]
    assert ended[2].epoch is None and ended[-1].status is JobStatus.FINISHED and ended[-1].error is None
    assert [change.status for change in machine.view.changes] == [JobStatus.RUNNING, JobStatus.FINISHED]


def test_committers_on_the_driver_commit_what_reports_contain_before_anything_is_published():
    machine = Machine(interval=1)
    machine.deploy()
    committing = machine.run(positions={"s": 1}, done=True, committables=[("sink", 1, ["x"])])
    assert isinstance(committing, Commit) and committing.reports[0].committables == [("sink", 1, ["x"])]
    assert isinstance(machine.done(), Publish)


def test_nothing_is_committed_where_there_is_nothing():
    machine = Machine()
    machine.deploy()
    assert isinstance(machine.run(backlog=True), RunEpoch)


def test_a_job_waits_until_something_is_due():
    machine = Machine()
    machine.deploy()
    assert machine.run(next_due=500) == Wait(500)
    assert machine.answer(facts.Waited, in_full=False) == Wait(500)
    machine.now = 499
    assert isinstance(machine.answer(facts.Waited, in_full=True), RunEpoch)
    assert machine.run() == Wait(None)


def test_splits_that_wait_make_an_epoch_at_once_until_the_job_stops():
    machine = Machine()
    machine.deploy()
    assert isinstance(machine.run(more=True), RunEpoch)
    machine.hear(facts.SavepointWanted(SavepointRequest("memory://sp", True, False)))
    assert machine.run(more=True).command.checkpoint.savepoint
    assert isinstance(machine.run(more=True), Wait), "nothing is read any more, and the savepoint is still written"


def test_news_makes_an_epoch_after_the_interval():
    machine = Machine()
    machine.deploy()
    assert machine.run() == Wait(None)
    machine.hear(facts.News())
    began = machine.view.epoch
    assert machine.answer(facts.Waited, in_full=False) == Wait(102), "100 ms after the last one began"
    machine.now = 101
    assert isinstance(machine.answer(facts.Waited, in_full=False), RunEpoch)
    assert machine.view.epoch == began + 1
    assert machine.run() == Wait(None), "the news is old now"


def test_the_loss_of_a_slot_ends_every_wait():
    machine = Machine()
    machine.deploy()
    assert machine.run() == Wait(None)
    machine.hear(facts.SlotGone())
    assert isinstance(machine.answer(facts.Waited, in_full=False), RunEpoch)
    assert isinstance(machine.fails(), Wait)
    machine.answer(facts.Waited, in_full=True)
    machine.deploy()
    assert machine.run() == Wait(None), "it is not lost any more"


def test_idle_epochs_wait_longer_and_longer_in_the_slots():
    machine = Machine()
    machine.deploy()
    waits = []
    for _ in range(5):
        machine.run(waits_for_input=True)
        machine.now += 100
        waits.append(machine.answer(facts.Waited, in_full=True).command.wait_millis)
    assert waits == [200, 400, 800, 1000, 1000]
    machine.run(waits_for_input=True, results=[("out", "x")])
    machine.now += 100
    assert machine.answer(facts.Waited, in_full=True).command.wait_millis == 100


# --- restarts ---
def test_a_failed_attempt_is_followed_by_another_after_the_delay():
    machine = Machine(delay=50)
    machine.deploy()
    assert machine.fails() == Wait(53)
    view = machine.view
    assert (view.status, view.restart_at, view.deployed, view.attempt) == (JobStatus.RESTARTING, 53, None, 0)
    assert [(one.when, one.attempt, one.message) for one in view.failures] == [(3, 0, "a host is gone")]
    assert machine.answer(facts.Waited, in_full=False) == Wait(53)
    again = machine.answer(facts.Waited, in_full=True)
    assert (again.attempt, again.snapshot, again.continued, again.repeats) == (1, None, False, True)
    assert machine.deploy().command.attempt == 1
    assert machine.view.restart_at is None and machine.view.status is JobStatus.RUNNING
    assert machine.view.deployed == machine.now


def test_the_next_attempt_continues_from_the_newest_checkpoint():
    machine = Machine(interval=1)
    machine.deploy()
    published = machine.run(positions={"s": 1}, done=True, backlog=True)
    assert published.metadata.enumerators.keys() == {"s"}
    assert machine.publish() == Covered(1, 0)
    following = machine.done()
    assert [(notice.number, notice.complete) for notice in following.command.notices] == [(1, True)]
    machine.fails()
    assert isinstance(machine.answer(facts.Waited, in_full=True), Discard), "the checkpoint that was under way"
    again = machine.done()
    assert again == Deploy(1, machine.now, published.metadata, True, True, (published.metadata,))
    assert machine.view.checkpoints.restored_in_all == 1
    command = machine.deploy().command
    assert command.epoch == 2 and command.notices == []


def test_a_job_continues_from_the_snapshot_that_it_was_started_from():
    start = Metadata(7, 0, "job", "job", {}, [SlotSnapshot([])], fingerprint="", savepoint=True)
    machine = Machine(start=start, start_continued=True)
    assert machine.decision == Deploy(0, 1, start, True, True)
    assert Machine(start=start).decision.continued is False


def test_a_job_whose_restarts_are_used_up_fails_and_says_how_often_it_was_restarted():
    machine = Machine(attempts=1)
    machine.deploy()
    machine.fails()
    machine.answer(facts.Waited, in_full=True)
    assert isinstance(machine.fails(), Release) and machine.view.status is JobStatus.FAILING
    *_, ended = machine.end()
    assert (ended.status, ended.why) == (JobStatus.FAILED, "the job failed: a host is gone")
    assert ended.error is LOST
    assert ended.error.__notes__ == ["The job had been restarted 1 times; 1 restart was used up."]
    LOST.__notes__.clear()


def test_an_error_of_the_program_ends_a_job_without_a_word_of_restarts_where_there_were_none():
    machine = Machine()
    error = TypeError("no such thing")
    assert isinstance(machine.fails(error), Release)
    assert not hasattr(machine.end()[-1].error, "__notes__")
    machine = Machine()
    machine.deploy()
    machine.fails()
    machine.answer(facts.Waited, in_full=True)
    machine.fails(error)
    assert error.__notes__ == ["The job had been restarted 1 times; another try would not help."]


def test_a_failing_report_fails_its_attempt():
    machine = Machine(attempts=0)
    machine.deploy()
    assert isinstance(machine.run(failure=FAILURE), Release)
    error = machine.end()[-1].error
    assert isinstance(error, JobFailed) and error.operator == "Map"
    machine = Machine(attempts=0)
    assert isinstance(machine.answer(facts.Deployed, [Report(0, -1, failure=FAILURE)]), Release)


def test_a_query_that_comes_while_a_job_restarts_is_refused():
    machine = Machine()
    machine.deploy()
    machine.hear(facts.StateWanted(query := StateQuery(QueryRequest("state"))))
    refused = machine.fails()
    assert isinstance(refused, Refuse) and refused.queries == (query,)
    assert isinstance(refused.error, StateUnavailable) and "has failed and restarts" in str(refused.error)
    assert isinstance(machine.done(), Wait)


# --- queries ---
def test_queries_are_answered_from_the_end_of_the_last_epoch():
    machine = Machine()
    machine.deploy()
    machine.hear(facts.StateWanted(early := StateQuery(QueryRequest("state"))))
    look = machine.run(backlog=True).look
    assert look.queries == (early,) and (look.cut.attempt, look.cut.epoch) == (0, 0)
    assert machine.run() == Wait(None)
    machine.hear(facts.StateWanted(late := StateQuery(QueryRequest("state"))))
    look = machine.answer(facts.Waited, in_full=False)
    assert isinstance(look, Look) and look.queries == (late,) and look.cut.epoch == 1
    assert machine.done() == Wait(None)


def test_epochs_are_as_short_as_queries_need():
    """A slot that read 1,000 records in 150 ms reads 100 in 15 ms, while somebody asks."""
    machine = Machine()
    machine.deploy()
    machine.hear(facts.StateWanted(StateQuery(QueryRequest("state"))))
    machine.run(backlog=True)
    assert machine.decision.look is not None and machine.decision.command.max_millis == BRISK_MILLIS
    report = Report(0, 1, backlog=True, read=1000)
    command = machine.answer(facts.EpochRan, [report], {}, millis=150.0).command
    assert (command.max_records, command.max_millis) == (100, BRISK_MILLIS)
    machine.now += 5000
    command = machine.answer(facts.EpochRan, [report], {}, millis=10.0).command
    assert command.max_millis == 50, "nobody asks any more"


def test_queries_wait_for_the_first_epoch():
    machine = Machine()
    machine.hear(facts.StateWanted(StateQuery(QueryRequest("state"))))
    assert machine.deploy().look is None
    assert machine.machine.take_unanswered() and not machine.machine.take_unanswered()


def test_queries_at_the_end_are_refused_with_the_reason():
    machine = Machine()
    machine.deploy()
    machine.hear(facts.CancelWanted()).run()
    machine.hear(facts.StateWanted(StateQuery(QueryRequest("state"))))
    refused = [one for one in machine.end() if isinstance(one, Refuse)]
    assert [str(one.error) for one in refused] == ["queryable state cannot be looked up: the job was cancelled"]


# --- the end of the input with checkpoints ---
def test_a_checkpoint_covers_the_end_of_the_input_and_sinks_are_told_of_it():
    machine = Machine(interval=1_000_000)
    machine.deploy()
    assert isinstance(machine.run(finished=True), Commit)
    sealing = machine.done()
    assert sealing.command.checkpoint.number == 1
    assert isinstance(machine.run(finished=True, done=True), Commit)
    assert isinstance(machine.done(), Publish)
    machine.publish()
    told = machine.done()
    assert [(notice.number, notice.complete) for notice in told.command.notices] == [(1, True)]
    assert told.command.checkpoint is None
    machine.run(finished=True)
    ended = machine.end()
    assert ended[-1].status is JobStatus.FINISHED and kinds(ended) == [Commit, Release, HandOutLast, Tidy, Ended]


def test_a_job_whose_last_checkpoint_is_still_written_does_not_begin_another():
    machine = Machine(interval=1)
    machine.deploy()
    assert machine.decision.command.checkpoint is not None
    assert isinstance(machine.run(finished=True), Commit)
    waiting = machine.done()
    assert isinstance(waiting, Wait), "one is under way"
    machine.now = waiting.until
    assert machine.answer(facts.Waited, in_full=True).command.checkpoint is None


def test_a_last_checkpoint_that_fails_is_tried_again_when_it_is_due():
    machine = Machine(interval=1000, tolerable=5)
    machine.deploy()
    machine.run(finished=True)
    assert machine.done().command.checkpoint.number == 1
    failed = [Acknowledgement(1, 0, failure=FAILURE)]
    assert isinstance(machine.run(finished=True, acknowledgements=failed), Commit)
    assert isinstance(machine.done(), Discard)
    told = machine.done()
    assert [(notice.number, notice.complete) for notice in told.command.notices] == [(1, False)]
    assert told.command.checkpoint is None, "not yet"
    machine.run(finished=True)
    began = machine.view.checkpoints.failed[0].started
    assert machine.done() == Wait(began + 1000)
    machine.now = began + 999
    assert machine.answer(facts.Waited, in_full=True).command.checkpoint.number == 2


# --- savepoints ---
def test_a_savepoint_with_which_a_job_stops_covers_everything():
    machine = Machine()
    machine.deploy()
    request = SavepointRequest("memory://sp", True, False)
    machine.hear(facts.SavepointWanted(request))
    order = machine.run(backlog=True).command
    assert order.checkpoint.savepoint and order.paused and not order.drain
    publishing = machine.run(backlog=True, done=True)
    assert publishing.savepoint_folder == "memory://sp"
    reply = machine.publish()
    assert isinstance(reply, Reply) and reply.request is request and reply.error is None
    telling = machine.done().command
    assert telling.paused and telling.checkpoint is None and telling.notices[0].savepoint
    machine.run(backlog=True)
    ended = machine.end()
    assert ended[-1].status is JobStatus.FINISHED
    assert [one.epoch for one in ended if isinstance(one, HandOutLast)] == [1], "later results come again"


def test_a_job_that_stopped_restarts_from_its_savepoint_and_repeats_nothing():
    machine = Machine()
    machine.deploy()
    machine.hear(facts.SavepointWanted(SavepointRequest("memory://sp", True, False)))
    machine.run(backlog=True)
    publishing = machine.run(backlog=True, done=True)
    machine.publish()
    machine.done()
    machine.fails()
    again = machine.answer(facts.Waited, in_full=True)
    assert (again.snapshot, again.continued, again.repeats) == (publishing.metadata, False, False)
    assert isinstance(machine.deploy(), Release), "no epoch follows"
    assert machine.end()[-1].status is JobStatus.FINISHED


def stopping(drain):
    machine = Machine()
    machine.deploy()
    machine.hear(facts.SavepointWanted(SavepointRequest("memory://sp", True, drain)))
    command = machine.run(backlog=True).command
    assert command.drain is drain
    machine.run(backlog=True, done=True)
    reply = machine.answer(facts.NotPublished, machine.decision, StorageError("full"))
    while not isinstance(reply, Reply):
        reply = machine.done()
    assert isinstance(reply.error, CheckpointFailed)
    return machine


def test_a_job_whose_last_savepoint_fails_continues():
    machine = stopping(drain=False)
    following = machine.done()
    assert isinstance(following, RunEpoch) and not following.command.paused
    machine.hear(facts.SavepointWanted(SavepointRequest("memory://other", False, False)))
    assert machine.run(backlog=True).command.checkpoint.savepoint


def test_a_job_that_was_drained_cannot_continue_without_its_savepoint():
    machine = stopping(drain=True)
    waiting = machine.done()
    assert isinstance(waiting, Wait) and machine.view.status is JobStatus.RESTARTING
    assert machine.view.failures[-1].message.startswith("the job was drained, and ")


def test_a_request_that_comes_at_the_end_is_answered():
    machine = Machine()
    machine.deploy()
    machine.hear(facts.CancelWanted()).run()
    request = SavepointRequest("memory://sp", False, False)
    machine.hear(facts.SavepointWanted(request))
    (reply,) = [one for one in machine.end() if isinstance(one, Reply)]
    assert reply.request is request and str(reply.error) == "no savepoint was taken: the job was cancelled"


# --- other ends ---
def test_a_cancelled_job_releases_its_slots_and_deletes_its_checkpoints():
    machine = Machine()
    machine.deploy()
    assert isinstance(machine.hear(facts.CancelWanted()).run(backlog=True), Release)
    assert machine.view.status is JobStatus.CANCELLING
    ended = machine.end()
    assert kinds(ended) == [Release, Tidy, Ended] and ended[-1].status is JobStatus.CANCELED


def test_a_job_that_is_cancelled_while_it_waits_for_its_restart_ends():
    machine = Machine(delay=50)
    machine.deploy()
    machine.fails()
    assert isinstance(machine.hear(facts.CancelWanted()).answer(facts.Waited, in_full=False), Release)


def test_a_job_that_is_cancelled_before_it_has_begun_deploys_nothing():
    machine = Machine(delay=50)
    machine.deploy()
    machine.fails()
    machine.hear(facts.CancelWanted())
    assert kinds(machine.end())[-1] is Ended and machine.view.attempt == 0


def test_an_epoch_that_fails_after_the_job_was_cancelled_is_no_failure():
    machine = Machine()
    machine.deploy()
    assert isinstance(machine.hear(facts.CancelWanted()).fails(OSError("interrupted")), Release)
    assert machine.view.failures == () and machine.end()[-1].status is JobStatus.CANCELED


def test_a_cancelled_job_whose_last_commit_fails_has_not_finished():
    machine = Machine()
    machine.deploy()
    assert isinstance(machine.run(finished=True), Commit)
    machine.hear(facts.CancelWanted()).fails(JobFailed("the outside is down"))
    assert machine.end()[-1].status is JobStatus.CANCELED


def test_a_job_that_cannot_close_its_functions_has_failed():
    machine = Machine()
    machine.deploy()
    machine.run(finished=True)
    machine.done()
    assert isinstance(machine.decision, Release)
    machine.answer(facts.Released, [Report(0, -1, failure=FAILURE)])
    assert len(machine.view.failures) == 1 and machine.end()[-1].status is JobStatus.FAILED
    assert [change.status.name for change in machine.view.changes] == ["RUNNING", "FAILING", "FAILED"]


def test_the_first_error_of_a_failed_job_counts():
    machine = Machine(attempts=0)
    machine.deploy()
    assert isinstance(machine.fails(), Release)
    machine.fails(OSError("a pipe"))
    ended = machine.end()[-1]
    assert ended.error is LOST and len(machine.view.failures) == 1


@pytest.mark.parametrize("how", ["message", "error"])
def test_a_displaced_job_touches_nothing_any_more(how):
    machine = Machine(interval=1)
    machine.deploy()
    machine.run(positions={"s": 1}, done=True)
    error = JobDisplaced("by another")
    if how == "message":
        machine.hear(facts.Displaced(error)).done()
    else:
        machine.fails(error)
    ended = machine.end()
    assert kinds(ended) == [Release, Ended] and ended[-1].status is JobStatus.SUSPENDED
    assert (ended[-1].why, ended[-1].error) == ("the job was displaced: by another", error)


@pytest.mark.parametrize("how", ["message", "error"])
def test_a_job_that_is_resized_leaves_its_storage_alone(how):
    machine = Machine(interval=1)
    machine.deploy()
    machine.run(positions={"s": 1})
    resized = Resized("two slots", 2)
    if how == "message":
        machine.hear(facts.ResizeWanted(resized)).done()
    else:
        machine.fails(resized)
    ended = machine.end()
    assert kinds(ended) == [Release, Ended] and ended[-1].error is resized and ended[-1].why == "two slots"


def test_a_cancelled_job_is_not_resized():
    machine = Machine()
    machine.hear(facts.CancelWanted()).fails(Resized("two slots", 2))
    assert machine.end()[-1].status is JobStatus.CANCELED


def test_a_job_that_ends_is_not_suspended():
    machine = Machine(attempts=0)
    machine.deploy()
    machine.fails()
    machine.hear(facts.SuspendWanted())
    assert machine.end()[-1].status is JobStatus.FAILED


def test_answers_after_a_suspension_are_of_no_account():
    machine = Machine(interval=1)
    machine.deploy()
    machine.hear(facts.SuspendWanted())
    assert isinstance(machine.run(failure=FAILURE), Release)
    assert machine.view.failures == () and machine.view.status is JobStatus.RUNNING


def test_a_job_that_is_late_with_a_checkpoint_gives_it_up_after_taking_answers():
    machine = Machine(interval=10, timeout=30, attempts=0)
    machine.now = 20
    machine.deploy()
    assert machine.decision.command.checkpoint.number == 1
    machine.now = 100
    assert isinstance(machine.run(positions={"s": 1}, done=True, backlog=True), Publish)
    machine = Machine(interval=10, timeout=30, attempts=0)
    machine.now = 20
    machine.deploy()
    machine.now = 100
    machine.run(positions={"s": 1}, backlog=True)
    assert "not complete after 30 ms" in machine.view.failures[-1].message
