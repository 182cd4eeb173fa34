"""Discovery in a thread: it tells what it finds and nothing else, and never gets ahead of who takes it."""

import threading
import time

import pytest

from penstock.datastream.connectors.base import SplitEnumerator
from penstock.runtime.discovery import Discovery


class Shelf(SplitEnumerator):
    """Splits that someone puts there."""

    def __init__(self, interval):
        self.discovery_interval = interval
        self.there = []
        self.found = 0
        self.looks = 0
        self.error = None

    def discover(self):
        self.looks += 1
        if self.error is not None:
            raise self.error
        new, self.found = self.there[self.found :], len(self.there)
        return new

    def snapshot_state(self):
        return self.found


@pytest.fixture
def looking():
    opened = []

    def make(interval):
        shelf, told = Shelf(interval), threading.Semaphore(0)
        discovery = Discovery(shelf, told.release)
        discovery.start()
        opened.append(discovery)
        return shelf, discovery, told

    yield make
    for discovery in opened:
        discovery.close()


def until(condition):
    deadline = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.005)


def test_looks_that_find_nothing_are_not_told(looking):
    shelf, discovery, told = looking(0.01)
    until(lambda: shelf.looks > 5)
    assert discovery.take() is None and not told.acquire(blocking=False)


def test_what_is_found_waits_with_its_state_until_it_is_taken(looking):
    shelf, discovery, told = looking(0.01)
    shelf.there.append("a")
    assert told.acquire(timeout=30)
    looks = shelf.looks
    shelf.there.append("b")
    time.sleep(0.1)
    assert shelf.looks == looks
    first = discovery.take()
    assert (first.splits, first.state, first.more) == (["a"], 1, True)
    assert told.acquire(timeout=30)
    second = discovery.take()
    assert (second.splits, second.state) == (["b"], 2)


def test_who_knows_of_something_need_not_wait(looking):
    shelf, discovery, told = looking(3600)
    shelf.there.append("a")
    discovery.look_now()
    assert told.acquire(timeout=30)
    assert discovery.take().splits == ["a"]


def test_the_last_find_says_so_even_if_it_is_empty(looking):
    shelf, discovery, told = looking(3600)
    shelf.discovery_interval = None
    discovery.look_now()
    assert told.acquire(timeout=30)
    assert (find := discovery.take()).more is False and find.splits == []


def test_an_error_is_told_and_raised(looking):
    shelf, discovery, told = looking(0.01)
    shelf.error = OSError("gone")
    assert told.acquire(timeout=30)
    with pytest.raises(OSError, match="gone"):
        discovery.take()
