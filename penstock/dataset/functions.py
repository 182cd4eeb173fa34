"""The base classes of functions in DataSet programs. Plain functions are accepted as well.

A function with any number of results yields them. Each class has a variant whose name begins with Rich: it is opened
with a RuntimeContext, which has broadcast sets and accumulators.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Iterator
from typing import Any

from penstock.errors import ContextError

__all__ = [
    "CoGroupFunction",
    "CrossFunction",
    "FilterFunction",
    "FlatJoinFunction",
    "FlatMapFunction",
    "Function",
    "GroupCombineFunction",
    "GroupReduceFunction",
    "JoinFunction",
    "KeySelector",
    "MapFunction",
    "MapPartitionFunction",
    "Partitioner",
    "ReduceFunction",
    "RichCoGroupFunction",
    "RichCrossFunction",
    "RichFilterFunction",
    "RichFlatJoinFunction",
    "RichFlatMapFunction",
    "RichFunction",
    "RichGroupCombineFunction",
    "RichGroupReduceFunction",
    "RichJoinFunction",
    "RichMapFunction",
    "RichMapPartitionFunction",
    "RichReduceFunction",
]


class Function:
    """Base of all functions."""


class RichFunction(Function):
    """A function with a life: it is opened in each task before the first element, and closed after the last."""

    _runtime_context: Any = None

    def open(self, runtime_context: Any) -> None:
        """Prepare for the elements of one task."""

    def close(self) -> None:
        """Release what `open` acquired."""

    def set_runtime_context(self, runtime_context: Any) -> None:
        """Keep the context of the task. It is called before `open`."""
        self._runtime_context = runtime_context

    def get_runtime_context(self) -> Any:
        """Return the context of the task. It exists from `open` on."""
        if self._runtime_context is None:
            raise ContextError(f"{type(self).__name__} has no runtime context before open()")
        return self._runtime_context


# --- of one element ---
class MapFunction(Function):
    """Turns an element into another."""

    @abstractmethod
    def map(self, value: Any) -> Any:
        """Return the result for an element."""


class FlatMapFunction(Function):
    """Turns an element into any number of others."""

    @abstractmethod
    def flat_map(self, value: Any) -> Iterable[Any] | None:
        """Yield the results for an element."""


class FilterFunction(Function):
    """Chooses elements."""

    @abstractmethod
    def filter(self, value: Any) -> bool:
        """Return True to keep an element."""


# --- of many elements ---
class MapPartitionFunction(Function):
    """Turns the elements of a partition into any number of others."""

    @abstractmethod
    def map_partition(self, values: Iterator[Any]) -> Iterable[Any] | None:
        """Yield the results for a partition, which may be empty."""


class ReduceFunction(Function):
    """Combines two elements into one."""

    @abstractmethod
    def reduce(self, first: Any, second: Any) -> Any:
        """Return one element for two. The order in which elements meet is not fixed."""


class GroupReduceFunction(Function):
    """Turns a group into any number of results. It may also be a GroupCombineFunction."""

    @abstractmethod
    def reduce(self, values: Iterator[Any]) -> Iterable[Any] | None:
        """Yield the results for a group."""


class GroupCombineFunction(Function):
    """Turns a part of a group into fewer elements, before they are sent to the others of the group."""

    @abstractmethod
    def combine(self, values: Iterator[Any]) -> Iterable[Any] | None:
        """Yield elements for a part of a group."""


# --- of two sets ---
class JoinFunction(Function):
    """Joins two elements with equal keys."""

    @abstractmethod
    def join(self, first: Any, second: Any) -> Any:
        """Return the result for a pair, or yield any number. In an outer join a missing side is None."""


class FlatJoinFunction(Function):
    """Joins two elements with equal keys into any number of results."""

    @abstractmethod
    def join(self, first: Any, second: Any) -> Iterable[Any] | None:
        """Yield the results for a pair. In an outer join a missing side is None."""


class CoGroupFunction(Function):
    """Turns the elements of both sides that have a key into any number of results."""

    @abstractmethod
    def co_group(self, first: Iterable[Any], second: Iterable[Any]) -> Iterable[Any] | None:
        """Yield the results for a key. One of the sides may be empty."""


class CrossFunction(Function):
    """Combines every element of one set with every element of the other."""

    @abstractmethod
    def cross(self, first: Any, second: Any) -> Any:
        """Return the result for a pair."""


# --- of keys ---
class KeySelector(Function):
    """Computes the key of an element."""

    @abstractmethod
    def get_key(self, value: Any) -> Any:
        """Return the key."""


class Partitioner(Function):
    """Chooses the partition of a key."""

    @abstractmethod
    def partition(self, key: Any, num_partitions: int) -> int:
        """Return a number from 0 to num_partitions - 1."""


# --- rich ones ---
class RichMapFunction(RichFunction, MapFunction):
    """A MapFunction with open() and close()."""


class RichFlatMapFunction(RichFunction, FlatMapFunction):
    """A FlatMapFunction with open() and close()."""


class RichFilterFunction(RichFunction, FilterFunction):
    """A FilterFunction with open() and close()."""


class RichMapPartitionFunction(RichFunction, MapPartitionFunction):
    """A MapPartitionFunction with open() and close()."""


class RichReduceFunction(RichFunction, ReduceFunction):
    """A ReduceFunction with open() and close()."""


class RichGroupReduceFunction(RichFunction, GroupReduceFunction):
    """A GroupReduceFunction with open() and close()."""


class RichGroupCombineFunction(RichFunction, GroupCombineFunction):
    """A GroupCombineFunction with open() and close()."""


class RichJoinFunction(RichFunction, JoinFunction):
    """A JoinFunction with open() and close()."""


class RichFlatJoinFunction(RichFunction, FlatJoinFunction):
    """A FlatJoinFunction with open() and close()."""


class RichCoGroupFunction(RichFunction, CoGroupFunction):
    """A CoGroupFunction with open() and close()."""


class RichCrossFunction(RichFunction, CrossFunction):
    """A CrossFunction with open() and close()."""
