"""The results that slots send to the driver's terminal and to clients."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping, Set
from typing import Any


class Results:
    """Hands results on at once, or when a checkpoint covers them if their sink promises exactly once."""

    def __init__(self, handlers: Mapping[str, Callable[[Any], None]], held: Set[str]) -> None:
        self._handlers = handlers
        self._held = held
        self._waiting: deque[tuple[int, str, Any]] = deque()

    def take(self, epoch: int, uid: str, payload: Any) -> None:
        """Take in a result of an epoch from the sink with this uid."""
        if uid in self._held:
            self._waiting.append((epoch, uid, payload))
        else:
            self._handlers[uid](payload)

    def release(self, epoch: int) -> None:
        """Hand on all results up to this epoch, since a checkpoint covers them and they will not be produced again."""
        while self._waiting and self._waiting[0][0] <= epoch:
            _, uid, payload = self._waiting.popleft()
            self._handlers[uid](payload)

    def release_all(self) -> None:
        """Hand on all results at the end of the job."""
        if self._waiting:
            self.release(self._waiting[-1][0])

    def forget(self) -> None:
        """Drop waiting results when the job restarts, since it will produce them once more."""
        self._waiting.clear()
