"""Operations that take their time."""

from __future__ import annotations

import threading

import pytest

from penstock.service.rest import operations
from penstock.service.rest.operations import Operations, TooMany
from tests.waiting import until


class Time:
    now = 0.0

    def __call__(self):
        return self.now


def test_an_outcome_is_known_for_a_while():
    time = Time()
    known = Operations(300, time)
    trigger = known.start("savepoint", "job", None, lambda: 7)
    until(lambda: known.find("savepoint", "job", trigger).done.is_set())
    assert known.find("savepoint", "job", trigger).result == 7
    assert known.find("savepoint", "another", trigger) is None
    assert known.find("disposal", "job", trigger) is None
    time.now = 299
    assert known.find("savepoint", "job", trigger) is not None
    time.now = 301
    assert known.find("savepoint", "job", trigger) is None


def test_what_still_runs_is_not_forgotten():
    time, go = Time(), threading.Event()
    known = Operations(300, time)
    trigger = known.start("savepoint", "job", None, go.wait)
    time.now = 10_000
    assert not known.find("savepoint", "job", trigger).done.is_set()
    go.set()
    until(lambda: known.find("savepoint", "job", trigger).done.is_set())


def test_an_error_of_any_kind_is_an_outcome():
    known = Operations()

    def leave():
        raise SystemExit(3)

    trigger = known.start("savepoint", "job", None, leave)
    until(lambda: known.find("savepoint", "job", trigger).done.is_set())
    assert isinstance(known.find("savepoint", "job", trigger).error, SystemExit)


def test_the_same_trigger_twice_is_one_operation():
    known, calls = Operations(), []
    for _ in range(5):
        assert known.start("savepoint", "job", "t", lambda: calls.append(1)) == "t"
    until(lambda: known.find("savepoint", "job", "t").done.is_set())
    known.start("savepoint", "other", "t", lambda: calls.append(2))
    until(lambda: known.find("savepoint", "other", "t").done.is_set())
    assert calls == [1, 2]


def test_only_so_many_run_at_once(monkeypatch):
    monkeypatch.setattr(operations, "MOST_AT_ONCE", 3)
    known, go = Operations(), threading.Event()
    triggers = [known.start("savepoint", "job", None, go.wait) for _ in range(3)]
    with pytest.raises(TooMany, match="3 operations"):
        known.start("savepoint", "job", None, go.wait)
    assert known.start("savepoint", "job", triggers[0], go.wait) == triggers[0]
    go.set()
    until(lambda: all(known.find("savepoint", "job", trigger).done.is_set() for trigger in triggers))
    known.start("savepoint", "job", None, go.wait)


def test_the_oldest_make_room(monkeypatch):
    monkeypatch.setattr(operations, "MOST_REMEMBERED", 2)
    known = Operations()
    for trigger in "abcde":
        known.start("savepoint", "job", trigger, lambda: None)
        until(lambda trigger=trigger: known.find("savepoint", "job", trigger).done.is_set())
    assert [bool(known.find("savepoint", "job", trigger)) for trigger in "abcde"] == [False] * 3 + [True] * 2
