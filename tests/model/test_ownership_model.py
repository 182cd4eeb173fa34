"""Drivers that take a job from each other, stopped at every call of the storage: at most one may act at a time.

Everything runs in threads of which one has its turn; at each call of the file system another may get it. What each
driver learns is compared with what has happened, in the order in which it happened.
"""

import threading
from random import Random

import fsspec
import pytest
from fsspec.implementations.memory import MemoryFileSystem

from penstock.engine.checkpoint.ownership import Ownership
from penstock.errors import JobDisplaced, JobRunning

DRIVERS = 4
ACTS = 4
SEEDS = 400
BATCH = 100


class World:
    """Gives turns, and knows what has happened."""

    running = None

    def __init__(self, seed):
        self.random = Random(seed)
        self.living = []
        self.turns = {}
        self.current = None
        self.over = threading.Event()
        self.owned = 0
        """The highest number of a driver that was told that it owns the job."""
        self.numbers, self.displaced = [], []
        self.wrong = []
        TurnsFileSystem.store, TurnsFileSystem.pseudo_dirs = {}, [""]
        World.running = self

    def play(self):
        for driver in range(DRIVERS):
            self.turns[driver] = threading.Event()
            self.living.append(driver)
            threading.Thread(target=self.live, args=(driver,), daemon=True).start()
        self.give_turn(self.random.choice(self.living))
        assert self.over.wait(120), "nobody gets on"
        World.running = None
        assert max(self.displaced, default=0) < max(self.numbers), "somebody has displaced them"

    def give_turn(self, driver):
        self.current = driver
        self.turns[driver].set()

    def await_turn(self, driver):
        self.turns[driver].wait()
        self.turns[driver].clear()

    def call(self):
        """The driver that has its turn is about to call the storage."""
        driver = self.current
        # Mostly it goes on: a driver that stands still while others do much is the danger.
        chosen = self.random.choice(self.living) if self.random.random() < 0.25 else driver
        if chosen is not driver:
            self.give_turn(chosen)
            self.await_turn(driver)

    def live(self, driver):
        self.await_turn(driver)
        try:
            self.act()
        except BaseException as error:
            self.wrong.append(error)
        self.living.remove(driver)
        if self.living:
            self.give_turn(self.random.choice(self.living))
        else:
            self.over.set()

    # --- what a driver does ---
    def act(self):
        owner = Ownership("turns://job", "job", 1000)
        try:
            self.take(owner)
            for _ in range(ACTS):
                if self.random.random() < 0.3:
                    owner.renew()
                    self.note(owner)
                self.check(owner)
        except JobRunning:
            pass
        except JobDisplaced:
            self.displaced.append(owner.number)
        finally:
            owner.let_go()

    def take(self, owner):
        takeover = self.random.random() < 0.8
        before = self.owned
        owner.take(takeover)
        if owner.number <= before:
            self.wrong.append(f"{owner.number} is not above {before}, which was taken before it began")
        self.note(owner)

    def note(self, owner):
        if owner.number in self.numbers:
            self.wrong.append(f"{owner.number} was given twice: {self.numbers}")
        self.numbers.append(owner.number)
        self.owned = max(self.owned, owner.number)

    def check(self, owner):
        """Whoever is told that it owns the job was not displaced when it asked."""
        before = self.owned
        owner.check()
        if owner.number < before:
            self.wrong.append(f"{owner.number} was told that it owns the job after {before} was")


class TurnsFileSystem(MemoryFileSystem):
    """A file system on which any other driver may do anything between two calls."""

    protocol = "turns"
    store = {}
    pseudo_dirs = [""]
    cachable = False

    @classmethod
    def _strip_protocol(cls, path):
        return "/" + path.removeprefix("turns://").strip("/")

    def unstrip_protocol(self, name):
        return "turns://" + name.removeprefix("turns://").strip("/")

    def _open(self, path, mode="rb", **settings):
        World.running.call()
        return super()._open(path, mode, **settings)

    def cat_file(self, path, *arguments, **settings):
        World.running.call()
        return super().cat_file(path, *arguments, **settings)

    def exists(self, path, **settings):
        World.running.call()
        return super().exists(path, **settings)

    def find(self, path, **settings):
        World.running.call()
        return super().find(path, **settings)

    def mv(self, path1, path2, **settings):
        """Rename in one step, as storage has to: the `mv` of the base class lets others in between test and copy."""
        World.running.call()
        source, target = self._strip_protocol(path1), self._strip_protocol(path2)
        if target in self.store:
            raise FileExistsError(path2)
        if source not in self.store:
            raise FileNotFoundError(path1)
        self.store[target] = self.store.pop(source)

    def rm_file(self, path):
        World.running.call()
        super().rm_file(path)


@pytest.fixture(autouse=True)
def file_system():
    fsspec.register_implementation("turns", TurnsFileSystem, clobber=True)


@pytest.mark.parametrize("first", range(0, SEEDS, BATCH))
def test_nobody_is_told_that_it_owns_a_job_which_another_has_taken(first):
    taken = []
    for seed in range(first, first + BATCH):
        world = World(seed)
        world.play()
        assert world.wrong == [], f"seed {seed}"
        taken.append(len(world.numbers))
    assert sum(taken) > 2 * BATCH, "the drivers displace each other"


@pytest.mark.parametrize("seed", [766, 1697, 2397, 2435, 2499])
def test_a_number_that_is_used_again_is_not_taken_for_the_earlier_one(seed):
    world = World(seed)
    world.play()
    assert world.wrong == []
