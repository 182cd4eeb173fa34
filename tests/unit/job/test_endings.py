"""When a job ends, and what becomes of its checkpoints then, as the job machine decides it."""

import pytest

from penstock.common.job import JobStatus
from penstock.common.restart_strategy import RestartStrategies
from penstock.datastream import StreamExecutionEnvironment
from penstock.engine.checkpoint.checkpoint_storage_actions import Archive, Publish, Tidy
from penstock.engine.checkpoint.coordinator import CheckpointRules, Coordinator
from penstock.engine.checkpoint.metadata import Metadata
from penstock.engine.checkpoint.store import MemoryStore
from penstock.engine.job import facts
from penstock.engine.job.decisions import Deploy, Ended, Release, RunEpoch, Wait
from penstock.engine.job.durability import Durability
from penstock.engine.job.restarts import NoRestarts, restarts_of
from penstock.engine.job.state_machine import EpochOptions, JobMachine
from penstock.engine.messages.commands_and_reports import Acknowledgement, Report
from penstock.engine.state.snapshot_file import SlotSnapshot
from penstock.errors import ConfigurationError, NotEnoughSlots, SlotLost, StorageError
from penstock.service.launch.submission import plan_of


def plan():
    env = StreamExecutionEnvironment().set_parallelism(1)
    env.from_sequence(1, 2).map(str).print()
    return plan_of(env, "job")


def tidying(finish, earlier=(), **durability):
    """How the job tidies up if it finishes after its first epoch, or is cancelled then."""
    made, store = plan(), MemoryStore("job")
    coordinator = Coordinator(made, "job", CheckpointRules(), store.folder)
    coordinator.adopt(earlier)
    parts = Durability(coordinator, Archive(store), NoRestarts("none"), **durability)
    machine = JobMachine(made, "job", EpochOptions(100, 50), parts)
    answer, tidied = facts.Answer(0), []
    for now in range(1, 50):
        decision = machine.decide(answer)
        if isinstance(decision, Ended):
            return tidied
        if isinstance(decision, Tidy):
            tidied.append(decision)
        if isinstance(decision, Deploy):
            answer = facts.Deployed(now, [Report(0, -1)])
        elif isinstance(decision, RunEpoch):
            if not finish:
                machine.hear(facts.CancelWanted())
            report = Report(0, decision.command.epoch, finished=finish, backlog=not finish)
            answer = facts.EpochRan(now, [report], {}, more=False, millis=1.0)
        elif isinstance(decision, Release):
            answer = facts.Released(now, [])
        else:
            answer = facts.Answer(now)
    raise AssertionError(f"the job does not end: {decision}")


@pytest.mark.parametrize("marks_end", [True, False])
def test_the_end_is_marked_where_a_driver_may_look_for_the_job_again(marks_end):
    assert [tidy.finished for tidy in tidying(True, marks_end=marks_end)] == [marks_end]


@pytest.mark.parametrize(
    ("finish", "keep", "is_kept"), [(True, True, False), (False, True, True), (False, False, False)]
)
def test_a_job_that_finishes_keeps_no_checkpoint_and_a_cancelled_one_may(finish, keep, is_kept):
    earlier = Metadata(1, 0, "job", "job", {}, [SlotSnapshot([])], fingerprint="")
    (tidy,) = tidying(finish, [earlier], marks_end=True, keep_when_cancelled=keep)
    assert tidy.kept == ([earlier] if is_kept else [])


@pytest.mark.parametrize("keep", [True, False])
def test_a_cancelled_job_has_not_finished(keep):
    assert [tidy.finished for tidy in tidying(False, marks_end=True, keep_when_cancelled=keep)] == [False]


FULL = StorageError("cannot create 'owner/00000002': No space left on device")
FULL.lasting = True


def statuses(*failures, checkpointed=True):
    """The statuses of a job that may restart three times, after each deployment that fails with the next error.

    None stands for a deployment that works, and for an attempt whose slots are lost after a checkpoint.
    """
    made, store = plan(), MemoryStore("job")
    coordinator = Coordinator(made, "job", CheckpointRules(interval=1 if checkpointed else None), store.folder)
    restarts = restarts_of(RestartStrategies.fixed_delay_restart(3, 0), True, "job")
    machine = JobMachine(made, "job", EpochOptions(100, 50), Durability(coordinator, Archive(store), restarts))
    answer, seen, left, lost = facts.Answer(0), [], list(failures), False
    for now in range(1, 200):
        decision = machine.decide(answer)
        if isinstance(decision, Deploy):
            if not left:
                return seen
            error = left.pop(0)
            answer = facts.Deployed(now, [Report(0, -1)]) if error is None else facts.Failed(now, error)
            lost = False
        elif isinstance(decision, RunEpoch) and lost:
            answer = facts.Failed(now, SlotLost("a host is gone"))
        elif isinstance(decision, RunEpoch):
            order = decision.command.checkpoint
            done = [] if order is None else [Acknowledgement(order.number, 0, SlotSnapshot([]))]
            lost = bool(done) or not checkpointed
            report = Report(0, decision.command.epoch, backlog=True, acknowledgements=done)
            answer = facts.EpochRan(now, [report], {"numbers": b""}, more=True, millis=1.0)
        elif isinstance(decision, Wait):
            answer = facts.Waited(now, in_full=True)
        elif isinstance(decision, Publish):
            answer = facts.Published(now, decision, "path")
        elif isinstance(decision, Release):
            answer = facts.Released(now, [])
        else:
            answer = facts.Answer(now)
        if machine.view.status not in seen[-1:]:
            seen.append(machine.view.status)
        if isinstance(decision, Ended):
            return seen
    raise AssertionError(f"the job does not end: {decision}")


@pytest.mark.parametrize("error", [NotEnoughSlots("there are two cores"), FULL])
def test_what_a_job_has_had_and_lost_may_come_back(error):
    assert statuses(None, error, error)[-1] is JobStatus.RESTARTING


@pytest.mark.parametrize("error", [NotEnoughSlots("there are two cores"), FULL, ConfigurationError("no such option")])
def test_what_a_job_never_had_ends_it(error):
    assert statuses(error, None)[-1] is JobStatus.FAILED


def test_a_storage_that_has_never_taken_a_checkpoint_ends_the_job():
    assert statuses(None, FULL, None, checkpointed=False)[-1] is JobStatus.FAILED


def test_errors_of_the_program_end_a_job_that_has_run():
    assert statuses(None, ConfigurationError("no such option"), None)[-1] is JobStatus.FAILED
