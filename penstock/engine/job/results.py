"""What slots send to the driver's terminal and to clients, and when it is handed on."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping, Set
from typing import Any


class Results:
    """Hands results on at once, or, for sinks that promise each result exactly once, when a checkpoint covers them."""

    def __init__(self, handlers: Mapping[str, Callable[[Any], None]], held: Set[str]) -> None:
        self._handlers = handlers
        self._held = held
        self._waiting: deque[tuple[int, str, Any]] = deque()

    def take(self, epoch: int, uid: str, payload: Any) -> None:
        """A result of an epoch, from the sink of this uid."""
        if uid in self._held:
            self._waiting.append((epoch, uid, payload))
        else:
            self._handlers[uid](payload)

    def release(self, epoch: int) -> None:
        """Everything up to this epoch is covered by a checkpoint: it will not be produced again."""
        while self._waiting and self._waiting[0][0] <= epoch:
            _, uid, payload = self._waiting.popleft()
            self._handlers[uid](payload)

    def release_all(self) -> None:
        """The job has ended."""
        if self._waiting:
            self.release(self._waiting[-1][0])

    def forget(self) -> None:
        """The job starts again: what no checkpoint covers will be produced once more."""
        self._waiting.clear()
