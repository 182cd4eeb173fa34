"""Partitions of neighbouring keys: a sample of the keys decides on the limits."""

from __future__ import annotations

import random
from bisect import bisect_left
from collections.abc import Iterable, Iterator
from operator import itemgetter
from typing import Any

from penstock.dataset.data_set import DataSet
from penstock.dataset.operators.ordering import rank
from penstock.dataset.operators.record_operators import MapElements, RecordOperator
from penstock.dataset.plan.keys import Key
from penstock.graph.partitioning import Custom

SAMPLED_KEYS = 2_000
"""Number of keys that each task samples."""


class SampleKeys(RecordOperator):
    """Emits the ranks of some keys, each with the same chance."""

    def __init__(self, key: Any) -> None:
        super().__init__()
        self.key = key

    def begin(self) -> None:
        self._sample: list[Any] = []
        self._seen = 0
        self._random = random.Random(self.context.subtask)

    def results(self, values: Iterator[Any]) -> list[Any]:
        for value in values:
            self._seen += 1
            if len(self._sample) < SAMPLED_KEYS:
                self._sample.append(rank(self.key(value)))
            elif (at := self._random.randrange(self._seen)) < SAMPLED_KEYS:
                self._sample[at] = rank(self.key(value))
        return []

    def rest(self) -> Iterator[Iterable[Any]]:
        yield self._sample


class PlaceElements(RecordOperator):
    """Emits (share of the sampled keys that are less, element)."""

    SAMPLE = "a sample of the keys"

    def __init__(self, key: Any) -> None:
        super().__init__()
        self.key = key

    def begin(self) -> None:
        self._limits = sorted(self._values[self.SAMPLE])

    def results(self, values: Iterator[Any]) -> list[Any]:
        limits, whole, key = self._limits, len(self._limits), self.key
        return [(bisect_left(limits, rank(key(value))) / whole, value) for value in values]


def choose_partition(share: float, partitions: int) -> int:
    """Return the partition of an element, given the share of the keys that are less than its own."""
    return min(int(share * partitions), partitions - 1)


def partition_by_range(data: DataSet, key: Key) -> DataSet:
    """Bring elements with neighbouring keys into one partition."""
    sample = data.add("SampleKeys", SampleKeys(key.selector))
    placed = data.add("PlaceElements", PlaceElements(key.selector))
    placed.step.add_set(PlaceElements.SAMPLE, sample.refs)
    return placed.add("RangePartition", MapElements(itemgetter(1)), data.kind, Custom(choose_partition, itemgetter(0)))
