"""The state machine of a job against a world that answers as it pleases: any order, any failure, any message."""

from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.common.job import JobStatus
from penstock.common.restart_strategy import RestartStrategies
from penstock.datastream import StreamExecutionEnvironment
from penstock.engine.checkpoint.checkpoint_storage_actions import (
    Archive,
    CheckpointRequest,
    Covered,
    DeleteClaimed,
    Discard,
    DiscardSavepoint,
    Drop,
    Publish,
    Reply,
    SavepointRequest,
    Tidy,
)
from penstock.engine.checkpoint.coordinator import CheckpointRules, Coordinator
from penstock.engine.checkpoint.store import MemoryStore
from penstock.engine.job import facts
from penstock.engine.job.decisions import Commit, Deploy, Ended, HandOutLast, Look, Refuse, Release, RunEpoch, Wait
from penstock.engine.job.durability import Durability
from penstock.engine.job.epochs import EpochOptions
from penstock.engine.job.queued_queries import ATTENTION_MILLIS, BRISK_MILLIS
from penstock.engine.job.restarts import NoRestarts, restarts_of
from penstock.engine.job.state_machine import JobMachine
from penstock.engine.job.state_queries import StateQuery
from penstock.engine.messages.commands_and_reports import Acknowledgement, Report
from penstock.engine.queryable.query_requests import QueryRequest
from penstock.engine.records.failures import Failure
from penstock.engine.state.snapshot_file import FileRef, SlotSnapshot
from penstock.errors import ConfigurationError, JobDisplaced, JobFailed, JobSuspended, SlotLost, StorageError
from penstock.service.launch.submission import plan_of

SLOTS = 2
WILD_STEPS = 120
CALM_STEPS = 200
FAILURE = Failure("Map", "map-1", 1, "3", "ValueError", "no", "Traceback …")
TOUCHES_STORAGE = (Publish, Drop, Discard, DiscardSavepoint, DeleteClaimed, Tidy)
CHANGES = {
    JobStatus.RUNNING: {
        JobStatus.RESTARTING,
        JobStatus.FAILING,
        JobStatus.CANCELLING,
        JobStatus.FINISHED,
        JobStatus.SUSPENDED,
    },
    JobStatus.RESTARTING: {JobStatus.RUNNING, JobStatus.FAILING, JobStatus.CANCELLING, JobStatus.SUSPENDED},
    JobStatus.FAILING: {JobStatus.FAILED, JobStatus.SUSPENDED},
    JobStatus.CANCELLING: {JobStatus.CANCELED, JobStatus.SUSPENDED},
}


def plan():
    env = StreamExecutionEnvironment().set_parallelism(SLOTS)
    env.from_sequence(1, 2).map(str).print()
    return plan_of(env, "job")


PLAN = plan()


