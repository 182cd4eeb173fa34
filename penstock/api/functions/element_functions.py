"""Functions called once for each element or pair of elements: map, filter, reduce, aggregate, join and others."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, TypeAlias

from penstock.api.functions.collectors import accept_collectors
from penstock.errors import ContextError

if TYPE_CHECKING:
    from penstock.api.functions.contexts import RuntimeContext
    from penstock.common.type_information import TypeInformation

Outputs: TypeAlias = Iterable[Any] | None
"""The result of a function that may emit any number of elements: a generator, a list, or None for nothing.

A method that is declared with this type can take a `Collector` as one more parameter instead.
"""


class ResultTypeQueryable(ABC):
    """A function that declares the type of its results itself; a type that its builder method is given counts more."""

    @abstractmethod
    def get_produced_type(self) -> TypeInformation:
        """Return the type of the results."""


class Function(ABC):  # noqa: B024 - which method must be written, only the subclasses know
    """Base of everything a user writes to run inside an operator.

    Every parallel subtask works on a copy of its own. `open` is called once before the first element and again after a
    recovery, `close` once after the last, also when the job fails.
    """

    _holds_function = True
    """An object of such a class is no plain function, even if it can be called; neither is the class."""
    _runtime_context: RuntimeContext | None = None

    def __init_subclass__(cls, **named: Any) -> None:
        super().__init_subclass__(**named)
        accept_collectors(cls)

    def open(self, runtime_context: RuntimeContext) -> None:  # noqa: B027
        """Prepare for elements: bind state, open connections."""

    def set_runtime_context(self, runtime_context: RuntimeContext) -> None:
        """Called before `open`, with the same context."""
        self._runtime_context = runtime_context

    def get_runtime_context(self) -> RuntimeContext:
        """The context that `open` received, for every other method."""
        if self._runtime_context is None:
            raise ContextError(f"{type(self).__name__} has no runtime context before it is opened in a slot")
        return self._runtime_context

    def close(self) -> None:  # noqa: B027
        """Release what `open` acquired."""


class KeySelector(Function):
    """Extracts the key by which a stream is partitioned."""

    @abstractmethod
    def get_key(self, value: Any) -> Any:
        """Return the key. It must depend on nothing but the value, for it is computed anew after a recovery."""


class Partitioner(Function):
    """Chooses the target subtask of an element in `partition_custom`."""

    @abstractmethod
    def partition(self, key: Any, num_partitions: int) -> int:
        """Return a number from 0 to `num_partitions` - 1."""


class MapFunction(Function):
    """Turns each element into exactly one."""

    @abstractmethod
    def map(self, value: Any) -> Any:
        """Return the element that takes the place of `value`."""


class FilterFunction(Function):
    """Keeps the elements for which it answers yes."""

    @abstractmethod
    def filter(self, value: Any) -> bool:
        """Return whether `value` stays in the stream. It must not change the value."""


class FlatMapFunction(Function):
    """Turns each element into any number of elements."""

    @abstractmethod
    def flat_map(self, value: Any) -> Outputs:
        """Yield, or return as an iterable, what takes the place of `value`."""


class MapBatchesFunction(Function):
    """Turns each record batch into any number of record batches."""

    @abstractmethod
    def map_batches(self, batch: Any) -> Any:
        """Return the batch that takes the place of `batch`, or an iterable of batches; None for none."""


class FilterBatchesFunction(Function):
    """Keeps the rows of record batches for which it answers yes."""

    @abstractmethod
    def filter_batches(self, batch: Any) -> Any:
        """Return a boolean for each row of `batch`: whether it stays in the stream."""


class ReduceFunction(Function):
    """Combines two elements into one of the same type. The operation must be associative."""

    @abstractmethod
    def reduce(self, value1: Any, value2: Any) -> Any:
        """Return the combination of what was reduced so far, `value1`, and the element that came next, `value2`."""


class FoldFunction(Function):
    """Adds an element to an accumulator, as in Flink 1.x."""

    @abstractmethod
    def fold(self, accumulator: Any, value: Any) -> Any:
        """Return the accumulator with the element."""


class AggregateFunction(Function):
    """Folds elements into an accumulator whose type, like that of the result, may differ from theirs."""

    @abstractmethod
    def create_accumulator(self) -> Any:
        """Return the accumulator of no elements. Each call must give an object of its own."""

    @abstractmethod
    def add(self, value: Any, accumulator: Any) -> Any:
        """Return the accumulator with `value` in it; it may be the same object, changed."""

    @abstractmethod
    def get_result(self, accumulator: Any) -> Any:
        """Return the result for what was accumulated. The accumulator may receive more elements afterwards."""

    @abstractmethod
    def merge(self, acc_a: Any, acc_b: Any) -> Any:
        """Return one accumulator for both. It is needed where windows merge; neither argument is used again."""


class CoMapFunction(Function):
    """Two map functions over connected streams that share one instance, and so their state."""

    @abstractmethod
    def map1(self, value: Any) -> Any:
        """Return what takes the place of an element of the first stream."""

    @abstractmethod
    def map2(self, value: Any) -> Any:
        """Return what takes the place of an element of the second stream."""


class CoFlatMapFunction(Function):
    """Two flat-map functions over connected streams that share one instance, and so their state."""

    @abstractmethod
    def flat_map1(self, value: Any) -> Outputs:
        """Yield what takes the place of an element of the first stream."""

    @abstractmethod
    def flat_map2(self, value: Any) -> Outputs:
        """Yield what takes the place of an element of the second stream."""


class JoinFunction(Function):
    """Makes one element out of each pair that a window join finds."""

    @abstractmethod
    def join(self, first: Any, second: Any) -> Any:
        """Return the result for one pair with equal keys in the same window."""


class FlatJoinFunction(Function):
    """Makes any number of elements out of each pair that a window join finds."""

    @abstractmethod
    def join(self, first: Any, second: Any) -> Outputs:
        """Yield the results for one pair with equal keys in the same window."""


class CoGroupFunction(Function):
    """Sees all elements of two streams that share a key and a window at once."""

    @abstractmethod
    def co_group(self, first: Iterable[Any], second: Iterable[Any]) -> Outputs:
        """Yield the results for one key and window. One side may be empty, never both."""


class OutputSelector(Function):
    """Names the outputs of `split` to which an element belongs."""

    @abstractmethod
    def select(self, value: Any) -> Iterable[str]:
        """Return the names of zero or more outputs."""


# In Python every function has open and close: the Rich names of Java's API are only spellings.
RichMapFunction = MapFunction
RichFilterFunction = FilterFunction
RichFlatMapFunction = FlatMapFunction
RichReduceFunction = ReduceFunction
RichAggregateFunction = AggregateFunction
RichCoMapFunction = CoMapFunction
RichCoFlatMapFunction = CoFlatMapFunction
RichJoinFunction = JoinFunction
RichFlatJoinFunction = FlatJoinFunction
RichCoGroupFunction = CoGroupFunction
