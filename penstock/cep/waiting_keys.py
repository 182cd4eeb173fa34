"""Keys with events that wait for the watermark, ordered by time."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator
from heapq import heapify, heappop, heappush
from itertools import count
from operator import itemgetter
from typing import Any

TIME = itemgetter(0)


class WaitingKeys:
    """Keys in the order of the times at which they must be processed.

    This object is not saved, because the table of waiting events holds the same facts. The next watermark reaches
    most keys, for which a list sorted once is enough. Only keys that wait longer go into a heap.
    """

    def __init__(self, waiting: Iterable[tuple[int, Any]] = ()) -> None:
        self._order = count()
        self._later = [(time, next(self._order), key) for time, key in waiting]
        heapify(self._later)
        self._arrived: list[tuple[int, Any]] = []
        self.add = self._arrived.append
        """Adds a pair (time, key). The same key may be added several times."""

    def due(self, watermark: int) -> Iterator[Any]:
        """Yield and remove the keys that are due at this watermark."""
        arrived, later = self._arrived, self._later
        arrived.sort(key=TIME)
        count = bisect_right(arrived, watermark, key=TIME)
        now, waiting = arrived[:count], arrived[count:]
        arrived.clear()
        for time, key in waiting:
            heappush(later, (time, next(self._order), key))
        while later and later[0][0] <= watermark:
            yield heappop(later)[2]
        for _, key in now:
            yield key

    def clear(self) -> None:
        """Forget all keys."""
        self._arrived.clear()
        self._later.clear()