class World:
    """Carries out decisions, well or badly, and keeps its own account of what may be decided."""

    def __init__(self, random: Random) -> None:
        self.random = random
        self.now = 1_000
        self.calm = False
        self.seals = random.random() < 0.7
        rules = CheckpointRules(
            interval=random.choice([10, 50]) if self.seals else None,
            timeout=random.choice([30, 10_000]),
            max_concurrent=random.choice([1, 1, 2]),
            tolerable_failures=random.choice([0, 1, 5]),
            retained=random.choice([1, 2]),
        )
        store = MemoryStore("job")
        self.coordinator = Coordinator(PLAN, "job", rules, store.folder)
        restarts = restarts_of(RestartStrategies.fixed_delay_restart(random.choice([0, 2, 1000]), 20), self.seals)
        if random.random() < 0.2:
            restarts = NoRestarts("none")
        durability = Durability(self.coordinator, Archive(store), restarts, seals=self.seals)
        options = EpochOptions(100, 50, interval_millis=random.choice([0, 5]))
        self.machine = JobMachine(PLAN, "job", options, durability)
        self.requests, self.replied = [], []
        self.queries, self.served, self.refused = [], [], []
        self.looked_at, self.looks, self.rides = None, 0, 0
        self.ran_in = None
        """The attempt in which the last epoch ran to its end."""
        self.epochs, self.attempt = [], None
        self.orders = []
        """Of the running attempt: (slot, order) that was not acknowledged yet."""
        self.acknowledged = {}
        self.ordered_in = {}
        self.published, self.covered, self.published_savepoints = [], [], []
        self.stopped = self.displaced = self.suspended = self.released = False
        self.finished_in = None
        """The first epoch of the attempt in which all had ended."""
        self.told_complete = set()
        self.rings = random.random() < 0.7

    def chance(self, probability: float) -> bool:
        return not self.calm and self.random.random() < probability

    # --- the whole story ---
    def play(self) -> Ended:
        answer = facts.Answer(self.now)
        for step in range(WILD_STEPS + CALM_STEPS):
            self.calm = self.calm or step >= WILD_STEPS
            self.messages()
            decision = self.machine.decide(answer)
            self.check(decision)
            if isinstance(decision, Ended):
                return decision
            self.now += self.random.choice([0, 1, 3])
            answer = self.carry_out(decision)
        raise AssertionError(f"it does not come to its end: {decision}, {self.machine.view}")

    def messages(self) -> None:
        if self.chance(0.1):
            self.machine.hear(self.random.choice([facts.News(), facts.SlotGone()]))
        if self.chance(0.04):
            stop = self.random.random() < 0.5
            request = SavepointRequest(f"memory://sp-{len(self.requests)}", stop, stop and self.random.random() < 0.5)
            if self.random.random() < 0.3:
                request = CheckpointRequest(full=stop)
            self.requests.append(request)
            self.machine.hear(facts.SavepointWanted(request))
        if self.chance(0.2):
            self.queries.append(StateQuery(QueryRequest("state")))
            self.machine.hear(facts.StateWanted(self.queries[-1]))
        if self.chance(0.005):
            self.machine.hear(facts.CancelWanted())
        if self.chance(0.003):
            self.suspended = True
            self.machine.hear(facts.SuspendWanted())
        if self.chance(0.003):
            self.displaced = True
            self.machine.hear(facts.Displaced(JobDisplaced("by another")))

    # --- answers ---
    def carry_out(self, decision):
        if isinstance(decision, Deploy):
            return self.deploy(decision)
        if isinstance(decision, RunEpoch):
            if decision.look is not None:
                self.served.extend(decision.look.queries)
            return self.run_epoch(decision.command)
        if isinstance(decision, Wait):
            return self.wait(decision)
        if isinstance(decision, Publish):
            return self.publish(decision)
        if isinstance(decision, Release):
            failed = [Report(1, -1, failure=FAILURE)] if self.chance(0.1) else []
            return self.failed(OSError("a pipe")) if self.chance(0.1) else facts.Released(self.now, failed)
        if isinstance(decision, Commit | Covered) and self.chance(0.05):
            return self.failed(JobFailed("a committer failed"))
        if isinstance(decision, Reply):
            self.replied.append(decision.request)
        if isinstance(decision, Look):
            # Those that wait are told by the driver, whatever becomes of it.
            self.served.extend(decision.queries)
            if self.chance(0.1):
                return self.failed(SlotLost("killed while it was asked"))
        if isinstance(decision, Refuse):
            self.refused.extend(decision.queries)
        return facts.Answer(self.now)

    def failed(self, error):
        return facts.Failed(self.now, error)

    def deploy(self, decision):
        self.orders, self.finished_in, self.told_complete = [], None, set()
        if self.chance(0.1):
            return self.failed(self.random.choice([SlotLost("gone"), JobFailed("open failed")]))
        if self.chance(0.01):
            return self.failed(ConfigurationError("too few cores"))
        return facts.Deployed(self.now, [Report(slot, -1) for slot in range(SLOTS)])

    def run_epoch(self, command):
        self.told_complete |= {notice.number for notice in command.notices if notice.complete}
        if command.checkpoint is not None:
            self.orders += [(slot, command.checkpoint) for slot in range(SLOTS)]
            self.ordered_in[command.checkpoint.number] = command.epoch
        if self.chance(0.05):
            return self.failed(SlotLost("killed"))
        ended = self.finished_in is not None or command.drain or self.random.random() < (1.0 if self.calm else 0.1)
        if ended and not (command.paused and not command.drain) and self.finished_in is None:
            self.finished_in = command.epoch
        reports = [self.report(slot, command) for slot in range(SLOTS)]
        if not any(report.failure for report in reports):
            self.ran_in = command.attempt
        return facts.EpochRan(self.now, reports, {"s": 1}, more=self.chance(0.1), millis=1.0)

    def report(self, slot, command):
        waits = self.random.random() < 0.3
        return Report(
            slot,
            command.epoch,
            finished=self.finished_in is not None,
            backlog=self.chance(0.1),
            news=self.chance(0.1),
            rings=self.rings,
            waits_for_input=waits and not self.rings,
            next_due=self.now + 7 if self.chance(0.2) else None,
            committables=[("sink", 1, ["x"])] if self.chance(0.1) else [],
            acknowledgements=self.acknowledgements(slot),
            failure=FAILURE if self.chance(0.02) else None,
        )

    def acknowledgements(self, slot):
        ready = [(s, order) for s, order in self.orders if s == slot and not self.chance(0.4)]
        self.orders = [entry for entry in self.orders if entry not in ready]
        return [self.acknowledge(slot, order) for _, order in ready]

    def acknowledge(self, slot, order):
        if self.chance(0.05):
            return Acknowledgement(order.number, slot, failure=FAILURE)
        self.acknowledged.setdefault(order.number, set()).add(slot)
        return Acknowledgement(order.number, slot, SlotSnapshot([FileRef(f"{order.folder}/{slot}", 5, 1, "c")]))

    def wait(self, decision):
        if decision.until is None:
            # Only what comes from outside can be a reason: a slot that rings, or is lost.
            awaited = self.coordinator.awaits_slots()
            assert self.rings or not awaited, "nobody would tell that a checkpoint was written"
            self.machine.hear(facts.News())
            return facts.Waited(self.now, in_full=False)
        if self.chance(0.2):
            self.machine.hear(facts.News())
            self.now = max(self.now, min(self.now + 1, decision.until))
            return facts.Waited(self.now, in_full=False)
        self.now = max(self.now, decision.until)
        return facts.Waited(self.now, in_full=True)

    def publish(self, order):
        number = order.metadata.number
        if self.chance(0.02) and order.savepoint_folder is None:
            self.displaced = True
            return self.failed(JobDisplaced("someone has published it"))
        if self.chance(0.1):
            return facts.NotPublished(self.now, order, StorageError("full"))
        if order.savepoint_folder is None:
            self.published.append(number)
        else:
            self.published_savepoints.append(number)
            request = next(r for r in self.requests if getattr(r, "folder", None) == order.savepoint_folder)
            self.stopped = self.stopped or request.stop
        return facts.Published(self.now, order, "path")

    # --- what may be decided ---
    def check(self, decision) -> None:
        ended = self.machine.view.status is JobStatus.SUSPENDED
        if self.displaced or (ended and self.suspended):
            assert isinstance(decision, Reply | Refuse | Release | Ended), f"{decision} after the job was displaced"
        match decision:
            case RunEpoch(command, look):
                if look is not None:
                    self.check_look(look)
                    self.rides += 1
                assert look is not None or not self.waiting() or self.ran_in != self.attempt, "they could have ridden"
                assert command.epoch == len(self.epochs), "every epoch is decided once"
                assert command.attempt == self.attempt
                self.epochs.append(command.epoch)
                self.check_pace(command)
            case Look():
                self.check_look(decision)
            case Refuse(queries):
                assert queries and not any(self.is_answered(query) for query in queries)
                restarting = self.machine.view.status is JobStatus.RESTARTING
                assert restarting or self.released, "it could have been asked"
            case Release():
                self.released = True
            case Deploy():
                self.check_deploy(decision)
            case Publish(metadata, savepoint_folder):
                if savepoint_folder is None:
                    assert not self.stopped, "a stopped job belongs to whoever goes on from its savepoint"
                assert metadata.number not in [*self.published, *self.published_savepoints]
                assert self.acknowledged[metadata.number] == set(range(SLOTS)), "every slot has its share"
                assert metadata.enumerators, "the enumerators' positions belong to it"
            case Covered(number, epoch):
                assert number in self.published and number not in self.covered
                assert epoch == self.ordered_in[number]
                self.covered.append(number)
            case Ended():
                self.check_end(decision)
        self.check_view()

    def waiting(self):
        """The queries that have come in time for this decision."""
        return [query for query in self.queries if not self.is_answered(query)]

    def is_answered(self, query):
        return any(query is other for other in (*self.served, *self.refused))

    def check_look(self, look):
        assert look.queries and not any(self.is_answered(query) for query in look.queries), "each is answered once"
        assert self.ran_in == self.attempt == look.cut.attempt, "there is a cut of this attempt"
        assert look.cut.epoch == self.epochs[-1], "it is the last one"
        self.looked_at, self.looks = look.cut.processing_time, self.looks + 1

    def check_pace(self, command):
        """Epochs are short while somebody asks, and as long as they may be again when nobody does."""
        asked = self.looked_at is not None and command.now - self.looked_at <= ATTENTION_MILLIS
        if asked:
            assert command.max_millis <= BRISK_MILLIS
        elif self.looked_at is None and not self.refused:
            assert command.max_millis == 50

    def check_deploy(self, decision):
        assert self.attempt is None or decision.attempt == self.attempt + 1
        self.attempt = decision.attempt
        if self.stopped:
            assert decision.snapshot.savepoint and not decision.repeats
        else:
            newest = self.published[-1] if self.published else None
            assert (decision.snapshot.number if decision.snapshot else None) == newest

    def check_end(self, ended):
        asked, replied = ({id(request) for request in requests} for requests in (self.requests, self.replied))
        assert len(self.replied) == len(replied), "a request is answered once"
        assert asked == replied, "nobody waits for ever"
        assert all(self.is_answered(query) for query in self.queries), "nor for an answer"
        assert len(self.served) + len(self.refused) == len(self.queries)
        assert self.machine.view.status is ended.status
        assert (ended.error is None) is (ended.status is JobStatus.FINISHED)
        if self.displaced:
            assert ended.status is JobStatus.SUSPENDED and isinstance(ended.error, JobDisplaced | JobSuspended)
        elif ended.status is JobStatus.SUSPENDED:
            assert self.suspended and isinstance(ended.error, JobSuspended)
            assert self.coordinator.last_savepoint is None, "a job that stopped with a savepoint has ended"
        if ended.status is JobStatus.FINISHED and self.seals and not self.stopped:
            final = self.published[-1]
            assert self.ordered_in[final] > self.finished_in, "a checkpoint covers the end of the input"
            assert final in self.told_complete, "the sinks have heard of it"

    def check_view(self):
        view = self.machine.view
        for earlier, later in zip(view.changes, view.changes[1:], strict=False):
            assert later.status in CHANGES[earlier.status] and earlier.when <= later.when
        assert view.epoch == len(self.epochs)
        if not self.displaced and not self.suspended:
            assert [c.number for c in view.checkpoints.completed if not c.savepoint] == self.published
            assert view.checkpoints.completed_in_all == len(self.published) + len(self.published_savepoints)
        assert all(failure.message for failure in view.failures)


