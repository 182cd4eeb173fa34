"""Loops through simulated crashes: slots and drivers die, and the next driver has another parallelism."""

from __future__ import annotations

import logging
from collections import Counter

import pytest

from penstock.common import Types
from penstock.datastream import KeyedProcessFunction
from penstock.datastream.state import ValueStateDescriptor
from penstock.testing import pause, scripted
from penstock.testing.crashes import StoreSink, crash_point, simulate

NUMBERS = range(1, 13)
ENDING = 4
SEEDS = 40


@pytest.fixture(autouse=True)
def quiet():
    """Silence the log: a simulated job dies often, and says so each time."""
    logging.disable(logging.WARNING)
    yield
    logging.disable(logging.NOTSET)


class CountSteps(KeyedProcessFunction):
    """Takes one step of Collatz with each visit of a key, and counts visits in state."""

    def open(self, context):
        self.visits = context.get_state(ValueStateDescriptor("visits", Types.INT()))

    def process_element(self, value, ctx):
        crash_point("step")
        key, number = value
        visits = self.visits.value() or 0
        if number == 1:
            yield "done", key, visits
        else:
            self.visits.update(visits + 1)
            yield "more", key, number // 2 if number % 2 == 0 else 3 * number + 1


class Loop:
    """A program with a loop. Each driver has another parallelism than the one before."""

    def __init__(self, seed):
        self.parallelism = 1 + seed % 3

    def __call__(self, environment):
        environment.set_parallelism(self.parallelism)
        self.parallelism = 1 + self.parallelism % 3
        numbers = scripted(environment, *[(n, n) for n in NUMBERS], *[pause()] * ENDING)
        loop = numbers.uid("numbers").set_parallelism(1).set_max_parallelism(12).rebalance().iterate().uid("loop")
        loop.set_max_parallelism(12)
        step = loop.key_by(lambda r: r[0]).process(CountSteps()).uid("steps").set_max_parallelism(12)
        more = step.filter(lambda r: r[0] == "more").uid("more").set_max_parallelism(12)
        loop.close_with(more.map(lambda r: (r[1], r[2])).uid("back").set_max_parallelism(12))
        done = step.filter(lambda r: r[0] == "done").uid("done").set_max_parallelism(12)
        done.sink_to(StoreSink("main")).uid("main").set_parallelism(1)


def steps(number):
    count = 0
    while number != 1:
        number, count = number // 2 if number % 2 == 0 else 3 * number + 1, count + 1
    return count


EXPECTED = Counter(("done", n, steps(n)) for n in NUMBERS)


def check(seed, counts):
    outcome = simulate(Loop(seed), seed, steps=counts)
    assert Counter(outcome.store.visible("main")) == EXPECTED, f"seed {seed}, {outcome.crashes}, {outcome.settings}"
    return outcome


def test_a_loop_loses_and_doubles_nothing():
    whole = simulate(Loop(0), seed=0)
    assert Counter(whole.store.visible("main")) == EXPECTED
    outcomes = [check(seed, whole.steps) for seed in range(1, SEEDS + 1)]
    assert sum(len(outcome.crashes) for outcome in outcomes) > SEEDS / 2
    assert any(outcome.drivers > 1 for outcome in outcomes)
