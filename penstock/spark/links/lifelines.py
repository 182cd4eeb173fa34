"""Both ends of a slot's lifeline: a second link beside the one for commands, with its own thread on either side.

Over it, a slot answers heartbeats, wakes the driver, and shows its stacks when it hangs. Messages are single bytes that
are not text. All text is the stacks of a slot's threads, as `faulthandler` writes them.
"""

from __future__ import annotations

import faulthandler
import logging
import os
import select
import selectors
import socket
import threading
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice, takewhile
from typing import Any

from penstock.engine.job.cluster_protocol import Patience
from penstock.spark.links.links import UNREACHABLE, close_all, loss_of, silence_of, this_machine

PING, WAKE, ASK, TOLD, UNHEARD = b"\x01", b"\x02", b"\x03", b"\x04", b"\x05"
"""Messages of a lifeline.

PING asks for a sign of life and is also its answer. WAKE says that there is input. ASK asks for the stacks, and TOLD
ends them. UNHEARD says that the slot is alive and has received no PING for some time.
"""
_WORDS = PING + WAKE + ASK + TOLD + UNHEARD
MOST_FRAMES = 20
_OUTERMOST = 'penstock/spark/slots/worker.py"'
"""File whose frames end the interesting part of a stack. Below them a stack shows only the slot's own code."""
log = logging.getLogger("penstock.job")


class Lifeline:
    """The slot's end of a lifeline: answers heartbeats, wakes the driver, and ends the process when the driver is gone.

    If a library holds the interpreter lock, the thread of the lifeline cannot run. `faulthandler`, which does not need
    the lock, then sends the stacks after `silence` seconds, before the driver gives up the slot. A thread that runs but
    receives nothing sends UNHEARD instead, because the driver's messages get lost on their way.
    """

    def __init__(self, sock: socket.socket, task: int, silence: float) -> None:
        """Start the thread of the lifeline. `task` is a pipe that closes when the slot's task ends."""
        self._sock = sock
        self._task = task
        self._silence = silence
        threading.Thread(target=self._watch, name="penstock lifeline", daemon=True).start()

    def wake(self) -> None:
        """Ask the driver for an epoch."""
        with suppress(OSError):
            self._sock.send(WAKE)

    def _watch(self) -> None:
        """Serve the lifeline. End the process once the driver or the task of this slot is gone."""
        watched: list[Any] = [self._sock, self._task]
        while True:
            ready, _, _ = select.select(watched, [], [], self._silence / 2)
            try:
                if not ready:
                    self._complain()
                    continue
                said = b"" if self._task in ready else self._sock.recv(64)
                if not said:
                    break
                self._answer(said)
            except OSError:
                break
        os._exit(1)

    def _complain(self) -> None:
        """Tell the driver that this process does not hang, but has received no message for a long time."""
        faulthandler.dump_traceback_later(self._silence, file=self._sock.fileno())
        with suppress(BlockingIOError):
            self._sock.send(UNHEARD, socket.MSG_DONTWAIT)

    def _answer(self, said: bytes) -> None:
        if PING in said:
            faulthandler.dump_traceback_later(self._silence, file=self._sock.fileno())
            self._sock.send(PING)
        if ASK in said:
            faulthandler.dump_traceback(file=self._sock.fileno())
            self._sock.send(TOLD)


@dataclass
class _Line:
    """The driver's knowledge of one slot."""

    sock: socket.socket
    process: int
    machine: str
    asked: float | None = None
    """Time of the first PING that the slot has not answered, by the monotonic clock; None if it owes no answer."""
    said: bytes = b""
    """Text that came since the slot's last answer."""
    is_deaf: bool = False
    """Whether the slot has sent UNHEARD since its last answer."""

    def hear(self, said: bytes, tell: Callable[[str], None]) -> None:
        """Take received bytes, and pass stacks that were asked for to `tell`. A PING discards the text before it."""
        for number, part in enumerate(said.split(PING)):
            if number:
                self.asked, self.said, self.is_deaf = None, b"", False
            self.is_deaf |= UNHEARD in part
            self.said += part.translate(None, _WORDS)
            if TOLD in part:
                tell(self.text())
                self.asked, self.said = None, b""

    @property
    def host(self) -> str:
        """Name of the slot's host, with which `machine` begins."""
        return self.machine.partition(" ")[0]

    def text(self) -> str:
        """Return the received text."""
        return self.said.decode("utf-8", "replace")


