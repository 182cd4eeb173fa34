"""Discovery in a thread: it tells what it finds and nothing else, and never gets ahead of who takes it."""

import re
import threading
import time
from dataclasses import dataclass

import pytest

from penstock.common import WatermarkStrategy
from penstock.datastream.connectors.base import Boundedness, Fetched, Source, SourceReader, SplitEnumerator
from penstock.engine.operators.sources.discovery import Discovery, TimedDiscovery
from penstock.testing.crashes import StoreSink, crash_point, simulate
from tests.waiting import until


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


def test_looks_that_find_nothing_are_not_told(looking):
    shelf, discovery, told = looking(0.01)
    until(lambda: shelf.looks > 5)
    assert discovery.take() is None and not told.acquire(blocking=False)


def test_what_is_found_waits_with_its_state_until_it_is_taken(looking):
    shelf, discovery, told = looking(0.01)
    shelf.there.append("a")
    assert told.acquire(timeout=60)
    looks = shelf.looks
    shelf.there.append("b")
    time.sleep(0.1)  # for another look to show
    assert shelf.looks == looks
    first = discovery.take()
    assert (first.splits, first.state, first.more) == (["a"], 1, True)
    assert told.acquire(timeout=60)
    second = discovery.take()
    assert (second.splits, second.state) == (["b"], 2)


def test_who_knows_of_something_need_not_wait(looking):
    shelf, discovery, told = looking(3600)
    shelf.there.append("a")
    discovery.look_now()
    assert told.acquire(timeout=60)
    assert discovery.take().splits == ["a"]


def test_the_last_find_says_so_even_if_it_is_empty(looking):
    shelf, discovery, told = looking(3600)
    shelf.discovery_interval = None
    discovery.look_now()
    assert told.acquire(timeout=60)
    assert (find := discovery.take()).more is False and find.splits == []


def test_an_error_is_told_and_raised(looking):
    shelf, discovery, told = looking(0.01)
    shelf.error = OSError("gone")
    assert told.acquire(timeout=60)
    with pytest.raises(OSError, match="gone"):
        discovery.take()


# --- in the job's time ---
def test_by_a_clock_looks_come_when_they_are_due_and_in_the_thread_that_asks():
    now, told = [1_000], []
    shelf = Shelf(0.5)
    discovery = TimedDiscovery(shelf, lambda: told.append(1), lambda: now[0])
    assert discovery.take() is None and discovery.due_in() is None
    discovery.start()
    shelf.there.append("a")
    now[0] += 499
    assert discovery.take() is None and shelf.looks == 0 and discovery.due_in() == 0.001
    now[0] += 1
    assert discovery.due_in() == 0
    find = discovery.take()
    assert (find.splits, find.state, find.more) == (["a"], 1, True)
    assert discovery.due_in() == 0.5
    now[0] += 500
    assert discovery.take() is None and shelf.looks == 2, "nothing is new"
    shelf.there.append("b")
    discovery.look_now()
    assert told == [1] and discovery.due_in() == 0 and discovery.take().splits == ["b"]
    shelf.discovery_interval = None
    now[0] += 500
    assert discovery.take().more is False
    assert discovery.due_in() is None and discovery.take() is None
    discovery.close()


@dataclass(frozen=True)
class Numbers:
    """Ten numbers."""

    first: int
    at: int = 0

    @property
    def split_id(self):
        return str(self.first)


class Patient(Source):
    """Finds another split every 200 milliseconds; there are four."""

    def get_boundedness(self):
        return Boundedness.BOUNDED

    def create_enumerator(self):
        return PatientEnumerator()

    def create_reader(self, context):
        return NumbersReader()


class PatientEnumerator(SplitEnumerator):
    discovery_interval = 0.2

    def __init__(self):
        self.found = 0

    def discover(self):
        crash_point("looking")
        LOOKED_IN.add(threading.current_thread().name)
        self.found += 1
        self.discovery_interval = None if self.found >= 4 else 0.2
        return [Numbers(10 * (self.found - 1))] if self.found <= 4 else []

    def snapshot_state(self):
        return self.found

    def restore_state(self, state):
        self.found = state or 0


LOOKED_IN: set[str] = set()


class NumbersReader(SourceReader):
    def __init__(self):
        self.splits = {}

    def add_splits(self, splits):
        self.splits.update({split.split_id: split for split in splits})

    def fetch(self, most, wait):
        fetched = []
        for name, split in list(self.splits.items()):
            at = min(10, split.at + most)
            fetched.append(Fetched(name, [split.first + n for n in range(split.at, at)], None, at == 10))
            self.splits[name] = Numbers(split.first, at)
            if at == 10:
                del self.splits[name]
            break
        return fetched

    def snapshot_state(self):
        return list(self.splits.values())


def patient(env):
    env.set_parallelism(2)
    numbers = env.from_source(Patient(), WatermarkStrategy.no_watermarks(), "patient").uid("patient")
    numbers.sink_to(StoreSink("numbers"))


def course(outcome):
    """What happened, without the names that files were given by chance."""
    crashes = [re.sub(r"[0-9a-f]{8,}", "", crash) for crash in outcome.crashes]
    return outcome.steps, crashes, outcome.drivers


def test_the_simulator_waits_for_no_look_and_repeats_itself():
    LOOKED_IN.clear()
    whole = simulate(patient, seed=0)
    assert sorted(whole.store.visible("numbers")) == list(range(40))
    died = 0
    for seed in range(1, 21):
        one, again = (simulate(patient, seed, steps=whole.steps) for _ in range(2))
        assert course(one) == course(again), seed
        assert one.store.visible("numbers") == again.store.visible("numbers")
        assert sorted(one.store.visible("numbers")) == list(range(40)), seed
        died += len(one.crashes)
    assert died > 10
    assert "discovery" not in LOOKED_IN
