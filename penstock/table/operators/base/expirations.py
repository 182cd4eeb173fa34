"""Keys by the time at which a part of their state expires. They are only in memory, and rebuilt after a restart."""

from __future__ import annotations

from collections.abc import Sequence
from heapq import heappop, heappush
from itertools import count
from typing import Any

import numpy as np

from penstock.table.operators.base.state_matching import Numbers


class Expirations:
    """A queue of batches of keys.

    Each batch is sorted once. `pop` costs what it returns, and a little for each batch.
    """

    def __init__(self) -> None:
        self._waiting: list[tuple[int, int, int, Numbers, Sequence[Any]]] = []
        """A heap of (next time, tie-breaker, number of keys that are gone, times in order, their keys)."""
        self._numbers = count()

    def add(self, times: Numbers, keys: Sequence[Any]) -> None:
        """Add for each key the time at which a part of its state expires. A key may occur several times."""
        if len(times) == 0:
            return
        if bool((times[1:] < times[:-1]).any()):
            order = np.argsort(times, kind="stable")
            times, keys = times[order], [keys[position] for position in order.tolist()]
        self._push(0, times, keys)

    def pop(self, until: int) -> list[Any]:
        """Remove everything that has expired at a time, and return its keys, each once."""
        found: dict[Any, None] = {}
        while self._waiting and self._waiting[0][0] <= until:
            _, _, gone, times, keys = heappop(self._waiting)
            stop = int(np.searchsorted(times, until, "right"))
            found.update(dict.fromkeys(keys[gone:stop]))
            if stop < len(times):
                self._push(stop, times, keys)
        return list(found)

    def next_time(self) -> int | None:
        """Return the earliest time, or None."""
        return self._waiting[0][0] if self._waiting else None

    def _push(self, gone: int, times: Numbers, keys: Sequence[Any]) -> None:
        heappush(self._waiting, (int(times[gone]), next(self._numbers), gone, times, keys))
