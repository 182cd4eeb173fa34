"""DataSetUtils: numbers for elements, counts and samples."""

from __future__ import annotations

import heapq
import random
from collections.abc import Iterable, Iterator
from itertools import count
from operator import itemgetter
from typing import Any

from penstock.dataset.data_set import DataSet
from penstock.dataset.operators.record_operators import CountElements, MapElements, NumberElements, RecordOperator
from penstock.dataset.plan.checks import check_type
from penstock.dataset.plan.element_kinds import TupleKind


class DataSetUtils:
    """Further transformations of data sets."""

    @staticmethod
    def count_elements_per_partition(data: DataSet) -> DataSet:
        """Return (number of the partition, its elements) for every partition."""
        check_type("count_elements_per_partition", "data", data, DataSet)
        return data.add("CountElements", CountElements(), TupleKind((int, int)))

    @staticmethod
    def zip_with_index(data: DataSet) -> DataSet:
        """Return (number, element): the numbers are consecutive, from 0 on."""
        check_type("zip_with_index", "data", data, DataSet)
        kept = data.add("Keep", RecordOperator(), data.kind)
        numbered = kept.add("ZipWithIndex", NumberElements(True), TupleKind((int, data.kind)))
        numbered.step.add_set(NumberElements.COUNTS, kept.add("CountElements", CountElements()).refs)
        return numbered

    @staticmethod
    def zip_with_unique_id(data: DataSet) -> DataSet:
        """Return (number, element): the numbers differ. This needs no second pass."""
        check_type("zip_with_unique_id", "data", data, DataSet)
        return data.add("ZipWithUniqueId", NumberElements(False), TupleKind((int, data.kind)))

    @staticmethod
    def sample(data: DataSet, with_replacement: bool, fraction: float, seed: int | None = None) -> DataSet:
        """Return about a fraction of the elements; with replacement an element may come several times."""
        _check(data, with_replacement, seed)
        if isinstance(fraction, bool) or not isinstance(fraction, (int, float)) or fraction < 0:
            raise ValueError(f"sample: a fraction is a number of at least 0, not {fraction!r}")
        if not with_replacement and fraction > 1:
            raise ValueError(f"sample: a fraction without replacement is at most 1, not {fraction!r}")
        return data.add("Sample", SampleFraction(with_replacement, fraction, _seed(seed)), data.kind)

    @staticmethod
    def sample_with_size(data: DataSet, with_replacement: bool, num_samples: int, seed: int | None = None) -> DataSet:
        """Return a fixed number of elements, each with the same chance."""
        _check(data, with_replacement, seed)
        if isinstance(num_samples, bool) or not isinstance(num_samples, int) or num_samples < 0:
            raise ValueError(f"sample_with_size: a size is a whole number of at least 0, not {num_samples!r}")
        parts = data.add("Sample", SampleSize(with_replacement, num_samples, _seed(seed)))
        drawn = parts.single("Sample", MergeSamples(with_replacement, num_samples))
        return drawn.add("Drawn", MapElements(itemgetter(2)), data.kind)


def _check(data: DataSet, with_replacement: bool, seed: int | None) -> None:
    check_type("sample", "data", data, DataSet)
    check_type("sample", "with_replacement", with_replacement, bool)
    if seed is not None:
        check_type("sample", "seed", seed, int)


def _seed(seed: int | None) -> int:
    """Return the seed, or a random one. A task that runs again draws the same sample."""
    return random.getrandbits(48) if seed is None else seed


class SampleFraction(RecordOperator):
    """Draws about a fraction of the elements."""

    def __init__(self, with_replacement: bool, fraction: float, seed: int) -> None:
        super().__init__()
        self.with_replacement, self.fraction, self.seed = with_replacement, fraction, seed

    def begin(self) -> None:
        self._random = random.Random(f"{self.seed}/{self.context.subtask}")

    def results(self, values: Iterator[Any]) -> list[Any]:
        draw, fraction = self._random.random, self.fraction
        if not self.with_replacement:
            return [value for value in values if draw() < fraction]
        return [value for value in values for _ in range(self._times())]

    def _times(self) -> int:
        """Return a random number from the Poisson distribution whose mean is the fraction."""
        times, passed = 0, self._random.expovariate(1.0)
        while passed < self.fraction:
            times += 1
            passed += self._random.expovariate(1.0)
        return times


class SampleSize(RecordOperator):
    """Emits candidates of a sample: (place in the sample, random number, element).

    The candidate with the least number wins a place. Without replacement there is one place for all, of the given size.
    """

    def __init__(self, with_replacement: bool, size: int, seed: int) -> None:
        super().__init__()
        self.with_replacement, self.size, self.seed = with_replacement, size, seed

    def begin(self) -> None:
        self._random = random.Random(f"{self.seed}/{self.context.subtask}")
        self._kept: list[tuple[float, int, Any]] = []
        self._places: dict[int, tuple[float, Any]] = {}
        self._numbers = count()

    def results(self, values: Iterator[Any]) -> list[Any]:
        for value in values:
            if self.with_replacement:
                self._enter(value)
            elif len(self._kept) < self.size:
                heapq.heappush(self._kept, (-self._random.random(), next(self._numbers), value))
            elif self.size:
                heapq.heappushpop(self._kept, (-self._random.random(), next(self._numbers), value))
        return []

    def _enter(self, value: Any) -> None:
        for place in range(self.size):
            number = self._random.random()
            if place not in self._places or number < self._places[place][0]:
                self._places[place] = number, value

    def rest(self) -> Iterator[Iterable[Any]]:
        if self.with_replacement:
            yield [(place, number, value) for place, (number, value) in self._places.items()]
        else:
            yield [(0, -number, value) for number, _, value in self._kept]


class MergeSamples(RecordOperator):
    """Chooses the winners among the candidates of all tasks."""

    def __init__(self, with_replacement: bool, size: int) -> None:
        super().__init__()
        self.with_replacement, self.size = with_replacement, size

    def begin(self) -> None:
        self._candidates: list[tuple[int, float, Any]] = []

    def results(self, values: Iterator[Any]) -> list[Any]:
        self._candidates.extend(values)
        return []

    def rest(self) -> Iterator[Iterable[Any]]:
        ordered = sorted(self._candidates, key=itemgetter(0, 1))
        if not self.with_replacement:
            yield ordered[: self.size]
            return
        winners = {candidate[0]: candidate for candidate in reversed(ordered)}
        yield winners.values()
