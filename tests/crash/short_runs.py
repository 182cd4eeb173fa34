"""Parts of the program of `allround`, so small that a soak gets through many seeds.

A seed takes one or two parts, over some of the events. As many processes die in it as in the whole program, so deaths
are much closer together: a step is hit some six times as often.
"""

from collections import Counter
from functools import cache
from random import Random

from penstock.testing.crashes import Outcome, simulate
from tests.crash.allround import PARTS, WHOLE, Program

SINKS = ("main", "own", "numbers", "phases", "marked")
SHORT_EVENTS = (10, 16, 24)
"""Numbers of events, all fewer than the whole program reads."""
SHORT_ENDING = 10
"""Pauses at the end: enough for all timers of processing time, whatever the clock's steps."""
SHARE_OF_WHOLE = 0.02
"""Share of seeds that take the whole program."""


def program_of(seed: int) -> Program:
    """Return the program of a seed."""
    chance = Random(f"program {seed}")
    if chance.random() < SHARE_OF_WHOLE:
        return WHOLE
    chosen = chance.sample(PARTS, chance.choice((1, 1, 2)))
    return Program(tuple(part for part in PARTS if part in chosen), chance.choice(SHORT_EVENTS), SHORT_ENDING)


@cache
def uninterrupted(program: Program) -> tuple[dict[str, Counter], dict[str, int]]:
    """Return what a program shows the outside world, and the numbers of its steps, if nothing dies."""
    outcome = simulate(program, seed=0)
    return visible(outcome), outcome.steps


def visible(outcome: Outcome) -> dict[str, Counter]:
    return {name: Counter(map(repr, outcome.store.visible(name))) for name in SINKS}
