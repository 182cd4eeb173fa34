"""Both ends of a slot's third link, over which the driver watches it: log lines go out, questions come in.

Its own threads serve it, so that it works while a function runs and does not hold the slot up. Lines are handed to the
system without waiting. The lines before a sudden death of the process therefore arrive, too.
"""

from __future__ import annotations

import logging
import os
import pickle
import select
import selectors
import socket
import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from penstock.base.logs.log_lines import Line, show
from penstock.engine.observe.slot_questions import Question, answer
from penstock.spark.links.links import Inlet, LinkLost, Tag, add_header, close_all, say_farewell

MOST_WAITING = 1 << 20
"""Greatest size, in bytes, of lines that wait because the driver does not read. Further lines are dropped."""
LAST_SECONDS = 1.0
_LINE, _ANSWER = b"L", b"A"
_TAG = Tag(0, -1, -1)
log = logging.getLogger("penstock.job")


class SideLink:
    """The slot's end of a side link."""

    def __init__(self, sock: socket.socket, slot: int) -> None:
        self._sock = sock
        self._slot = slot
        self._driving = threading.main_thread().ident
        self._lock = threading.Lock()
        self._waiting = bytearray()
        self._ended = False
        self._woken, self._wake = os.pipe()
        os.set_blocking(self._wake, False)
        self._thread = threading.Thread(target=self._serve, name="penstock side link", daemon=True)
        self._thread.start()

    # --- lines ---
    def line(self, line: Line) -> bool:
        """Send a line without waiting. Return True if there was room for it."""
        said = add_header(_TAG, _LINE + pickle.dumps(line, pickle.HIGHEST_PROTOCOL))
        with self._lock:
            if self._ended or len(self._waiting) + len(said) > MOST_WAITING:
                return False
            self._waiting += said
            self._flush_soon()
        return True

    def _flush_soon(self) -> None:
        """Send waiting bytes now if possible, else as soon as the driver reads. The caller holds the lock."""
        if not self._flush():
            self._wake_up()

    def _wake_up(self) -> None:
        with suppress(BlockingIOError):
            os.write(self._wake, b"1")

    def _flush(self) -> bool:
        """Hand over as many bytes as the system takes. Return True if that was all. The caller holds the lock."""
        try:
            while self._waiting:
                del self._waiting[: self._sock.send(self._waiting, socket.MSG_DONTWAIT)]
        except BlockingIOError:
            return False
        except OSError:
            self._waiting.clear()  # the driver is gone
        return True

    # --- questions ---
    def _serve(self) -> None:
        try:
            self._hear()
        finally:
            with self._lock:
                self._ended = True
                os.close(self._woken)
                os.close(self._wake)

    def _hear(self) -> None:
        """Take questions until the link ends."""
        questions = Inlet(self._sock)
        while not self._ended:
            with self._lock:
                late = [] if self._flush() else [self._sock]
            try:
                watched: list[Any] = [self._sock, self._woken]
                ready, _, _ = select.select(watched, late, [])
                if self._woken in ready:
                    os.read(self._woken, 64)
                if self._sock not in ready or not questions.read(socket.MSG_DONTWAIT):
                    continue
            except (LinkLost, OSError, ValueError):
                return
            asked = pickle.loads(questions.message()[1])
            threading.Thread(target=self._answer, args=asked, name="penstock watch", daemon=True).start()

    def _answer(self, number: int, question: Question) -> None:
        found = answer(question, self._slot, self._driving)
        said = add_header(_TAG, _ANSWER + pickle.dumps((number, found), pickle.HIGHEST_PROTOCOL))
        with self._lock:
            if not self._ended:
                self._waiting += said
                self._flush_soon()

    # --- the end ---
    def finish(self) -> None:
        """Wait a moment until everything is sent, and close the link. The process is about to end."""
        until = time.monotonic() + LAST_SECONDS
        while time.monotonic() < until:
            with self._lock:
                if self._flush():
                    break
            time.sleep(0.01)
        with self._lock:
            if not self._ended:
                self._ended = True
                self._wake_up()
        self._thread.join(LAST_SECONDS)
        say_farewell(self._sock)


