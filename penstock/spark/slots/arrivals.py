"""Slots that connect to the driver at the start of an attempt: exactly one process for each slot.

Spark may start several tasks for one slot: again when it lost a task or its executor, and twice with speculation. Task
ids grow. Until the attempt has all of its slots, the newest task of a slot serves the slot, and the links of older
tasks are closed. Processes that come later get no answer: they hold a core, do nothing, and end with the attempt. If
they were turned away earlier, Spark would start the next task at once.
"""

from __future__ import annotations

import logging
import pickle
import socket

from penstock.spark.links.door import Door
from penstock.spark.links.links import close_all, limit_silence
from penstock.spark.slots.worker import CONTROL, LIFELINE, SIDE, Hello

log = logging.getLogger("penstock.job")


class Arrivals:
    """The links that the slots of one attempt have made."""

    def __init__(self, door: Door, slots: int, silence: float) -> None:
        """Create the record of an attempt's links. A link without acknowledgement for `silence` seconds is lost."""
        self._door = door
        self._silence = silence
        self._slots = slots
        self.hellos: dict[int, Hello] = {}
        """First messages over the control links, by slot."""
        self.links: dict[str, dict[int, socket.socket]] = {CONTROL: {}, LIFELINE: {}, SIDE: {}}
        """Links, by kind and slot."""
        self._tasks: dict[int, int] = {}
        """Ids of the tasks that serve the slots, by slot."""

    @property
    def are_complete(self) -> bool:
        """True if every slot has made all of its links."""
        return all(len(of_kind) == self._slots for of_kind in self.links.values())

    @property
    def count(self) -> int:
        """Number of slots that have connected."""
        return len(self.links[CONTROL])

    def take(self, seconds: float) -> bool:
        """Take the next link if one comes within this time. Return True if one came."""
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
            close_all([link])
            return
        if hello.task > serving:
            log.debug("task %d instead of task %d serves slot %d", hello.slot, hello.task, serving)
            self._forget(hello.slot)
        self._tasks[hello.slot] = hello.task
        self.links[hello.kind][hello.slot] = link
        if hello.kind == CONTROL:
            self.hellos[hello.slot] = hello

    def _forget(self, slot: int) -> None:
        """Close the links of a process that a newer task replaces. The process ends, since it has no orders yet."""
        self.hellos.pop(slot, None)
        close_all([links.pop(slot) for links in self.links.values() if slot in links])

    def of_kinds(self, *kinds: str) -> list[socket.socket]:
        """Return all links of these kinds. Any thread may call this."""
        return [link for kind in kinds for link in list(self.links[kind].values())]
