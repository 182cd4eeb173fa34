"""Operators that look at all elements of a group: they sort their input by key, on disk if it does not fit."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import chain, groupby, islice
from typing import Any

from penstock.dataset.operators.dataset_operator import DataSetOperator
from penstock.dataset.operators.ordering import GroupOrder, SortOrder
from penstock.engine.operators.batch.external_sort import ExternalSort
from penstock.engine.operators.operator import OperatorContext
from penstock.engine.records.elements import Values
from penstock.engine.records.failures import USER_ERRORS

Selector = Callable[[Any], Any]
Groups = Iterator[tuple[Any, Iterator[tuple[int, Values]]]]
"""(key, its elements in order, as (number of the input, values))"""
COMBINED_ELEMENTS = 20_000
"""Number of elements, or of keys, that a combiner gathers before it emits what it has."""


class ElementSort:
    """The way in which an operator sorts one of its inputs: by a key, and within a key by further fields."""

    def __init__(self, key: Selector | None, sort: Selector | None = None, descends: tuple[bool, ...] = ()) -> None:
        """Create the sort. Without a key all elements are one group. `sort` returns a tuple."""
        self.key = key
        self.sort = sort
        self.order = SortOrder(descends) if sort is not None else None

    def keys(self, side: int, values: Iterable[Any]) -> list[tuple[Any, int, tuple[Any, ...]]]:
        """Return the keys by which elements are sorted."""
        key, sort = self.key, self.sort
        if sort is None:
            return [(None if key is None else key(value), side, ()) for value in values]
        return [(None if key is None else key(value), side, sort(value)) for value in values]


class SortingOperator(DataSetOperator):
    """Base of operators that get their elements group by group."""

    def __init__(self, function: Any, method: str, *sorts: ElementSort) -> None:
        super().__init__(function, method)
        self.sorts = sorts
        self.main_inputs = len(sorts)

    def open(self, context: OperatorContext) -> None:
        order = GroupOrder(tuple(sort.order for sort in self.sorts))
        self._sorted = ExternalSort(order, context.sort_memory, context.spill_folder)
        super().open(context)

    def close(self) -> None:
        if hasattr(self, "_sorted"):
            self._sorted.close()
        super().close()

    def process(self, index: int, values: Values) -> None:
        feed = iter(values)
        try:
            keys = self.sorts[index].keys(index, feed)
        except USER_ERRORS as error:
            raise self.failure(error, values, feed) from error
        try:
            self._sorted.add(keys, index, values, None)
        except Exception as error:
            raise self.failure(error, []) from error

    def groups(self) -> Groups:
        """Yield the groups in the order of their keys."""
        for key, pieces in groupby(self._sorted.pieces(), key=lambda piece: piece.key[0]):
            yield key, ((piece.key[1], piece.values) for piece in pieces)

    def rest(self) -> Iterator[Iterable[Any] | None]:
        for key, elements in self.groups():
            try:
                yield self.group_results(elements)
            except USER_ERRORS as error:
                raise self.failure(error, [f"the group of key {key!r}"], iter(())) from error
        self._sorted.close()

    def group_results(self, elements: Iterator[tuple[int, Values]]) -> Iterable[Any] | None:
        """Return the results for one group."""
        raise NotImplementedError


class GroupElements(SortingOperator):
    """Calls the function once for each group, with an iterator over its elements."""

    def group_results(self, elements: Iterator[tuple[int, Values]]) -> Iterable[Any] | None:
        return self.call()(only_values(elements))  # type: ignore[no-any-return]


class PartitionElements(GroupElements):
    """Calls the function once for each partition, also for an empty one."""

    def rest(self) -> Iterator[Iterable[Any] | None]:
        values = chain.from_iterable(piece.values for piece in self._sorted.pieces())
        try:
            yield self.call()(values)
        except USER_ERRORS as error:
            raise self.failure(error, []) from error
        self._sorted.close()


class ReduceElements(SortingOperator):
    """Reduces each group to one element. It gets (key, element) from the combiners."""

    def group_results(self, elements: Iterator[tuple[int, Values]]) -> Iterable[Any]:
        pairs, reduce = only_values(elements), self.call()
        _, result = next(pairs)
        for _, value in pairs:
            result = reduce(result, value)
        return (result,)


class FirstOfGroup(SortingOperator):
    """Keeps the first elements of each group."""

    def __init__(self, count: int, sort: ElementSort) -> None:
        super().__init__(None, "", sort)
        self.count = count

    def group_results(self, elements: Iterator[tuple[int, Values]]) -> Iterable[Any]:
        return islice(only_values(elements), self.count)


class SortedElements(SortingOperator):
    """Emits the elements of a partition in order."""

    def group_results(self, elements: Iterator[tuple[int, Values]]) -> Iterable[Any]:
        return only_values(elements)


def only_values(elements: Iterator[tuple[int, Values]]) -> Iterator[Any]:
    """Yield the values of a group with one input."""
    return chain.from_iterable(values for _, values in elements)


# --- before the exchange ---
class CombiningReduce(DataSetOperator):
    """Reduces the elements of a task that have the same key, so that fewer are sent. It keeps a table of keys.

    It emits (key, element), since a function may change the fields of the key, and the group must stay together.
    """

    def __init__(self, function: Any, method: str, key: Selector | None) -> None:
        super().__init__(function, method)
        self.key = key

    def begin(self) -> None:
        self._reduced: dict[Any, Any] = {}

    def process(self, index: int, values: Values) -> None:
        key_of, reduce, reduced = self.key, self.call(), self._reduced
        feed = iter(values)
        try:
            for value in feed:
                key = None if key_of is None else key_of(value)
                if key in reduced:
                    reduced[key] = reduce(reduced[key], value)
                else:
                    reduced[key] = value
        except USER_ERRORS as error:
            raise self.failure(error, values, feed) from error
        if len(reduced) >= COMBINED_ELEMENTS:
            self._reduced = {}
            self.give(reduced.items())

    def rest(self) -> Iterator[Iterable[Any]]:
        yield self._reduced.items()


class CombiningGroups(DataSetOperator):
    """Calls a combiner for parts of groups, so that fewer elements are sent."""

    def __init__(self, function: Any, method: str, key: Selector | None) -> None:
        super().__init__(function, method)
        self.key = key

    def begin(self) -> None:
        self._parts: dict[Any, list[Any]] = {}
        self._count = 0

    def process(self, index: int, values: Values) -> None:
        key_of, feed = self.key, iter(values)
        try:
            for value in feed:
                self._parts.setdefault(None if key_of is None else key_of(value), []).append(value)
        except USER_ERRORS as error:
            raise self.failure(error, values, feed) from error
        self._count += len(values)
        if self._count >= COMBINED_ELEMENTS:
            for results in self.rest():
                self.give(results)

    def rest(self) -> Iterator[Iterable[Any] | None]:
        parts, self._parts, self._count = self._parts, {}, 0
        for key, values in parts.items():
            try:
                yield self.call()(iter(values))
            except USER_ERRORS as error:
                raise self.failure(error, [f"a part of the group of key {key!r}"], iter(())) from error
