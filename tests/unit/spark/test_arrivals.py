"""Which process serves a slot when Spark starts several tasks for it."""

from __future__ import annotations

import pickle
import socket
from collections.abc import Iterator

import pytest

from penstock.spark.links.door import Door, Listener
from penstock.spark.links.links import Tag, connect, send
from penstock.spark.slots.arrivals import Arrivals
from penstock.spark.slots.worker import CONTROL, LIFELINE, SIDE, Hello
from tests.waiting import until

SECRET = b"secret"
KINDS = (CONTROL, LIFELINE, SIDE)


@pytest.fixture
def door() -> Iterator[Door]:
    opened = Door(Listener(SECRET))
    yield opened
    opened.close()


def come(door: Door, slot: int, task: int, *kinds: str) -> list[socket.socket]:
    """The links of one process, as the process has them."""
    links = []
    for kind in kinds:
        link = connect(door.address, SECRET)
        send(link, Tag(0, -1, -1), pickle.dumps(Hello(slot, kind, task, process=1000 + task)))
        links.append(link)
    return links


def take_all(arrivals: Arrivals, count: int) -> None:
    for _ in range(count):
        until(lambda: arrivals.take(0.1))


def has_ended(link: socket.socket) -> bool:
    link.setblocking(False)
    try:
        return link.recv(1) == b""
    except BlockingIOError:
        return False


def test_slots_are_complete_with_all_of_their_links(door: Door) -> None:
    arrivals = Arrivals(door, 2, 10)
    kept = come(door, 1, 8, *KINDS) + come(door, 0, 7, CONTROL, LIFELINE)
    take_all(arrivals, 5)
    assert arrivals.count == 2 and not arrivals.are_complete
    kept += come(door, 0, 7, SIDE)
    take_all(arrivals, 1)
    assert arrivals.are_complete and not any(map(has_ended, kept))
    assert {slot: hello.process for slot, hello in arrivals.hellos.items()} == {0: 1007, 1: 1008}
    assert len(arrivals.of_kinds(CONTROL, SIDE)) == 4


def test_a_later_task_takes_the_place_of_an_earlier_one(door: Door) -> None:
    """Spark starts a task again when it has lost the first one, which may still live."""
    arrivals = Arrivals(door, 1, 10)
    first = come(door, 0, 3, CONTROL, LIFELINE)
    take_all(arrivals, 2)
    second = come(door, 0, 4, *KINDS)
    take_all(arrivals, 3)
    until(lambda: all(map(has_ended, first)))
    assert arrivals.are_complete and arrivals.hellos[0].process == 1004
    assert not any(map(has_ended, second))


def test_links_of_two_tasks_never_make_one_slot(door: Door) -> None:
    arrivals = Arrivals(door, 1, 10)
    kept = come(door, 0, 3, CONTROL, LIFELINE) + come(door, 0, 4, SIDE)
    take_all(arrivals, 3)
    assert not arrivals.are_complete and arrivals.count == 0
    assert kept


def test_an_earlier_task_that_comes_late_is_turned_away(door: Door) -> None:
    arrivals = Arrivals(door, 1, 10)
    second = come(door, 0, 4, CONTROL)
    take_all(arrivals, 1)
    first = come(door, 0, 3, *KINDS)
    take_all(arrivals, 3)
    until(lambda: all(map(has_ended, first)))
    assert arrivals.hellos[0].process == 1004 and not has_ended(second[0]) and not arrivals.are_complete


def test_who_comes_when_all_are_there_waits_until_the_attempt_ends(door: Door) -> None:
    arrivals = Arrivals(door, 1, 10)
    serving = come(door, 0, 3, *KINDS)
    take_all(arrivals, 3)
    late = come(door, 0, 4, *KINDS)
    assert arrivals.are_complete and arrivals.hellos[0].process == 1003
    assert not any(map(has_ended, serving + late))
    until(lambda: door._guests.qsize() == 3)
    door.close()
    until(lambda: all(map(has_ended, late)))
