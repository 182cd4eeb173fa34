"""DDSketch with bins that can be taken out and put back: the only module that imports the library."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from functools import cache
from itertools import accumulate
from typing import Any

from ddsketch.ddsketch import BaseDDSketch
from ddsketch.mapping import LogarithmicMapping
from ddsketch.store import CollapsingLowestDenseStore

from penstock.metrics.histogram import _MOST_BINS, _NO_BINS, ACCURACY, Bins, pack_bins, unpack_bins


@cache
def _mapping() -> Any:
    """Return the mapping of values to bins. It never changes, so all sketches share it."""
    return LogarithmicMapping(ACCURACY)


class Sketch(BaseDDSketch):
    """Values in bins that grow with the value, so that the relative error is the same everywhere."""

    def __init__(self, zeros: int, positive: Bins, negative: Bins) -> None:
        self._positive, self._below = _store(positive), _store(negative)
        super().__init__(_mapping(), self._positive, self._below, zeros)

    def take(self, value: float) -> int:
        """Add a value. Return 1 if it counts as zero, else 0."""
        self.add(value)
        return 1 if -_mapping().min_possible <= value <= _mapping().min_possible else 0

    def quantiles(self, shares: Sequence[float]) -> list[float]:
        """Return the values at these shares of all values, like the library, but in one walk through the bins."""
        below, above = list(accumulate(self._below.bins)), list(accumulate(self._positive.bins))
        return [self._at(share * (self.count - 1), below, above) for share in shares]

    def _at(self, rank: float, below: list[float], above: list[float]) -> float:
        smaller, mapping = self._below.count, _mapping()
        if rank < smaller:
            place = min(bisect_left(below, smaller - rank), len(below) - 1)
            return -float(mapping.value(place + self._below.offset))
        left = rank - (self.count - self._positive.count)
        if left < 0:
            return 0.0
        return float(mapping.value(min(bisect_right(above, left), len(above) - 1) + self._positive.offset))

    def bins(self) -> tuple[Bins, Bins]:
        """Return the bins of the values above zero and of those below."""
        return _bins(self._positive), _bins(self._below)


def _store(bins: Bins) -> Any:
    store = CollapsingLowestDenseStore(_MOST_BINS)
    if bins[1]:
        store.offset, store.bins = unpack_bins(bins)
        store.min_key, store.max_key = store.offset, store.offset + len(store.bins) - 1
        store.count = sum(store.bins)
    return store


def _bins(store: Any) -> Bins:
    if not store.count:
        return _NO_BINS
    first, last = store.min_key - store.offset, store.max_key - store.offset
    return pack_bins(store.min_key, store.bins[first : last + 1])
