"""Several drivers of one job: whoever is stopped wherever, and goes on whenever, outside each record is seen once.

`make soak-takeovers` goes on from here until it is stopped.
"""

import logging
from collections import Counter

import pytest

from penstock.testing.takeovers import TakeoverOutcome, simulate_takeovers
from tests.crash import short_runs
from tests.crash.allround import WHOLE, Program

SEEDS = 60
BATCH = 20
ENDINGS = {"finished", "displaced", "died"}


@pytest.fixture(autouse=True)
def quiet():
    logging.disable(logging.WARNING)
    yield
    logging.disable(logging.NOTSET)


def check(seed: int, program: Program = WHOLE) -> TakeoverOutcome:
    expected, steps = short_runs.uninterrupted(program)
    outcome = simulate_takeovers(program, seed, steps)
    story = f"seed {seed}, {program}, {outcome.endings}, {outcome.crashes}, {outcome.settings}"
    assert short_runs.visible(outcome) == expected, story
    assert set(outcome.endings) <= ENDINGS, story
    return outcome


@pytest.mark.parametrize("first", range(1, SEEDS + 1, BATCH))
def test_nothing_is_lost_and_nothing_comes_twice(first):
    outcomes = [check(seed) for seed in range(first, first + BATCH)]
    endings = Counter(ending for outcome in outcomes for ending in outcome.endings)
    # The batch is worth something only if drivers were displaced in it, and some that had displaced others.
    assert endings["displaced"] > BATCH / 2
    assert any(outcome.endings.count("displaced") > 1 for outcome in outcomes)


def test_a_seed_always_tells_the_same_story():
    steps = short_runs.uninterrupted(WHOLE)[1]
    first, second = (simulate_takeovers(WHOLE, 7, steps) for _ in range(2))
    assert (first.endings, first.steps, first.crashes) == (second.endings, second.steps, second.crashes)
    assert short_runs.visible(first) == short_runs.visible(second)


@pytest.mark.parametrize("seed", [143, 253])
def test_seeds_that_tell_when_a_part_is_missing(seed):
    """143: fails if files are deleted without a look at the token. 253: if a checkpoint counts that was published by a
    driver in the moment in which it was displaced."""
    check(seed)
