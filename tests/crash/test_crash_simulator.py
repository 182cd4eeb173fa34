"""Thousands of seeds: whatever dies at whatever step, the outside world sees what an uninterrupted run shows it.

`make soak` goes on from here until it is stopped. A seed that fails there gets a test of its own below, or in the unit
tests of what was wrong.
"""

import logging
from collections import Counter
from functools import cache

import pytest

from penstock.testing.crashes import Outcome, simulate
from tests.crash.allround import EVENTS, KEYS, build

SEEDS = 500
BATCH = 100
SINKS = ("main", "own", "numbers", "phases", "marked")


@pytest.fixture(autouse=True)
def quiet():
    """Silence the log: a simulated job dies often, and says so each time."""
    logging.disable(logging.WARNING)
    yield
    logging.disable(logging.NOTSET)


def seen(outcome: Outcome) -> dict[str, Counter]:
    return {name: Counter(map(repr, outcome.store.visible(name))) for name in SINKS}


@cache
def uninterrupted() -> Outcome:
    return simulate(build, seed=0)


def check(seed: int) -> Outcome:
    outcome = simulate(build, seed, steps=uninterrupted().steps)
    assert seen(outcome) == seen(uninterrupted()), f"seed {seed}, {outcome.crashes}, {outcome.settings}"
    return outcome


def test_the_uninterrupted_run_says_what_the_program_means():
    results = uninterrupted().store.visible("main")
    counts = Counter(result[0] for result in results)
    assert (counts["element"], counts["processing timer"], counts["ruled"]) == (len(EVENTS), KEYS, KEYS)
    odd, even = ([event for event in EVENTS if event[1] % 2 == rest] for rest in (1, 0))
    pairs = [(a[1], b[1]) for a in odd for b in even if a[0] == b[0] and abs(a[2] - b[2]) <= 120]
    assert Counter(result[1:] for result in results if result[0] == "pair") == Counter(pairs)
    assert sorted(n for result in results if result[0] == "session" for n in result[4]) == list(range(len(EVENTS)))
    assert sorted(uninterrupted().store.visible("numbers"))[-20:] == [("number", n) for n in range(1, 21)]


@pytest.mark.parametrize("first", range(1, SEEDS + 1, BATCH))
def test_nothing_is_lost_and_nothing_comes_twice(first):
    outcomes = [check(seed) for seed in range(first, first + BATCH)]
    # The batch is worth something only if enough died in it, slots as well as drivers.
    assert sum(len(outcome.crashes) for outcome in outcomes) > BATCH / 2
    assert any(outcome.drivers > 1 for outcome in outcomes)
    assert any(outcome.drivers == 1 and outcome.crashes for outcome in outcomes)


@pytest.mark.parametrize("seed", [2, 138, 634, 1909])
def test_seeds_that_once_failed(seed):
    """2: an upload that ended between two questions was forgotten. 138: inlined files of one name were taken for one.
    634, 1909: of two checkpoints under way the older one was published last, and became the newest."""
    check(seed)
