"""The buffer timeout, on a clock that is simulated: how long records are gathered, and what must come in any case."""

from dataclasses import dataclass, field
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.common import Configuration
from penstock.common.job import JobStatus
from penstock.datastream import StreamExecutionEnvironment
from penstock.engine.checkpoint.checkpoint_storage_actions import Archive, Publish
from penstock.engine.checkpoint.coordinator import CheckpointRules, Coordinator
from penstock.engine.checkpoint.store import MemoryStore
from penstock.engine.job import facts
from penstock.engine.job.decisions import Deploy, Ended, Release, RunEpoch, Wait
from penstock.engine.job.durability import Durability
from penstock.engine.job.restarts import NoRestarts
from penstock.engine.job.state_machine import JobMachine
from penstock.engine.messages.commands_and_reports import Acknowledgement, Report
from penstock.engine.state.snapshot_file import FileRef, SlotSnapshot
from penstock.service.launch.submission import plan_of

MAX_MILLIS = 1000
MAX_RECORDS = 5
STEPS = 5000


def options_for(timeout):
    """The options of a program that sets this buffer timeout."""
    names = {"penstock.epoch.max-time": f"{MAX_MILLIS} ms", "penstock.epoch.max-records": str(MAX_RECORDS)}
    env = StreamExecutionEnvironment(Configuration.from_dict(names)).set_buffer_timeout(timeout)
    return env.settings.epochs()


def plan():
    env = StreamExecutionEnvironment().set_parallelism(1)
    env.from_sequence(1, 2).print()
    return plan_of(env, "job")


PLAN = plan()


@dataclass
class Epoch:
    start: int
    records: int
    catches_up: bool
    """Whether something was left to be read, so that the next epoch follows at once."""


@dataclass
class Job:
    """A source that gets records at some times, and ends with the last; timers that are due at some times."""

    timeout: int
    arrivals: list[int]
    timers: list[int] = field(default_factory=list)
    interval: int | None = None
    """Of checkpoints."""
    lasts: int = 0
    """How long every epoch takes."""

    def __post_init__(self):
        store = MemoryStore("job")
        coordinator = Coordinator(PLAN, "job", CheckpointRules(self.interval), store.folder)
        durability = Durability(coordinator, Archive(store), NoRestarts("none"), seals=self.interval is not None)
        self.machine = JobMachine(PLAN, "job", options_for(self.timeout), durability)
        self.now = 0
        self.epochs, self.delays, self.fired, self.ordered = [], [], [], []
        self.arrivals, self.timers = sorted(self.arrivals), sorted(self.timers)
        self.end = self.arrivals[-1]
        self.has_rung = False

    def play(self):
        answer = facts.Answer(self.now)
        for _ in range(STEPS):
            decision = self.machine.decide(answer)
            if isinstance(decision, Ended):
                assert decision.status is JobStatus.FINISHED, decision
                return self
            answer = self.carry_out(decision)
        raise AssertionError(f"it does not come to its end: {decision}")

    def carry_out(self, decision):
        match decision:
            case Deploy():
                return facts.Deployed(self.now, [Report(0, -1)])
            case RunEpoch(command):
                return self.run_epoch(command)
            case Wait(until):
                return self.wait(until)
            case Publish():
                return facts.Published(self.now, decision, "path")
            case Release():
                return facts.Released(self.now, [])
        return facts.Answer(self.now)

    def run_epoch(self, command):
        assert command.now == self.now
        ready = [arrival for arrival in self.arrivals if arrival <= self.now]
        read = ready[: command.max_records]
        del self.arrivals[: len(read)]
        self.delays += [self.now - arrival for arrival in read]
        self.fired += [(due, self.now) for due in self.timers if due <= self.now]
        self.timers = [due for due in self.timers if due > self.now]
        self.epochs.append(Epoch(self.now, len(read), len(ready) > len(read)))
        self.has_rung = False
        answers = []
        if command.checkpoint is not None:
            self.ordered.append(self.now)
            share = SlotSnapshot([FileRef("memory://file", 5, 1, "c")])
            answers = [Acknowledgement(command.checkpoint.number, 0, share)]
        self.now += self.lasts
        return facts.EpochRan(self.now, [self.report(command, answers)], {"s": 1}, millis=float(self.lasts))

    def report(self, command, answers):
        return Report(
            0,
            command.epoch,
            finished=not self.arrivals,
            backlog=self.epochs[-1].catches_up,
            news=any(arrival <= self.now for arrival in self.arrivals),
            rings=True,
            next_due=min(self.timers, default=None),
            acknowledgements=answers,
        )

    def wait(self, until):
        """A slot rings once, when the first record has come since the last epoch."""
        coming = None if self.has_rung else next((arrival for arrival in self.arrivals if arrival > self.now), None)
        assert coming is not None or until is not None, "nobody would ever wake the job"
        if until is not None and (coming is None or until <= coming):
            self.now = max(self.now, until)
            return facts.Waited(self.now, in_full=True)
        self.now, self.has_rung = coming, True
        self.machine.hear(facts.News())
        return facts.Waited(self.now, in_full=False)

    def gaps(self):
        """The times from the start of each epoch that need not be followed at once to the start of the next."""
        return [b.start - a.start for a, b in pairwise(self.epochs) if not a.catches_up]


