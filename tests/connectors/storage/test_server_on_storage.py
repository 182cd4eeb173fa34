"""What a server keeps on storage, on each kind that servers can share: the lease of its leader, and the register."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest

from penstock.base.storage import Storage
from penstock.engine.job.job_record import JobRecord
from penstock.errors import AlreadyThere
from penstock.service.server.leadership.elections import last_leader
from penstock.service.server.leadership.fencing_numbers import fences
from penstock.service.server.leadership.storage_lease import Lease
from penstock.service.server.register import Register
from penstock.service.server.specs import DriverPlace, How, Outcome, Revision, Spec, Wanted

JOB = "ab" * 16
SECONDS = 10.0


class Hand:
    """A clock that stands still until it is moved."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Hand:
    return Hand()


@pytest.fixture
def servers(shared_place, clock) -> list[Lease]:
    """Three servers, each with a connection of its own."""
    return [Lease(Storage(shared_place), {"address": f"http://{name}"}, SECONDS, clock) for name in "abc"]


def leaders(servers: list[Lease]) -> list[int]:
    return [index for index, server in enumerate(servers) if server.is_valid()]


def test_the_lease_is_taken_renewed_lost_and_given_back(servers, clock, shared_place):
    first, second, third = servers
    for server in servers:
        server.step()
    assert leaders(servers) == [0] and first.fence == 1
    assert last_leader(Storage(shared_place))["address"] == "http://a"

    for _ in range(5):  # as long as it is renewed, nobody else may have it
        clock.now += SECONDS / 2
        for server in servers:
            server.step()
    assert leaders(servers) == [0]

    clock.now += 0.7 * SECONDS  # it stood still: it does not lead any more, before anybody else does
    assert leaders(servers) == []
    clock.now += 0.4 * SECONDS
    second.step()
    assert leaders(servers) == [1] and second.fence == 2
    first.step()
    assert first.fence is None, "it has seen its successor"

    second.release()
    third.step()
    assert leaders(servers) == [2] and last_leader(Storage(shared_place))["address"] == "http://c"


def test_of_many_who_take_it_at_once_one_has_it(shared_place, clock):
    servers = [Lease(Storage(shared_place), {"address": f"http://{n}"}, SECONDS, clock) for n in range(6)]
    with ThreadPoolExecutor(len(servers)) as threads:
        list(threads.map(Lease.step, servers))
    assert len(leaders(servers)) == 1
    assert len(fences(Storage(shared_place))) == 1


def test_a_walk_through_the_register(shared_place):
    written, read = Register(shared_place), Register(shared_place)
    spec = Spec(JOB, 1_000, "program.py", ("a", "b c"), "m:f", True, {"x": "y"}, "numpy\n")
    entry = written.add(spec, Revision(parallelism=2), b"print()\n")
    with pytest.raises(AlreadyThere):
        read.add(spec, Revision(), b"")
    found = read.job(JOB)
    assert read.job_ids() == [JOB] and found.spec() == spec and found.program() == ("program.py", b"print()\n")

    entry.enter(DriverPlace(1, 1, 5, {"host": "h", "pid": 3}, "/s", "/k", "/f"))
    with pytest.raises(AlreadyThere):
        found.enter(DriverPlace(1, 1, 5, {"host": "h", "pid": 4}, "/s", "/k", "/f"))
    assert found.drivers() == [1] and found.place(1).where["pid"] == 3

    entry.want(Wanted(3), 7)
    found.want(Wanted(1), 6)
    assert found.read_wanted() == entry.read_wanted() == Wanted(3)
    assert found.revise(Revision(2, 4, "s")) == entry.revise(Revision(2, 5, "t")) == entry.revision()

    record = JobRecord(JOB, "name", False, "FINISHED", ())
    entry.keep(0, record)
    entry.keep(0, record)  # a driver that was started again tells it again
    entry.end(1, Outcome(How.FINISHED, 5))
    found.end(1, Outcome(How.FAILED, 6))
    assert found.records() == {0: record} and found.outcome(1) == Outcome(How.FINISHED, 5)

    written.add_program("1", "p.py", b"1")
    assert read.program("1") == ("p.py", b"1") and read.programs() == [("1", "p.py")]
    assert read.delete_program("1") and not read.delete_program("1")
    read.forget(JOB)
    assert written.job_ids() == [] and Storage(shared_place).names() == []
