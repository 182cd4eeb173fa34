"""Waiting ends with what was waited for, or when nothing moves any more."""

from itertools import count

import pytest

from tests.waiting import Patience, until


def test_it_returns_what_the_condition_gave():
    answers = iter([None, [], 0, "there"])
    assert until(lambda: next(answers), every=0) == "there"


def test_a_standstill_fails_and_says_where():
    with pytest.raises(AssertionError, match=r"no progress for 0.02 s: 3 of 5"):
        until(lambda: False, progress=lambda: 3, patience=0.02, every=0.001, told=lambda: "3 of 5")


def test_it_waits_for_as_long_as_there_is_progress():
    """Each look takes more than the patience, and brings something new."""
    looks, steps = count(), count()
    assert until(lambda: next(looks) == 20, progress=lambda: next(steps), patience=0.001, every=0.002)


def test_time_in_which_nobody_looked_is_not_counted(monkeypatch):
    now = [0.0]
    monkeypatch.setattr("tests.waiting.time.monotonic", lambda: now[0])
    patience = Patience(3)
    found = []
    for _ in range(4):
        now[0] += 1000
        found.append(patience.spent())
    assert found == [False, False, False, True]