def gathered(timeout):
    return MAX_MILLIS if timeout == -1 else timeout


def longest_wait(timeout, arrivals, lasts):
    """How long a record may wait: one that finds an epoch full also waits for the epochs that follow at once."""
    return max(gathered(timeout), lasts) + len(arrivals) // MAX_RECORDS * lasts


timeouts = st.sampled_from([0, 1, 7, 100, 3000, -1])
moments = st.lists(st.integers(0, 6000), min_size=1, max_size=60)


@settings(max_examples=300, deadline=None)
@given(timeouts, moments, st.integers(0, 20))
def test_no_record_waits_longer_than_it_should_and_no_epoch_comes_too_early(timeout, arrivals, lasts):
    job = Job(timeout, arrivals, lasts=lasts).play()
    assert len(job.delays) == len(arrivals) == sum(epoch.records for epoch in job.epochs)
    assert max(job.delays) <= longest_wait(timeout, arrivals, lasts)
    assert all(gap >= gathered(timeout) for gap in job.gaps())


def test_with_0_every_record_has_an_epoch_of_its_own_at_once():
    job = Job(0, [0, 3, 4, 900]).play()
    assert [epoch.start for epoch in job.epochs] == [0, 3, 4, 900] and job.delays == [0, 0, 0, 0]


def test_with_n_records_are_gathered_for_n_milliseconds_after_the_last_epoch():
    job = Job(100, [0, 3, 4, 900, 950, 999, 1001]).play()
    assert [(epoch.start, epoch.records) for epoch in job.epochs] == [(0, 1), (100, 2), (900, 1), (1000, 2), (1100, 1)]


def test_with_minus_1_epochs_wait_for_a_full_budget():
    """A full budget of time; an epoch that is full of records is followed at once, as always."""
    job = Job(-1, [0, 3, 4, 900, *[1500] * 12, 5000]).play()
    told = [(epoch.start, epoch.records) for epoch in job.epochs]
    assert told == [(0, 1), (1000, 3), (2000, 5), (2000, 5), (2000, 2), (5000, 1)]


@settings(max_examples=300, deadline=None)
@given(timeouts, moments, st.lists(st.integers(0, 6000), min_size=1, max_size=20), st.integers(0, 20))
def test_timers_come_with_any_timeout(timeout, arrivals, timers, lasts):
    job = Job(timeout, [*arrivals, 20_000], timers, lasts=lasts).play()
    assert [due for due, _ in job.fired] == sorted(timers)
    assert all(due <= now <= due + longest_wait(timeout, arrivals, lasts) for due, now in job.fired)
    assert max(job.delays) <= longest_wait(timeout, arrivals, lasts), "a record does not wait for a timer"


@settings(max_examples=300, deadline=None)
@given(timeouts, moments, st.sampled_from([50, 700, 2500]), st.integers(0, 20))
def test_checkpoints_come_with_any_timeout(timeout, arrivals, interval, lasts):
    """Checkpoints come even while no record does, and once more at the end, without which the job would not be over."""
    job = Job(timeout, [*arrivals, 20_000], interval=interval, lasts=lasts).play()
    wait = longest_wait(timeout, arrivals, lasts) + 2 * lasts
    moments = [0, *job.ordered]
    assert all(b - a <= interval + wait for a, b in pairwise(moments))
    assert job.ordered[-1] >= job.end and len(job.ordered) >= 20_000 // (interval + wait)
    assert max(job.delays) <= wait, "a record does not wait for a checkpoint"


@pytest.mark.parametrize("timeout", [0, 100, -1])
def test_an_idle_job_runs_no_epochs_and_an_ended_one_does_not_wait(timeout):
    job = Job(timeout, [0, 10**9]).play()
    assert [epoch.start for epoch in job.epochs] == [0, 10**9] and job.now == 10**9
