"""Both ends of a slot's lifeline: a second link next to the one for commands, served by its own thread on either side.

Over it a slot answers heartbeats, wakes the driver, and shows where it is when it hangs. Messages are single bytes that
are not text; all text is the stack of a slot's threads, as `faulthandler` writes it.
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
from penstock.spark.links.links import UNREACHABLE, closed, loss_of, silence_of, this_machine

PING, WAKE, ASK, TOLD, UNHEARD = b"\x01", b"\x02", b"\x03", b"\x04", b"\x05"
"""PING asks "are you alive?" and answers "yes"; WAKE says that there is input; ASK asks for the stack; TOLD ends it.

UNHEARD says that the slot is alive and has heard no PING for some time."""
_WORDS = PING + WAKE + ASK + TOLD + UNHEARD
MOST_FRAMES = 20
_OUTERMOST = 'penstock/spark/slots/worker.py"'
"""The frames outside this file only show that the process is a slot."""
log = logging.getLogger("penstock.job")


class Lifeline:
    """The slot's end: answers heartbeats, wakes the driver, and ends the process when the driver is gone.

    If its thread cannot run because a library holds the interpreter lock, `faulthandler`, which does not need the lock,
    sends the stacks after `silence` seconds: before the driver gives up the slot. A thread that can run, and hears
    nothing, says so instead: then the driver's messages are lost on their way.
    """

    def __init__(self, sock: socket.socket, task: int, silence: float) -> None:
        """`task` is a pipe that closes when the slot's task ends."""
        self._sock = sock
        self._task = task
        self._silence = silence
        threading.Thread(target=self._watch, name="penstock lifeline", daemon=True).start()

    def wake(self) -> None:
        """Tell the driver that an epoch is wanted."""
        with suppress(OSError):
            self._sock.send(WAKE)

    def _watch(self) -> None:
        """Once the driver or the task of this slot is gone, there is nothing left to report to."""
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
        """Tell the driver that none of its messages has come for long, and that this process does not hang."""
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
    """What the driver knows of one slot."""

    sock: socket.socket
    process: int
    machine: str
    asked: float | None = None
    """Since when it owes an answer."""
    said: bytes = b""
    """The text that came since its last answer."""
    is_deaf: bool = False
    """Whether it has said, since its last answer, that it hears nothing."""

    def hear(self, said: bytes, tell: Callable[[str], None]) -> None:
        """Take what came. An answer makes the text before it worthless, unless it is the text that was asked for."""
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
        """The name of its host; `machine` begins with it."""
        return self.machine.partition(" ")[0]

    def text(self) -> str:
        return self.said.decode("utf-8", "replace")


class Lifelines:
    """The driver's ends: learns which slots wake it, which are dead, and where those that hang are."""

    def __init__(self, patience: Patience, on_wake: Callable[[bool], None], on_silent: Callable[[int], None]) -> None:
        self.cause: str | None = None
        """Why the first slot that was lost was lost."""
        self.unreachable: set[int] = set()
        """The slots that were lost because their hosts cannot be reached."""
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
        """What slots said since somebody asked for their stacks; None if nobody does."""
        self._asked: set[int] = set()
        """The slots that have been asked where they are."""
        self._waiting: set[int] = set()
        """Those of them that have answered that they wait for others."""
        self._selector = selectors.DefaultSelector()

    def add(self, slot: int, sock: socket.socket, process: int, machine: str) -> None:
        """Before the start: a slot, its link, and where its process is."""
        self._lines[slot] = _Line(sock, process, machine)
        self._selector.register(sock, selectors.EVENT_READ, slot)

    def start(self) -> None:
        threading.Thread(target=self._listen, name="penstock lifelines", daemon=True).start()

    def _listen(self) -> None:
        next_ping = time.monotonic()
        with self._selector:
            while not self._closing and self._lines:
                self._hear_all(max(0.0, next_ping - time.monotonic()))
                if time.monotonic() >= next_ping:
                    # A driver that was stopped itself finds the answers to what it asked before.
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
            # Its other link ends by itself, after what it may still have sent there.
            self._lose(slot, cause)
            return
        line.hear(said, lambda text: self._told(slot, text))
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
        closed([line.sock])
        self._on_silent(slot)

    def ask(self, slots: Iterable[int]) -> None:
        """Let slots that have been busy for long tell the log where they are; from any thread."""
        asked = [(slot, line) for slot in slots if (line := self._lines.get(slot)) is not None]
        self._asked, self._waiting = {slot for slot, _ in asked}, set()
        for _, line in asked:
            with suppress(OSError):
                line.sock.send(ASK, socket.MSG_DONTWAIT)

    def stacks(self, seconds: float) -> dict[int, str]:
        """Where the threads of all slots are, of those that answer in time; from any thread."""
        with self._one_asks:
            with self._heard:
                self._stacks = {}
            asked = list(self._lines)
            self.ask(asked)
            with self._heard:
                self._heard.wait_for(lambda: len(self._stacks or ()) >= len(asked), seconds)
                found, self._stacks = self._stacks or {}, None
        return found

    def _told(self, slot: int, text: str) -> None:
        """A slot says where it is: to whoever asked, and otherwise to the log."""
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
        """Nobody works, and all wait: messages between slots are lost or very slow."""
        places = ", ".join(f"{slot} on {line.host}" for slot, line in sorted(self._lines.items()))
        log.warning(
            "all slots have waited for messages of each other for %g s, and none is busy: look whether their hosts can "
            "reach each other (slots %s)",
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
        """Why the first slot was lost, for a caller that may have noticed it sooner."""
        self._lost.wait(seconds)
        return self.cause

    def close(self) -> None:
        self._closing = True
        for line in list(self._lines.values()):
            with suppress(OSError):
                line.sock.shutdown(socket.SHUT_RDWR)


def where(line: _Line, is_unreachable: bool = False) -> str:
    """Describe the state of a silent slot, as far as it is known. A kernel also acknowledges for a slot that hangs."""
    if line.is_deaf:
        return f". It is alive, and receives nothing from the driver: the network loses what goes to {line.host}"
    if is_unreachable:
        return f". Its host {line.host} acknowledges nothing: it is off, or the network loses what goes to or from it"
    stack = main_stack(line.text())
    if stack:
        return f". It does not let go of the interpreter in\n{stack}"
    if line.machine == this_machine() and _state_of(line.process) == "T":
        return f": its process {line.process} is stopped, as by SIGSTOP"
    return f". Where it is cannot be told: its process on {line.host} is stopped, or {line.host} cannot be reached"


def _state_of(process: int) -> str:
    """A letter, as `ps` shows it; empty where the system does not tell."""
    with suppress(OSError), open(f"/proc/{process}/stat") as stat:
        return stat.read().rpartition(")")[2].split()[0]
    return ""


def main_stack(said: str) -> str:
    """The stack of the main thread, the latest call first, out of those of all threads: it is the oldest, and last."""
    _, header, stack = said.rpartition(" (most recent call first):\n")
    frames = takewhile(lambda frame: _OUTERMOST not in frame, stack.rstrip().splitlines() if header else ())
    return "\n".join(islice(frames, MOST_FRAMES))


def _waits_for_others(stack: str) -> bool:
    return 'mesh.py", line' in stack and " in exchange" in stack
