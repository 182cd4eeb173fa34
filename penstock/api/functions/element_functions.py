"""Functions called once for each element or pair of elements: map, filter, reduce, aggregate, join and others."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Generic, TypeAlias

from penstock.api.functions.collectors import accept_collectors
from penstock.api.output_tag import OutputTag
from penstock.base.type_variables import ACC, IN, IN1, IN2, KEY, OUT, T
from penstock.errors import ContextError

if TYPE_CHECKING:
    from penstock.api.functions.contexts import RuntimeContext
    from penstock.common.type_information import TypeInformation

Outputs: TypeAlias = Iterable[T] | None
"""Result of a function that may emit any number of elements: a generator, a list, or None for nothing.

A method that is declared with this type can take a `Collector` as one more parameter instead.
"""

TaggedOutputs: TypeAlias = Iterable[T | tuple[OutputTag[Any], Any]] | None
"""The results of a function that may also emit pairs of an OutputTag and a value. A pair goes to that side output."""


class ResultTypeQueryable(ABC, Generic[OUT]):
    """A function that declares the type of its results. A type given to the builder method takes precedence."""

    @abstractmethod
    def get_produced_type(self) -> TypeInformation[OUT]:
        """Return the type of the results."""


class Function(ABC):  # noqa: B024 - which method must be written, only the subclasses know
    """Base class of all functions that run inside an operator.

    Every parallel subtask works on its own copy. `open` is called once before the first element and again after a
    recovery. `close` is called once after the last element, also if the job fails.
    """

    _holds_function = True
    """Marks the class and its instances as no plain functions, even if they can be called."""
    _runtime_context: RuntimeContext | None = None

    def __init_subclass__(cls, **named: Any) -> None:
        super().__init_subclass__(**named)
        accept_collectors(cls)

    def open(self, runtime_context: RuntimeContext, /) -> None:  # noqa: B027
        """Prepare for elements, for example get state or open connections."""

    def set_runtime_context(self, runtime_context: RuntimeContext) -> None:
        """Store the runtime context. Called before `open`, with the same context."""
        self._runtime_context = runtime_context

    def get_runtime_context(self) -> RuntimeContext:
        """Return the context that `open` received. Every other method may call this."""
        if self._runtime_context is None:
            raise ContextError(f"{type(self).__name__} has no runtime context before it is opened in a slot")
        return self._runtime_context

    def close(self) -> None:  # noqa: B027
        """Release the resources that `open` acquired."""


class KeySelector(Function, Generic[IN, OUT]):
    """Extracts the key by which a stream is partitioned."""

    @abstractmethod
    def get_key(self, value: IN, /) -> OUT:
        """Return the key. It must depend on nothing but the value, because it is computed again after a recovery."""


class Partitioner(Function, Generic[KEY]):
    """Chooses the target subtask of an element in `partition_custom`."""

    @abstractmethod
    def partition(self, key: KEY, num_partitions: int, /) -> int:
        """Return the subtask for a key, as a number from 0 to `num_partitions` - 1."""


class MapFunction(Function, Generic[IN, OUT]):
    """Turns each element into exactly one element."""

    @abstractmethod
    def map(self, value: IN, /) -> OUT:
        """Return the element that replaces `value`."""


class FilterFunction(Function, Generic[IN]):
    """Keeps the elements for which `filter` returns True."""

    @abstractmethod
    def filter(self, value: IN, /) -> bool:
        """Return True if `value` stays in the stream. The method must not change the value."""


class FlatMapFunction(Function, Generic[IN, OUT]):
    """Turns each element into any number of elements."""

    @abstractmethod
    def flat_map(self, value: IN, /) -> Outputs[OUT]:
        """Yield the elements that replace `value`, or return them as an iterable."""


class MapBatchesFunction(Function):
    """Turns each record batch into any number of record batches."""

    @abstractmethod
    def map_batches(self, batch: Any, /) -> Any:
        """Return the batch that replaces `batch`, or an iterable of batches, or None for no batch."""


class FilterBatchesFunction(Function):
    """Keeps the rows of record batches for which `filter_batches` returns True."""

    @abstractmethod
    def filter_batches(self, batch: Any, /) -> Any:
        """Return a boolean for each row of `batch`: True if the row stays in the stream."""


class ReduceFunction(Function, Generic[T]):
    """Combines two elements into one of the same type. The operation must be associative."""

    @abstractmethod
    def reduce(self, value1: T, value2: T, /) -> T:
        """Return the combination of `value1`, the result so far, and `value2`, the next element."""


class FoldFunction(Function, Generic[IN, ACC]):
    """Adds an element to an accumulator, as in Flink 1.x."""

    @abstractmethod
    def fold(self, accumulator: ACC, value: IN, /) -> ACC:
        """Return the accumulator with `value` added to it."""


class AggregateFunction(Function, Generic[IN, ACC, OUT]):
    """Folds elements into an accumulator. Elements, accumulator and result may have three different types."""

    @abstractmethod
    def create_accumulator(self) -> ACC:
        """Return an empty accumulator. Each call must return a new object."""

    @abstractmethod
    def add(self, value: IN, accumulator: ACC, /) -> ACC:
        """Return the accumulator with `value` added to it. This may be the same object, changed."""

    @abstractmethod
    def get_result(self, accumulator: ACC, /) -> OUT:
        """Return the result for the accumulated values. The accumulator may receive more elements afterwards."""

    @abstractmethod
    def merge(self, acc_a: ACC, acc_b: ACC, /) -> ACC:
        """Return one accumulator with the content of both.

        Windows that merge need it. The arguments are not used again.
        """


class CoMapFunction(Function, Generic[IN1, IN2, OUT]):
    """Two map functions over connected streams that share one instance, and so their state."""

    @abstractmethod
    def map1(self, value: IN1, /) -> OUT:
        """Return the element that replaces an element of the first stream."""

    @abstractmethod
    def map2(self, value: IN2, /) -> OUT:
        """Return the element that replaces an element of the second stream."""


class CoFlatMapFunction(Function, Generic[IN1, IN2, OUT]):
    """Two flat-map functions over connected streams that share one instance, and so their state."""

    @abstractmethod
    def flat_map1(self, value: IN1, /) -> Outputs[OUT]:
        """Yield the elements that replace an element of the first stream."""

    @abstractmethod
    def flat_map2(self, value: IN2, /) -> Outputs[OUT]:
        """Yield the elements that replace an element of the second stream."""


class JoinFunction(Function, Generic[IN1, IN2, OUT]):
    """Makes one element out of each pair that a window join finds."""

    @abstractmethod
    def join(self, first: IN1, second: IN2, /) -> OUT:
        """Return the result for one pair with equal keys in the same window."""


class FlatJoinFunction(Function, Generic[IN1, IN2, OUT]):
    """Makes any number of elements out of each pair that a window join finds."""

    @abstractmethod
    def join(self, first: IN1, second: IN2, /) -> Outputs[OUT]:
        """Yield the results for one pair with equal keys in the same window."""


class CoGroupFunction(Function, Generic[IN1, IN2, OUT]):
    """Processes together all elements of two streams that share a key and a window."""

    @abstractmethod
    def co_group(self, first: Iterable[IN1], second: Iterable[IN2], /) -> Outputs[OUT]:
        """Yield the results for one key and window. One of the two sides may be empty, but never both."""


class OutputSelector(Function, Generic[IN]):
    """Chooses the outputs of `split` to which an element goes."""

    @abstractmethod
    def select(self, value: IN, /) -> Iterable[str]:
        """Return the names of the outputs, zero or more."""


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