class Lifelines:
    """The driver's ends of all lifelines: notices slots that wake it, are dead or hang."""

    def __init__(self, patience: Patience, on_wake: Callable[[bool], None], on_silent: Callable[[int], None]) -> None:
        self.cause: str | None = None
        """Cause of the loss of the first lost slot."""
        self.unreachable: set[int] = set()
        """Slots that were lost because their hosts cannot be reached."""
        self._lines: dict[int, _Line] = {}
        self._interval = patience.heartbeat_interval / 1000
        self._timeout = patience.heartbeat_timeout / 1000
        self._on_wake = on_wake
        self._on_silent = on_silent
        self._closing = False
        self._lost = threading.Event()
        self._one_asks = threading.Lock()
        self._heard = threading.Condition()
        self._stacks: dict[int, str] | None = None
        """Stacks that have come since a caller asked for them, by slot; None if no caller waits."""
        self._asked: set[int] = set()
        """Slots that were asked for their stacks."""
        self._waiting: set[int] = set()
        """Slots of `_asked` whose stacks show that they wait for other slots."""
        self._selector = selectors.DefaultSelector()

    def add(self, slot: int, sock: socket.socket, process: int, machine: str) -> None:
        """Add a slot, its link, and the id and machine of its process. Called before `start`."""
        self._lines[slot] = _Line(sock, process, machine)
        self._selector.register(sock, selectors.EVENT_READ, slot)

    def start(self) -> None:
        """Start the thread that serves the lifelines."""
        threading.Thread(target=self._listen, name="penstock lifelines", daemon=True).start()

    def _listen(self) -> None:
        next_ping = time.monotonic()
        with self._selector:
            while not self._closing and self._lines:
                self._hear_all(max(0.0, next_ping - time.monotonic()))
                if time.monotonic() >= next_ping:
                    # If the driver itself was stopped, the answers to its earlier PINGs are here already.
                    self._hear_all(0.0)
                    self._ping_all()
                    next_ping = time.monotonic() + self._interval

    def _hear_all(self, seconds: float) -> None:
        for key, _ in self._selector.select(seconds):
            self._hear(key.data, self._lines[key.data])

    def _hear(self, slot: int, line: _Line) -> None:
        cause = f"the process of slot {slot} died, and its state with it"
        try:
            said = line.sock.recv(1 << 16)
        except OSError as error:
            said = b""
            if error.errno in UNREACHABLE:
                cause = f"slot {slot} on {line.host}: {loss_of(error)}"
                self.unreachable.add(slot)
        if not said:
            # The slot's other link ends by itself, after its last messages.
            self._lose(slot, cause)
            return
        line.hear(said, lambda text: self._take_stacks(slot, text))
        if WAKE in said:
            self._on_wake(False)

    def _ping_all(self) -> None:
        now = time.monotonic()
        for slot, line in list(self._lines.items()):
            if line.asked is not None and now - line.asked >= self._timeout:
                self._give_up(slot, line)
                continue
            line.asked = now if line.asked is None else line.asked
            with suppress(OSError):
                line.sock.send(PING, socket.MSG_DONTWAIT)

    def _give_up(self, slot: int, line: _Line) -> None:
        silence = f"slot {slot} has not answered for {self._timeout:g} s (heartbeat.timeout)"
        is_unreachable = line.is_deaf or silence_of(line.sock) > self._interval
        if is_unreachable:
            self.unreachable.add(slot)
        self._lose(slot, silence + where(line, is_unreachable))
        close_all([line.sock])
        self._on_silent(slot)

    def ask(self, slots: Iterable[int]) -> None:
        """Make slots that have been busy for long write their stacks to the log. Any thread may call this."""
        asked = [(slot, line) for slot in slots if (line := self._lines.get(slot)) is not None]
        self._asked, self._waiting = {slot for slot, _ in asked}, set()
        for _, line in asked:
            with suppress(OSError):
                line.sock.send(ASK, socket.MSG_DONTWAIT)

    def stacks(self, seconds: float) -> dict[int, str]:
        """Return the stacks of the slots that answer in time, by slot. Any thread may call this."""
        with self._one_asks:
            with self._heard:
                self._stacks = {}
            asked = list(self._lines)
            self.ask(asked)
            with self._heard:
                self._heard.wait_for(lambda: len(self._stacks or ()) >= len(asked), seconds)
                found, self._stacks = self._stacks or {}, None
        return found

    def _take_stacks(self, slot: int, text: str) -> None:
        """Pass the stacks of a slot to a waiting caller, otherwise to the log."""
        with self._heard:
            if self._stacks is not None:
                self._stacks[slot] = text
                self._heard.notify_all()
                return
        stack = main_stack(text)
        if not stack:
            return
        if not _waits_for_others(stack):
            log.warning("slot %d has been busy with one epoch for %g s, in\n%s", slot, self._timeout, stack)
            return
        self._waiting.add(slot)
        if self._waiting == self._asked:
            self._warn_of_network()

    def _warn_of_network(self) -> None:
        """Warn that all slots wait and none works: messages between slots are lost or very slow."""
        places = ", ".join(f"{slot} on {line.host}" for slot, line in sorted(self._lines.items()))
        log.warning(
            "all slots have waited for each other's messages for %g s, and no slot is busy: check whether their "
            "hosts can reach each other (slots %s)",
            self._timeout,
            places,
        )

    def _lose(self, slot: int, cause: str) -> None:
        line = self._lines.pop(slot)
        with suppress(KeyError, ValueError):
            self._selector.unregister(line.sock)
        if not self._closing:
            self.cause = self.cause or cause
            self._lost.set()
            self._on_wake(True)

    def cause_within(self, seconds: float) -> str | None:
        """Wait at most this long for the first loss of a slot, and return its cause.

        The caller may have noticed the loss before this object.
        """
        self._lost.wait(seconds)
        return self.cause

    def close(self) -> None:
        self._closing = True
        for line in list(self._lines.values()):
            with suppress(OSError):
                line.sock.shutdown(socket.SHUT_RDWR)


