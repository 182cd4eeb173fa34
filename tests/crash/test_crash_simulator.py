"""Thousands of seeds: whatever dies at whatever step, the outside world sees what an uninterrupted run shows it.

`make soak` goes on from here until it is stopped. A seed that fails there gets a test of its own below, or in the unit
tests of what was wrong.
"""

import logging
from collections import Counter
from functools import cache

import pytest

from penstock.testing.crashes import Outcome, simulate
from tests.crash import short_runs
from tests.crash.allround import EVENTS, KEYS, PARTS, WHOLE, Program

SEEDS = 200
BATCH = 100
SHORT_SEEDS = range(100_001, 100_501)


@pytest.fixture(autouse=True)
def quiet():
    """Silence the log: a simulated job dies often, and says so each time."""
    logging.disable(logging.WARNING)
    yield
    logging.disable(logging.NOTSET)


@cache
def uninterrupted() -> Outcome:
    return simulate(WHOLE, seed=0)


def check(seed: int, program: Program = WHOLE) -> Outcome:
    """Run a seed. The outside world must see the same as without any crash."""
    expected, steps = short_runs.uninterrupted(program)
    outcome = simulate(program, seed, steps=steps)
    assert short_runs.visible(outcome) == expected, f"seed {seed}, {program}, {outcome.crashes}, {outcome.settings}"
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


def test_nothing_is_lost_in_short_runs_in_which_deaths_are_closer_together():
    programs = {seed: short_runs.program_of(seed) for seed in SHORT_SEEDS}
    outcomes = [check(seed, program) for seed, program in programs.items()]
    assert sum(len(outcome.crashes) for outcome in outcomes) > len(SHORT_SEEDS)
    assert {part for program in programs.values() for part in program.parts} == set(PARTS)


@pytest.mark.parametrize("part", PARTS)
def test_each_part_shows_the_outside_world_something(part):
    program = Program((part,), 10, short_runs.SHORT_ENDING)
    seen, steps = short_runs.uninterrupted(program)
    assert sum(len(results) for results in seen.values()) > 3
    assert all(steps.values())
    timers = [result for result in seen["main"] if "processing timer" in result]
    assert len(timers) == (KEYS if part == "states" else 0)


@pytest.mark.parametrize("seed", [2, 138, 634, 1909])
def test_seeds_that_once_failed(seed):
    """2: an upload that ended between two questions was forgotten. 138: inlined files of one name were taken for one.
    634, 1909: of two checkpoints under way the older one was published last, and became the newest."""
    check(seed)
