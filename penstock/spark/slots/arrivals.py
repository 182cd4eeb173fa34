"""The slots that come to the driver at the start of an attempt: one process for each, whatever Spark starts.

Spark may start several tasks for one slot: again when a task or its executor was lost, and twice with speculation. Task
ids grow, so until the attempt has all of its slots, the newest task of a slot serves it, and an older one is turned
away. Processes that come later are left unanswered at the door: they hold a core, do nothing, and end with the attempt.
Turning them away earlier would let Spark start the next one at once.
"""

from __future__ import annotations

import logging
import pickle
import socket

from penstock.spark.links.links import Door, closed, limit_silence
from penstock.spark.slots.worker import CONTROL, LIFELINE, SIDE, Hello

log = logging.getLogger("penstock.job")


class Arrivals:
    """The links that the slots of one attempt have made."""

    def __init__(self, door: Door, slots: int, silence: float) -> None:
        """Links on which nothing is acknowledged for `silence` seconds are lost."""
        self._door = door
        self._silence = silence
        self._slots = slots
        self.hellos: dict[int, Hello] = {}
        """By slot: what the process that serves it has said over its control link."""
        self.links: dict[str, dict[int, socket.socket]] = {CONTROL: {}, LIFELINE: {}, SIDE: {}}
        """By kind and slot."""
        self._tasks: dict[int, int] = {}
        """By slot: the id of the task that serves it."""

    @property
    def are_complete(self) -> bool:
        """Whether every slot has made all of its links."""
        return all(len(of_kind) == self._slots for of_kind in self.links.values())

    @property
    def count(self) -> int:
        """The number of slots that have come."""
        return len(self.links[CONTROL])

    def take(self, seconds: float) -> bool:
        """Take the next link, if one comes within this time; return whether one came."""
        guest = self._door.guest(seconds)
        if guest is None:
            return False
        hello: Hello = pickle.loads(guest[0])
        limit_silence(guest[1], self._silence)
        self._admit(hello, guest[1])
        return True

    def _admit(self, hello: Hello, link: socket.socket) -> None:
        serving = self._tasks.get(hello.slot, hello.task)
        if hello.task < serving:
            closed([link])
            return
        if hello.task > serving:
            log.debug("slot %d is served by task %d instead of task %d", hello.slot, hello.task, serving)
            self._forget(hello.slot)
        self._tasks[hello.slot] = hello.task
        self.links[hello.kind][hello.slot] = link
        if hello.kind == CONTROL:
            self.hellos[hello.slot] = hello

    def _forget(self, slot: int) -> None:
        """Turn a process away that has come too early. It ends, since it has no orders yet."""
        self.hellos.pop(slot, None)
        closed([links.pop(slot) for links in self.links.values() if slot in links])

    def of_kinds(self, *kinds: str) -> list[socket.socket]:
        """All links of these kinds. From any thread."""
        return [link for kind in kinds for link in list(self.links[kind].values())]
