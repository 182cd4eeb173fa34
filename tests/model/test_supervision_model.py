"""The state machine that looks after drivers, against drivers that start, die, hang and end as they please."""

from dataclasses import replace
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.common.job import JobStatus
from penstock.service.server.specs import How, Outcome
from penstock.service.server.supervision import (
    Cancel,
    End,
    Facts,
    Kill,
    Nothing,
    Presence,
    Revert,
    Revise,
    Rules,
    Start,
    Watch,
    decide,
    select_starts,
)

RULES = Rules(
    backoff=100, max_backoff=1_000, reset_after=5_000, cancel_again=500, patience=2_000, longest_silence=4_000
)


class World:
    """One job. It keeps its own account of what must and must not be decided."""

    def __init__(self, random):
        self.random = random
        self.now = 0
        self.watch = Watch()
        self.alive = self.unseen = self.runs = self.cancel = self.revertible = False
        self.outcome = None
        self.drivers = 0
        self.ended = None
        self.deaths_in_a_row = 0
        self.last_death = None
        self.cancel_since = None
        self.has_run = False
        self.calm = False
        self.stands_still_since = None

    def play(self):
        for step in range(400):
            self.calm = step > 250
            if self.ended is None:
                self.happen()
            self.step()
            self.now += self.random.choice([10, 50, 200, 1_000])
        return self.ended

    # --- what happens by itself ---
    def happen(self):
        random = self.random
        if not self.cancel and random.random() < 0.01:
            self.cancel, self.cancel_since = True, self.now
        if not self.alive:
            return
        if self.stands_still_since is not None:
            return
        if not self.calm and random.random() < 0.01:
            self.stands_still_since = self.now
            return
        if random.random() < 0.3:
            self.runs = self.has_run = True
        chance = random.random()
        if self.calm:
            if self.cancel or random.random() < 0.3:
                self.die(Outcome(How.CANCELED if self.cancel else How.FINISHED))
        elif chance < 0.05:
            self.die(None)
        elif chance < 0.06:
            self.die(Outcome(How.FAILED, deployed=self.runs))
        elif chance < 0.07:
            self.die(Outcome(random.choice([How.SUSPENDED, How.DISPLACED])))
        elif chance < 0.08 and self.runs:
            self.die(Outcome(How.RESCALED, savepoint="s", parallelism=3))

    def die(self, outcome):
        self.alive = self.runs = False
        self.outcome = outcome
        self.stands_still_since = None
        self.unseen = outcome is None and self.random.random() < 0.2
        self.last_death = self.now

    # --- what is decided ---
    def step(self):
        driver = Presence.ALIVE if self.alive else Presence.UNSEEN if self.unseen else Presence.NONE
        silent = 0 if self.stands_still_since is None else self.now - self.stands_still_since
        facts = Facts(driver, self.outcome, self.runs, self.cancel, self.revertible, silent)
        before = self.watch
        self.watch, decision = decide(self.watch, facts, RULES, self.now)
        assert self.ended is None or isinstance(decision, Nothing), "what has ended stays so"
        assert before.has_run <= self.watch.has_run
        getattr(self, f"on_{type(decision).__name__.lower()}")(decision)

    def on_nothing(self, decision):
        if self.ended is None and not self.alive:
            assert not self.cancel, "nobody waits for a job that is to be cancelled and has no driver"
            # A death is noticed with the next look, which may be a second later.
            assert self.now - (self.last_death or 0) < RULES.max_backoff + 1_000, "nobody waits for ever"

    def on_start(self, decision):
        assert not self.alive, "a job has one driver at a time"
        assert not self.cancel
        assert self.outcome is None or self.outcome.how in (How.SUSPENDED, How.DISPLACED, How.FAILED)
        if self.outcome is not None and self.outcome.how is How.FAILED:
            assert self.has_run and not self.outcome.deployed, "a job that failed is not started again"
        self.alive, self.outcome, self.unseen = True, None, False
        self.drivers += 1
        if self.random.random() < 0.05:  # the start itself may be put off: it must come again
            self.alive = False
            self.drivers -= 1
            self.watch = replace(self.watch, started=None)
            self.last_death = self.now

    def on_cancel(self, decision):
        assert self.alive and self.cancel

    def on_kill(self, decision):
        assert self.alive
        too_long = self.stands_still_since is not None and self.now - self.stands_still_since >= RULES.longest_silence
        assert too_long or (self.cancel and self.now - self.cancel_since >= RULES.patience)
        self.die(None)

    def on_revise(self, decision):
        assert not self.alive and not self.cancel and self.outcome.how is How.RESCALED
        self.outcome, self.revertible = None, True
        self.last_death = self.now

    def on_revert(self, decision):
        assert not self.alive and not self.cancel and self.revertible and not self.outcome.deployed
        self.outcome, self.revertible = None, False
        self.last_death = self.now

    def on_end(self, decision):
        assert not self.alive
        how = self.outcome.how if self.outcome is not None else None
        if decision.status is JobStatus.CANCELED:
            assert self.cancel or how is How.CANCELED
        else:
            assert how is not None and decision.status.name == how.name
        self.ended = decision.status


