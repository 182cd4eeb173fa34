"""Asynchronous operations: a client starts one, gets an id, and polls with this id until there is an outcome."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from secrets import token_hex
from typing import Any

Work = Callable[[], Any]
MOST_AT_ONCE = 64
MOST_REMEMBERED = 10_000


class TooMany(Exception):
    """Too many operations are running; a further one can start when one of them is done."""


@dataclass(frozen=True)
class Key:
    """The key of an operation."""

    kind: str
    scope: str
    """The id of the operation's job, or an empty text."""
    trigger: str


@dataclass
class Operation:
    """A running operation, or the outcome of one that has ended."""

    done: threading.Event = field(default_factory=threading.Event)
    result: Any = None
    error: BaseException | None = None
    ended: float = 0.0


class Operations:
    """All remembered operations. Any thread may call the methods."""

    def __init__(self, remember_seconds: float = 300, clock: Callable[[], float] = time.monotonic) -> None:
        self._remember = remember_seconds
        self._clock = clock
        self._known: dict[Key, Operation] = {}
        self._lock = threading.Lock()

    def start(self, kind: str, scope: str, trigger: str | None, work: Work) -> str:
        """Start an operation in a new thread, and return its trigger. Do nothing if the trigger is known already."""
        key = Key(kind, scope, trigger or token_hex(16))
        operation = Operation()
        with self._lock:
            self._forget()
            if key in self._known:
                return key.trigger
            if sum(not one.done.is_set() for one in self._known.values()) >= MOST_AT_ONCE:
                raise TooMany(
                    f"{MOST_AT_ONCE} operations are in progress, the maximum: try again when one of them has ended"
                )
            self._known[key] = operation
        # A daemon: an operation that hangs must not keep the process from ending.
        name = f"penstock rest {kind} {key.trigger[:6]}"
        threading.Thread(target=self._run, args=(operation, work), name=name, daemon=True).start()
        return key.trigger

    def _run(self, operation: Operation, work: Work) -> None:
        try:
            operation.result = work()
        except BaseException as error:
            operation.error = error
        operation.ended = self._clock()
        operation.done.set()

    def find(self, kind: str, scope: str, trigger: str) -> Operation | None:
        """Return the operation with this trigger, or None if it is unknown or forgotten."""
        with self._lock:
            self._forget()
            return self._known.get(Key(kind, scope, trigger))

    def _forget(self) -> None:
        """Forget operations that ended long ago, and the oldest ones if there are very many."""
        since = self._clock() - self._remember
        ended = [key for key, one in self._known.items() if one.done.is_set()]
        excess = len(self._known) - MOST_REMEMBERED
        for number, key in enumerate(ended):
            if number < excess or self._known[key].ended < since:
                del self._known[key]
