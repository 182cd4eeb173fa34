"""Keys by the time at which something of theirs expires. In memory alone: made again from the state after a restart."""

from __future__ import annotations

from collections.abc import Sequence
from heapq import heappop, heappush
from itertools import count
from typing import Any

import numpy as np

from penstock.table.operators.base.state_matching import Numbers


class Expirations:
    """Each batch of keys is sorted once; taking out costs as much as what is taken, and a little for each batch."""

    def __init__(self) -> None:
        self._waiting: list[tuple[int, int, int, Numbers, Sequence[Any]]] = []
        """A heap of (next time, tie-breaker, how many are gone, times in order, their keys)."""
        self._numbers = count()

    def add(self, times: Numbers, keys: Sequence[Any]) -> None:
        """Note for each key the time at which something of it expires; a key may come several times."""
        if len(times) == 0:
            return
        if bool((times[1:] < times[:-1]).any()):
            order = np.argsort(times, kind="stable")
            times, keys = times[order], [keys[position] for position in order.tolist()]
        self._push(0, times, keys)

    def pop(self, until: int) -> list[Any]:
        """Take out the keys of everything that has expired at a time, each once."""
        found: dict[Any, None] = {}
        while self._waiting and self._waiting[0][0] <= until:
            _, _, gone, times, keys = heappop(self._waiting)
            stop = int(np.searchsorted(times, until, "right"))
            found.update(dict.fromkeys(keys[gone:stop]))
            if stop < len(times):
                self._push(stop, times, keys)
        return list(found)

    def next_time(self) -> int | None:
        return self._waiting[0][0] if self._waiting else None

    def _push(self, gone: int, times: Numbers, keys: Sequence[Any]) -> None:
        heappush(self._waiting, (int(times[gone]), next(self._numbers), gone, times, keys))
