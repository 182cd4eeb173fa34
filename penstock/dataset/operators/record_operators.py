"""Operators that look at one element after the other, or at a whole partition without any order."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from penstock.dataset.operators.dataset_operator import DataSetOperator
from penstock.engine.records.elements import Values
from penstock.engine.records.failures import USER_ERRORS


class RecordOperator(DataSetOperator):
    """Base of operators that turn a list of elements into a list of results."""

    def process(self, index: int, values: Values) -> None:
        feed = iter(values)
        try:
            results = self.results(feed)
        except USER_ERRORS as error:
            raise self.failure(error, values, feed) from error
        self._ready += results
        self.send()

    def results(self, values: Iterator[Any]) -> list[Any]:
        """Return the results for some elements."""
        return list(values)


class UnionElements(RecordOperator):
    """Passes on the elements of two inputs."""

    main_inputs = 2


class MapElements(RecordOperator):
    """Turns each element into another."""

    def results(self, values: Iterator[Any]) -> list[Any]:
        call = self.call()
        return [call(value) for value in values]


class FilterElements(RecordOperator):
    """Keeps the elements for which the function returns true."""

    def results(self, values: Iterator[Any]) -> list[Any]:
        call = self.call()
        return [value for value in values if call(value)]


class FlatMapElements(RecordOperator):
    """Turns each element into any number of others."""

    def results(self, values: Iterator[Any]) -> list[Any]:
        call, flat = self.call(), list[Any]()
        for value in values:
            results = call(value)
            if results is not None:
                flat.extend(results)
        return flat


class FirstElements(RecordOperator):
    """Keeps the first elements of a partition."""

    def __init__(self, count: int) -> None:
        super().__init__()
        self.count = count
        self._left = count

    def results(self, values: Iterator[Any]) -> list[Any]:
        taken = list(values)[: self._left]
        self._left -= len(taken)
        return taken


class CrossElements(RecordOperator):
    """Combines each element with all of the other side, which is a broadcast set."""

    OTHER = "the other side of the cross"

    def __init__(self, function: Any, method: str, is_first: bool) -> None:
        """Create the operator. `is_first` says that the elements are of the first side."""
        super().__init__(function, method)
        self.is_first = is_first

    def results(self, values: Iterator[Any]) -> list[Any]:
        call, others = self.call(), self._values[self.OTHER]
        if self.is_first:
            return [call(value, other) for value in values for other in others]
        return [call(other, value) for value in values for other in others]


class HashJoin(RecordOperator):
    """Joins each element with those of the other side, which is a broadcast set in a table by key."""

    OTHER = "the smaller side of the join"

    def __init__(
        self,
        function: Any,
        method: str,
        keys: tuple[Callable[[Any], Any], Callable[[Any], Any]],
        is_first: bool,
        keeps: bool,
        is_flat: bool,
    ) -> None:
        """Create the operator.

        `keys` are the keys of the elements and of the other side. `keeps` is True if elements without a partner are
        joined with None. `is_flat` is True if the function returns any number of results.
        """
        super().__init__(function, method)
        self.keys = keys
        self.is_first = is_first
        self.keeps = keeps
        self.is_flat = is_flat

    def begin(self) -> None:
        self._partners: dict[Any, list[Any]] = {}
        key_of = self.keys[1]
        for other in self._values[self.OTHER]:
            self._partners.setdefault(key_of(other), []).append(other)

    def results(self, values: Iterator[Any]) -> list[Any]:
        call, key_of, partners = self.call(), self.keys[0], self._partners
        alone: list[Any] = [None] if self.keeps else []
        joined: list[Any] = []
        for value in values:
            for other in partners.get(key_of(value), alone):
                result = call(value, other) if self.is_first else call(other, value)
                if self.is_flat:
                    joined.extend(result or ())
                else:
                    joined.append(result)
        return joined


class CountElements(RecordOperator):
    """Counts the elements of each partition: (number of the partition, count)."""

    _count = 0

    def results(self, values: Iterator[Any]) -> list[Any]:
        self._count += sum(1 for _ in values)
        return []

    def rest(self) -> Iterator[Iterable[Any]]:
        yield [(self.context.subtask, self._count)]


class NumberElements(RecordOperator):
    """Gives each element a number: (number, element)."""

    COUNTS = "the counts of all partitions"

    def __init__(self, is_dense: bool) -> None:
        """Create the operator.

        Dense numbers have no gaps, so they need the counts of all partitions. Other numbers are only unique.
        """
        super().__init__()
        self.is_dense = is_dense

    def begin(self) -> None:
        context = self.context
        self._next, self._step = context.subtask, context.parallelism
        if self.is_dense:
            counts = dict(self._values[self.COUNTS])
            self._next, self._step = sum(counts.get(before, 0) for before in range(context.subtask)), 1

    def results(self, values: Iterator[Any]) -> list[Any]:
        numbered = []
        for value in values:
            numbered.append((self._next, value))
            self._next += self._step
        return numbered


def pair(first: Any, second: Any) -> tuple[Any, Any]:
    """Return both as a tuple: the result of a join or a cross without a function."""
    return first, second
