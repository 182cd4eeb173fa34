"""Clients who ask a job in which anything may die get an error, or what some moment of the job really held."""

import logging
import threading
from random import Random

import pytest

from penstock.datastream import KeyedProcessFunction, StreamExecutionEnvironment
from penstock.datastream.state import ListStateDescriptor
from penstock.engine.queryable.query_requests import QueryRequest
from penstock.errors import StateUnavailable
from penstock.service.launch.submission import with_defaults
from penstock.testing import pause, scripted
from penstock.testing.crashes import (
    Crash,
    CrashingCluster,
    Schedule,
    StoreSink,
    chosen_crashes,
    chosen_settings,
    crash_point,
    simulate_world,
)

SEEDS = 60
NUMBERS = 40
KEYS = 4
STEPS = {"durable": 300, "callback": 150}
"""About what a run has."""


@pytest.fixture(autouse=True)
def quiet():
    logging.disable(logging.WARNING)
    yield
    logging.disable(logging.NOTSET)


class Gather(KeyedProcessFunction):
    """Every key keeps its numbers, in the order of the source."""

    def open(self, context):
        descriptor = ListStateDescriptor("numbers")
        descriptor.set_queryable("numbers")
        self.numbers = context.get_list_state(descriptor)

    def process_element(self, value, ctx):
        crash_point("process_element")
        self.numbers.add(value)
        yield value


def build(environment: StreamExecutionEnvironment) -> None:
    script = [step for n in range(NUMBERS) for step in ((n, pause()) if n % 3 == 0 else (n,))]
    gathered = scripted(environment, *script).uid("source").key_by(lambda n: n % KEYS).process(Gather()).uid("gather")
    gathered.sink_to(StoreSink("main")).uid("sink")


class Asking(CrashingCluster):
    """Asks before every epoch, and within it."""

    def __init__(self, random: Random, answers: list) -> None:
        super().__init__()
        self.random = random
        self.answers = answers
        self.handle = None
        self.started = threading.Event()

    def run(self, command):
        assert self.started.wait(60)
        self.ask([0, 1, 2])
        return super().run(command)

    def _answer_asides(self):
        self.ask([0, 0, 1])
        super()._answer_asides()

    def ask(self, how_often):
        for _ in range(self.random.choice(how_often)):
            keys = self.random.choice([None, tuple(self.random.sample(range(KEYS), 2)), (self.random.randrange(KEYS),)])
            self.answers.append((self, self.handle.query(QueryRequest("numbers", keys))))


def play(seed: int) -> tuple[list, list, Schedule]:
    schedule = Schedule(seed)
    settings = chosen_settings(schedule.random)
    schedule.crashes = chosen_crashes(schedule.random, schedule.random.randint(1, 4), STEPS)
    answers = []
    with simulate_world(schedule, settings):
        while True:
            cluster = Asking(Random(schedule.random.random()), answers)
            with with_defaults(cluster=lambda settings, deployment: cluster):
                environment = StreamExecutionEnvironment.get_execution_environment().set_parallelism(2)
                build(environment)
                try:
                    cluster.handle = environment.execute_async()._job
                    cluster.started.set()
                    cluster.handle.result(60)
                    return answers, schedule.store.visible("main"), schedule
                except Crash:
                    continue


def numbers_seen(answer) -> int:
    """How many numbers the source had given at the cut of an answer; fails if there is no such moment."""
    lists = {entry.key: entry.value for entry in answer.entries if entry.found}
    keys = range(KEYS) if answer.keys is None else answer.keys
    for seen in range(NUMBERS + 1):
        expected = {key: [n for n in range(seen) if n % KEYS == key] for key in keys}
        if lists == {key: numbers for key, numbers in expected.items() if numbers}:
            return seen
    raise AssertionError(f"{lists} was never the state of the job")


def check_order(at_cut: dict) -> None:
    """Within an attempt, later cuts show more."""
    for (driver, attempt, epoch), seen in at_cut.items():
        later = [s for (d, a, e), s in at_cut.items() if (d, a) == (driver, attempt) and e > epoch]
        assert all(seen <= other for other in later)


@pytest.mark.parametrize("first", range(0, SEEDS, 20))
def test_answers_are_from_one_cut_whatever_dies(first):
    answered = refused = died = within = 0
    for seed in range(first, first + 20):
        answers, visible, schedule = play(seed)
        assert sorted(visible) == list(range(NUMBERS)), f"seed {seed}"
        died += len(schedule.log)
        at_cut = {}
        for driver, future in answers:
            error = future.exception(60)
            if error is not None:
                assert isinstance(error, StateUnavailable), f"seed {seed}: {error!r}"
                refused += 1
                continue
            answer = future.result()
            seen = numbers_seen(answer)
            answered += 1
            within += answer.cut.slot is not None
            if answer.keys is None:
                # What all keys hold says exactly where the job was, and a cut is one place.
                cut = driver, answer.cut.attempt, answer.cut.epoch
                assert at_cut.setdefault(cut, seen) == seen, f"seed {seed}"
        check_order(at_cut)
    assert died > 5 and answered > 100 and refused > 0 and within > 10