@dataclass(frozen=True)
class Talking:
    """The first message of a BATCH job's task that has lines for the driver."""

    slot: int


class LateSideLink:
    """A side link that connects when there is a first line."""

    def __init__(self, slot: int, connected: Callable[[bytes], socket.socket]) -> None:
        """Create a link that is not connected. `connected` makes a connection that begins with a given message."""
        self._slot = slot
        self._connected = connected
        self._link: SideLink | None = None
        self._lost = False

    def line(self, line: Line) -> bool:
        """Send a line, and connect before the first one. Return True if the line was taken."""
        if self._link is None and not self._lost:
            try:
                self._link = SideLink(self._connected(pickle.dumps(Talking(self._slot))), self._slot)
            except LinkLost:
                self._lost = True
        return self._link is not None and self._link.line(line)

    def finish(self) -> None:
        """Finish the link if it is connected."""
        if self._link is not None:
            self._link.finish()


class SideLinks:
    """The driver's ends of all side links: shows the lines of the slots, and asks them questions."""

    def __init__(self, links: Mapping[int, socket.socket], show_line: Callable[[Line], None] = show) -> None:
        self._inlets = {slot: Inlet(sock) for slot, sock in links.items()}
        self._show = show_line
        self._lock = threading.Lock()
        self._asked: dict[int, tuple[int, Future[Any]]] = {}
        self._next = 0
        self._thread = threading.Thread(target=self._listen, name="penstock side links", daemon=True)
        self._thread.start()

    def ask(self, question: Question) -> dict[int, Future[Any]]:
        """Ask all slots, and return the future answers by slot. The answer of a lost slot raises LinkLost."""
        return {slot: self._ask(slot, question) for slot in self._inlets}

    def _ask(self, slot: int, question: Question) -> Future[Any]:
        answer: Future[Any] = Future()
        with self._lock:
            number, self._next = self._next, self._next + 1
            self._asked[number] = slot, answer
            try:
                self._inlets[slot].sock.sendall(add_header(_TAG, pickle.dumps((number, question))))
            except (OSError, KeyError) as error:
                del self._asked[number]
                answer.set_exception(LinkLost(f"slot {slot} is gone: {error}"))
        return answer

    def _listen(self) -> None:
        with selectors.DefaultSelector() as selector:
            for slot, inlet in self._inlets.items():
                selector.register(inlet.sock, selectors.EVENT_READ, slot)
            while selector.get_map():
                for key, _ in selector.select():
                    if not self._hear(key.data):
                        selector.unregister(key.fileobj)

    def _hear(self, slot: int) -> bool:
        """Take the messages that have come from a slot. Return True if more may come."""
        inlet = self._inlets[slot]
        try:
            while inlet.read(socket.MSG_DONTWAIT):
                self._take(bytes(inlet.message()[1]))
        except LinkLost:
            self._lose(slot)
            return False
        return True

    def _take(self, said: bytes) -> None:
        try:
            if said[:1] == _LINE:
                self._show(pickle.loads(said[1:]))
                return
            number, answer = pickle.loads(said[1:])
            with self._lock:
                _, waiting = self._asked.pop(number, (0, Future()))
            waiting.set_result(answer)
        except Exception as error:
            # A log handler of the program may fail, and later messages must be taken nevertheless.
            log.debug("a message of a slot could not be shown: %s", error)

    def _lose(self, slot: int) -> None:
        with self._lock:
            lost = [number for number, (asked, _) in self._asked.items() if asked == slot]
            answers = [self._asked.pop(number)[1] for number in lost]
        for waiting in answers:
            waiting.set_exception(LinkLost(f"slot {slot} is gone"))

    def close(self) -> None:
        """Show the last lines of the slots, which are ending, and close the links."""
        if threading.current_thread() is not self._thread:
            self._thread.join(LAST_SECONDS)
        close_all(inlet.sock for inlet in self._inlets.values())
        with suppress(RuntimeError):
            self._thread.join(LAST_SECONDS)
