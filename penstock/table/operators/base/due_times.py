"""Addresses by the time at which work for them is due.

They are only in memory, and rebuilt from state after a restart.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from heapq import heappop, heappush
from typing import Any


class Due:
    """Addresses by the time at which they are due."""

    def __init__(self) -> None:
        self._by_time: dict[int, list[Any]] = {}
        self._times: list[int] = []

    def add(self, time: int, address: Any) -> None:
        """Add an address."""
        self.extend(time, (address,))

    def extend(self, time: int, addresses: Iterable[Any]) -> None:
        """Add addresses. An address that is added twice is returned twice."""
        known = self._by_time.get(time)
        if known is None:
            self._by_time[time] = list(addresses)
            heappush(self._times, time)
        else:
            known.extend(addresses)

    def pop(self, until: int) -> Iterator[tuple[int, list[Any]]]:
        """Remove and yield everything that is due at or before a time, in order of time."""
        while self._times and self._times[0] <= until:
            time = heappop(self._times)
            yield time, self._by_time.pop(time)

    def next_time(self) -> int | None:
        """Return the earliest time, or None."""
        return self._times[0] if self._times else None