@settings(max_examples=300, deadline=None)
@given(st.integers(0, 2**64))
def test_whatever_happens(seed):
    World(Random(seed)).play()


@pytest.mark.parametrize("first", range(0, 1000, 250))
def test_every_job_comes_to_an_end_when_its_drivers_do(first):
    ended = [World(Random(seed)).play() for seed in range(first, first + 250)]
    assert None not in ended
    assert {JobStatus.FINISHED, JobStatus.CANCELED, JobStatus.FAILED} == set(ended)


def after_deaths(number):
    """When the driver is started again that follows so many that died at once."""
    watch, now, alone = Watch(), 0, Facts(Presence.NONE)
    watch, decision = decide(watch, alone, RULES, now)
    waits = []
    for _ in range(number):
        assert isinstance(decision, Start)
        died = now
        watch, decision = decide(watch, alone, RULES, now)
        while not isinstance(decision, Start):
            now += 10
            watch, decision = decide(watch, alone, RULES, now)
        waits.append(now - died)
    return waits


def test_drivers_that_die_at_once_are_started_less_and_less_often():
    assert after_deaths(6) == [100, 200, 400, 800, 1_000, 1_000]


def test_a_driver_that_lived_long_is_replaced_at_once():
    watch, _ = decide(Watch(deaths=5), Facts(Presence.NONE), RULES, 0)
    watch, _ = decide(watch, Facts(Presence.ALIVE, runs=True), RULES, 6_000)
    watch, decision = decide(watch, Facts(Presence.NONE), RULES, 7_000)
    assert isinstance(decision, Nothing) and watch.not_before == 7_100


def test_cancelling_is_told_again_and_then_enforced():
    watch, told = Watch(), []
    for now in range(0, 2_100, 100):
        watch, decision = decide(watch, Facts(Presence.ALIVE, cancel=True), RULES, now)
        if not isinstance(decision, Nothing):
            told.append((now, type(decision)))
    assert told == [(0, Cancel), (500, Cancel), (1_000, Cancel), (1_500, Cancel), (2_000, Kill)]


def test_a_revision_that_cannot_be_started_is_taken_back():
    watch, outcome = Watch(has_run=True), Outcome(How.RESCALED, savepoint="s", parallelism=4)
    watch, decision = decide(watch, Facts(Presence.NONE, outcome), RULES, 0)
    assert decision == Revise(outcome)
    watch, decision = decide(watch, Facts(Presence.NONE, revertible=True), RULES, 1)
    assert isinstance(decision, Start)
    failed = Outcome(How.FAILED, message="no cores", deployed=False)
    watch, decision = decide(watch, Facts(Presence.NONE, failed, revertible=True), RULES, 2)
    assert decision == Revert(failed)
    watch, decision = decide(watch, Facts(Presence.NONE), RULES, 3)
    assert isinstance(decision, Start)


@given(st.lists(st.text(max_size=3), max_size=30), st.integers(0, 10), st.integers(1, 10))
def test_only_so_many_start_at_once_and_the_first_come_first(waiting, starting, limit):
    let_in = select_starts(waiting, starting, limit)
    assert waiting[: len(let_in)] == let_in
    assert len(let_in) + starting <= max(limit, starting)
    assert len(let_in) == len(waiting) or len(let_in) + starting >= limit


def test_an_ended_job_is_left_alone():
    watch, decision = decide(Watch(), Facts(Presence.NONE, Outcome(How.FINISHED)), RULES, 0)
    assert isinstance(decision, End)
    assert decide(watch, Facts(Presence.NONE), RULES, 1) == (watch, Nothing())
