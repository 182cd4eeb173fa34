"""Servers that compete for the lease on a storage that fails and stands still, with clocks that run differently.

Between any two calls of the storage time may pass, and other servers may do anything.
"""

from random import Random

import fsspec
import pytest
from fsspec.implementations.memory import MemoryFileSystem

from penstock.base.storage import Storage
from penstock.errors import StorageError
from penstock.service.server.leadership.fencing_numbers import newest_fence
from penstock.service.server.leadership.storage_lease import Lease

SERVERS = 3
DURATION = 15.0
STEPS = 120
SEEDS = 100
BATCH = 25


class Server:
    """Steps now and then. Its clock may run a tenth faster or slower than others."""

    def __init__(self, world, number):
        self.world = world
        self.rate = world.random.uniform(0.9, 1.1)
        self.offset = world.random.uniform(0, 1_000)
        self.lease = Lease(Storage("leased://register"), {"id": str(number)}, DURATION, self.clock)
        self.busy = self.dead = False
        self.led = []

    def clock(self):
        return self.offset + self.world.now * self.rate

    def step(self):
        self.busy = True
        try:
            self.lease.step()
        except StorageError:
            pass
        finally:
            self.busy = False
        held = self.lease.fence
        if held is not None and held not in self.led:
            self.led.append(held)


class World:
    """Gives turns, lets time pass, and checks after each call who thinks that it leads."""

    running = None

    def __init__(self, seed):
        self.random = Random(seed)
        self.now = 0.0
        self.calm = False
        LeasedFileSystem.store, LeasedFileSystem.pseudo_dirs = {}, [""]
        World.running = self
        self.servers = [Server(self, number) for number in range(SERVERS)]
        self.leading_seen = set()

    def play(self):
        for _ in range(STEPS):
            self.now += self.random.choice([0.5, 1.0, 3.0])
            if self.random.random() < 0.02:
                self.now += 30  # everything stands still
            self.turn()
            self.check()

    def turn(self):
        free = [server for server in self.servers if not server.busy and not server.dead]
        if free:
            self.random.choice(free).step()

    def call(self):
        """A server is about to call the storage."""
        if self.calm:
            return
        chance = self.random.random()
        if chance < 0.05:
            raise PermissionError("the storage says no")
        if chance < 0.15:
            self.now += self.random.choice([1.0, 8.0, 25.0])
        if chance < 0.3:
            self.turn()
        self.check()

    def check(self):
        leading = [server.lease.fence for server in self.servers if server.lease.is_valid()]
        assert len(leading) <= 1, f"{leading} lead at once"
        self.leading_seen.update(leading)

    # --- in the end ---
    def settle(self):
        self.calm = True
        for _ in range(40):
            self.now += 2.0
            for server in self.servers:
                if not server.dead:
                    server.step()
            self.check()
        leading = [server for server in self.servers if server.lease.is_valid()]
        assert len(leading) == 1, "somebody leads"
        assert leading[0].lease.fence == newest_fence(Storage("leased://register"))
        return leading[0]

    def leads_without(self, gone):
        """Whether another server leads when the leader is gone, once its lease has run out."""
        gone.dead = True
        for _ in range(40):
            self.now += 2.0
            for server in self.servers:
                if not server.dead:
                    server.step()
            self.check()
        return any(server is not gone and server.lease.is_valid() for server in self.servers)


class LeasedFileSystem(MemoryFileSystem):
    """One on which other servers may do anything between two calls."""

    protocol = "leased"
    store = {}
    pseudo_dirs = [""]
    cachable = False

    @classmethod
    def _strip_protocol(cls, path):
        return "/" + path.removeprefix("leased://").strip("/")

    def unstrip_protocol(self, name):
        return "leased://" + name.removeprefix("leased://").strip("/")

    def _open(self, path, mode="rb", **settings):
        World.running.call()
        return super()._open(path, mode, **settings)

    def cat_file(self, path, *arguments, **settings):
        World.running.call()
        return super().cat_file(path, *arguments, **settings)

    def find(self, path, **settings):
        World.running.call()
        return super().find(path, **settings)

    def mv(self, path1, path2, **settings):
        World.running.call()
        if super().exists(path2):
            raise FileExistsError(path2)
        super().mv(path1, path2, **settings)

    def rm_file(self, path):
        World.running.call()
        super().rm_file(path)


@pytest.fixture(autouse=True)
def file_system():
    fsspec.register_implementation("leased", LeasedFileSystem, clobber=True)


@pytest.mark.parametrize("first", range(0, SEEDS, BATCH))
def test_never_do_two_servers_lead_and_in_the_end_one_does(first):
    leaders = 0
    for seed in range(first, first + BATCH):
        world = World(seed)
        world.play()
        numbers = [number for server in world.servers for number in server.led]
        assert len(numbers) == len(set(numbers)), f"seed {seed}: a number was given twice"
        leader = world.settle()
        leaders += len(world.leading_seen)
        assert world.leads_without(leader), f"seed {seed}"
    assert leaders > BATCH, "the lease goes from hand to hand"


def test_a_lease_that_is_given_back_is_taken_at_once():
    world = World(1)
    world.calm = True
    first, second, _ = world.servers
    first.step()
    second.step()
    assert (first.lease.fence, second.lease.fence) == (1, None)
    first.lease.release()
    second.step()
    assert (first.lease.fence, second.lease.fence) == (None, 2)


def test_a_leader_that_cannot_renew_gives_up_before_another_can_take_over():
    world = World(1)
    world.calm = True
    first, second, _ = world.servers
    first.rate = second.rate = 1.0
    first.step()
    second.step()
    times = {}
    for _ in range(20):
        world.now += 1.0
        second.step()
        for name, is_so in (("gave up", not first.lease.is_valid()), ("took over", second.lease.is_valid())):
            if is_so:
                times.setdefault(name, world.now)
    assert times == {"gave up": 10.0, "took over": 15.0}
