"""DDSketch with bins that can be taken out and put back: the only module that imports the library."""

from __future__ import annotations

from functools import cache
from typing import Any

from ddsketch.ddsketch import BaseDDSketch
from ddsketch.mapping import LogarithmicMapping
from ddsketch.store import CollapsingLowestDenseStore

from penstock.metrics.histogram import _MOST_BINS, _NO_BINS, ACCURACY, Bins, packed, unpacked


@cache
def _mapping() -> Any:
    """The same for all, since it never changes."""
    return LogarithmicMapping(ACCURACY)


class Sketch(BaseDDSketch):
    """Values in bins that grow with the value, so that the relative error is the same everywhere."""

    def __init__(self, zeros: int, positive: Bins, negative: Bins) -> None:
        self._positive, self._below = _store(positive), _store(negative)
        super().__init__(_mapping(), self._positive, self._below, zeros)

    def take(self, value: float) -> int:
        """Add a value; returns 1 if it counts as zero, else 0."""
        self.add(value)
        return 1 if -_mapping().min_possible <= value <= _mapping().min_possible else 0

    def bins(self) -> tuple[Bins, Bins]:
        """What is in it, above zero and below."""
        return _bins(self._positive), _bins(self._below)


def _store(bins: Bins) -> Any:
    store = CollapsingLowestDenseStore(_MOST_BINS)
    if bins[1]:
        store.offset, store.bins = unpacked(bins)
        store.min_key, store.max_key = store.offset, store.offset + len(store.bins) - 1
        store.count = sum(store.bins)
    return store


def _bins(store: Any) -> Bins:
    if not store.count:
        return _NO_BINS
    first, last = store.min_key - store.offset, store.max_key - store.offset
    return packed(store.min_key, store.bins[first : last + 1])