def where(line: _Line, is_unreachable: bool = False) -> str:
    """Describe the state of a silent slot, as far as it is known. The kernel of a hanging slot still acknowledges."""
    if line.is_deaf:
        return f". The slot is alive but receives nothing from the driver: the network loses messages to {line.host}"
    if is_unreachable:
        return f". Its host {line.host} acknowledges nothing: the host is off, or the network loses its messages"
    stack = main_stack(line.text())
    if stack:
        return f". The slot does not release the interpreter lock in\n{stack}"
    if line.machine == this_machine() and _state_of(line.process) == "T":
        return f": its process {line.process} is stopped, as by SIGSTOP"
    return f". The reason is unknown: its process on {line.host} is stopped, or {line.host} cannot be reached"


def _state_of(process: int) -> str:
    """Return the state of a process as the letter that `ps` shows; empty if the system does not tell."""
    with suppress(OSError), open(f"/proc/{process}/stat") as stat:
        return stat.read().rpartition(")")[2].split()[0]
    return ""


def main_stack(said: str) -> str:
    """Return the main thread's stack from a dump of all threads, latest call first. The oldest thread comes last."""
    _, header, stack = said.rpartition(" (most recent call first):\n")
    frames = takewhile(lambda frame: _OUTERMOST not in frame, stack.rstrip().splitlines() if header else ())
    return "\n".join(islice(frames, MOST_FRAMES))


def _waits_for_others(stack: str) -> bool:
    return 'mesh.py", line' in stack and " in exchange" in stack