@settings(max_examples=600, deadline=None)
@given(st.integers(0, 2**64))
def test_whatever_happens(seed):
    World(Random(seed)).play()


@pytest.mark.parametrize("first", range(0, 2000, 100))
def test_for_many_seeds(first):
    """Beyond what hypothesis tries: these are cheap, and always the same."""
    endings = {World(Random(seed)).play().status for seed in range(first, first + 100)}
    assert {JobStatus.FINISHED, JobStatus.FAILED} <= endings


def test_results_wait_for_the_end_only_in_a_job_that_finishes():
    for seed in range(300):
        world = World(Random(seed))
        decisions = []
        check = world.check
        world.check = lambda decision, check=check, decisions=decisions: (decisions.append(decision), check(decision))
        ended = world.play()
        handed_out = [d for d in decisions if isinstance(d, HandOutLast)]
        assert len(handed_out) == (ended.status is JobStatus.FINISHED) or world.displaced or world.suspended


def test_a_view_that_was_published_does_not_change():
    views = []
    for seed in range(10):
        world = World(Random(seed))
        check = world.check

        def noting(decision, world=world, check=check):
            views.append((world.machine.view, repr(world.machine.view)))
            check(decision)

        world.check = noting
        world.play()
    assert all(repr(view) == text for view, text in views) and len(views) > 50


def test_queries_are_answered_while_the_job_runs_and_do_not_keep_it_from_its_epochs():
    """Somebody asks before every single decision, and the job comes to its end as ever."""
    looks = rides = 0
    for seed in range(200):
        world = World(Random(seed))
        hear = world.messages

        def asks(world=world, hear=hear):
            hear()
            if len(world.queries) < 100:
                world.queries.append(StateQuery(QueryRequest("state")))
                world.machine.hear(facts.StateWanted(world.queries[-1]))

        world.messages = asks
        world.play()
        looks, rides = looks + world.looks, rides + world.rides
    assert looks > 400 and 200 < rides < looks
