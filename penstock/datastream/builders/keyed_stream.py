"""KeyedStream: a stream partitioned by key, on which functions hold state and timers per key."""

from __future__ import annotations

import enum
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from functools import wraps
from typing import TYPE_CHECKING, Any, Generic, NoReturn

from penstock.api.functions.element_functions import FoldFunction, Function, ReduceFunction
from penstock.api.functions.folding import FoldAggregate, RollingFold
from penstock.api.functions.process_functions import KeyedProcessFunction, ProcessFunction
from penstock.api.state.descriptors import StateDescriptor
from penstock.api.windows.assigners import CountSlidingWindowAssigner, CountTumblingWindowAssigner
from penstock.api.windows.windows import CountWindow, TimeWindow, WindowAssigner
from penstock.base.arguments import check_arguments
from penstock.base.type_variables import K_co, R, S, T_co, U, W
from penstock.common.time import LengthOfTime
from penstock.common.type_information import DeclaredType, declared_type
from penstock.common.typeinfo import TypeInformation
from penstock.datastream.builders.annotations import Results, annotated_type, check_annotation
from penstock.datastream.builders.queryable_state_stream import QueryableStateStream, queryable_descriptor
from penstock.datastream.data_stream import DataStream, time_assigner
from penstock.engine.operators.functions.process_operators import ProcessOperator
from penstock.engine.operators.functions.queryable_sink import QueryableStateSink
from penstock.engine.operators.functions.rolling import Accumulate, Choose, Field, ReduceOperator, add
from penstock.engine.operators.functions.with_state import FilterWithState, FlatMapWithState, MapWithState
from penstock.errors import UnsupportedOperation
from penstock.graph.partitioning import ByKey, Partitioning
from penstock.graph.transformations import StreamRef

if TYPE_CHECKING:
    from penstock.datastream.builders.interval_join import IntervalJoin
    from penstock.datastream.builders.windowed_stream import WindowedStream


@check_arguments
class FoldsFields(ABC, Generic[T_co]):
    """Aggregations of one field, over the records of a key so far or over those of a window."""

    @abstractmethod
    def _fold(self, name: str, function: Callable[[Any, Any], Any]) -> DataStream[T_co]:
        """Fold records with a function of the earlier result and the next record."""

    def sum(self, position_to_sum: int | str = 0) -> DataStream[T_co]:
        """Compute the sum of a field."""
        return self._fold("Sum", Accumulate(Field(position_to_sum), add))

    def min(self, position_to_min: int | str = 0) -> DataStream[T_co]:
        """Compute the minimum of a field. The other fields are those of the first record."""
        return self._fold("Min", Accumulate(Field(position_to_min), min))

    def max(self, position_to_max: int | str = 0) -> DataStream[T_co]:
        """Compute the maximum of a field. The other fields are those of the first record."""
        return self._fold("Max", Accumulate(Field(position_to_max), max))

    def min_by(self, position_to_min_by: int | str = 0, first: bool = True) -> DataStream[T_co]:
        """Choose the record with the least field; of equal ones the first, or the last if `first` is false."""
        return self._fold("Min By", Choose(Field(position_to_min_by), largest=False, first=first))

    def max_by(self, position_to_max_by: int | str = 0, first: bool = True) -> DataStream[T_co]:
        """Choose the record with the greatest field; of equal ones the first, or the last if `first` is false."""
        return self._fold("Max By", Choose(Field(position_to_max_by), largest=True, first=first))


@check_arguments
class KeyedStream(DataStream[T_co], FoldsFields[T_co], Generic[K_co, T_co]):
    """A stream whose records of one key meet in one subtask, in the order in which each upstream subtask sent them."""

    class AccumulateType(enum.Enum):
        """The rolling aggregations."""

        MIN = 1
        MAX = 2
        MIN_BY = 3
        MAX_BY = 4
        SUM = 5

    def __init__(
        self,
        origin: DataStream[T_co],
        selector: Callable[[T_co], K_co],
        key_type: TypeInformation[K_co] | None = None,
    ) -> None:
        refs = [StreamRef(ref.node, ref.tag, ByKey(selector, key_type)) for ref in origin.refs]
        super().__init__(origin.get_execution_environment(), refs, origin._type, origin._annotated)
        self._origin = origin
        self.key_selector = selector
        self._key_type = key_type
        results = Results(selector)
        check_annotation(f"the key of {self._title_of_inputs()}", results, key_type)
        self._annotated_key = annotated_type(results)

    def get_key_type(self) -> TypeInformation[K_co] | None:
        """Return the declared type of the key, or else the type that the selector's annotation states, or else None."""
        return self._annotated_key if self._key_type is None else self._key_type

    # --- functions with state per key ---
    def process(
        self,
        func: KeyedProcessFunction[K_co, T_co, R] | ProcessFunction[T_co, R],
        output_type: DeclaredType[R] | None = None,
    ) -> DataStream[R]:
        """Apply the most general operator on keys, with state, timers and side outputs."""
        declared = declared_type(output_type)
        return self.apply_operator("Keyed Process", ProcessOperator(func, declared, self.key_selector), declared)

    def reduce(self, func: ReduceFunction[T_co] | Callable[[T_co, T_co], T_co]) -> DataStream[T_co]:
        """Fold the records of a key into one. Every step is emitted, or in BATCH mode the last."""
        return self._keep_type("Keyed Reduce", ReduceOperator(func, None, self.key_selector))

    def map_with_state(
        self, func: Callable[[T_co, S | None], tuple[R, S | None]], output_type: DeclaredType[R] | None = None
    ) -> DataStream[R]:
        """Apply func(value, state), which returns (result, new state).

        The state is None at first, and None clears it.
        """
        declared = declared_type(output_type)
        return self.apply_operator("Map With State", MapWithState(func, declared, self.key_selector), declared)

    def flat_map_with_state(
        self,
        func: Callable[[T_co, S | None], tuple[Iterable[R], S | None]],
        output_type: DeclaredType[R] | None = None,
    ) -> DataStream[R]:
        """Apply func(value, state), which returns (iterable of results, new state)."""
        declared = declared_type(output_type)
        return self.apply_operator("Flat Map With State", FlatMapWithState(func, declared, self.key_selector), declared)

    def filter_with_state(self, func: Callable[[T_co, S | None], tuple[bool, S | None]]) -> DataStream[T_co]:
        """Apply func(value, state), which returns (True to keep the value, new state)."""
        return self._keep_type("Filter With State", FilterWithState(func, None, self.key_selector))

    def fold(
        self,
        initial_value: R,
        fold_function: FoldFunction[T_co, R] | Callable[[R, T_co], R],
        output_type: DeclaredType[R] | None = None,
    ) -> DataStream[R]:
        """Fold as in Flink 1.x: each record gives fold_function(accumulator, record), from `initial_value` on."""
        declared = declared_type(output_type)
        rolling = RollingFold(FoldAggregate(initial_value, fold_function))
        return self.apply_operator("Keyed Fold", MapWithState(rolling, declared, self.key_selector), declared)

    # --- for clients outside the job ---
    def as_queryable_state(
        self, queryable_state_name: str, state_descriptor: StateDescriptor[Any] | None = None
    ) -> QueryableStateStream:
        """Keep the records of each key in a state that clients can look up, and send nothing on.

        Without a descriptor the state is the last record. A value state keeps the last record too; records are added to
        a reducing, aggregating or list state.
        """
        descriptor = queryable_descriptor(queryable_state_name, state_descriptor, self._type)
        node = self._sink(f"Queryable State {queryable_state_name}", QueryableStateSink(descriptor, self.key_selector))
        return QueryableStateStream(node._node, descriptor, self._key_type)

    # --- several streams ---
    def union(self, *streams: DataStream[U]) -> DataStream[T_co | U]:
        """Return a stream without keys, even if all streams had them: key it again."""
        others = [stream._origin if isinstance(stream, KeyedStream) else stream for stream in streams]
        return self._origin.union(*others)

    def interval_join(self, other_stream: DataStream[U]) -> IntervalJoin[K_co, T_co, U]:
        """Join with elements of another keyed stream that are near in event time."""
        from penstock.datastream.builders.interval_join import IntervalJoin

        return IntervalJoin(self, other_stream)

    # --- windows ---
    def window(self, window_assigner: WindowAssigner[T_co, W]) -> WindowedStream[K_co, T_co, W]:
        """Cut each key's records into windows."""
        from penstock.datastream.builders.windowed_stream import WindowedStream

        return WindowedStream(self, window_assigner)

    def time_window(
        self, size: LengthOfTime, slide: LengthOfTime | None = None
    ) -> WindowedStream[K_co, T_co, TimeWindow]:
        """Cut records into windows, as in Flink 1.x, by the environment's notion of time: by default, event time."""
        return self.window(time_assigner(self._environment, size, slide))

    def count_window(self, size: int, slide: int = 0) -> WindowedStream[K_co, T_co, CountWindow]:
        """Cut the records of a key into windows of `size`, which start every `slide` records."""
        return self.window(CountSlidingWindowAssigner(size, slide) if slide else CountTumblingWindowAssigner(size))

    # --- what keys forbid ---
    def _partition(self, partitioning: Partitioning) -> NoReturn:
        raise UnsupportedOperation(
            f"a keyed stream is partitioned by its key and cannot also be distributed by {partitioning.label.lower()}: "
            "call it before key_by, or after the next operator"
        )

    def _keys_for(self, func: Any) -> Callable[[Any], Any] | None:
        """Return the key selector for a function object, which can hold state; for a lambda no key is computed."""
        return self.key_selector if isinstance(func, Function) else None

    def _fold(self, name: str, function: Callable[[Any, Any], Any]) -> DataStream[T_co]:
        return self._keep_type(name, ReduceOperator(function, None, self.key_selector))


__all__ = ["KeyedStream"]


def _refuse(setting: str) -> Callable[..., NoReturn]:
    """Return a method that explains why a keyed stream has no such setting. It has the parameters of the setting."""

    @wraps(getattr(DataStream, setting))
    def refuse(self: KeyedStream, *_: Any, **__: Any) -> NoReturn:
        raise UnsupportedOperation(
            f"{setting}() has no meaning for a keyed stream, which is not an operator: call it before key_by, on "
            f"'{self._node.name}', or on the operator behind key_by"
        )

    return refuse


for _setting in (
    "name",
    "get_name",
    "uid",
    "set_uid_hash",
    "set_parallelism",
    "set_max_parallelism",
    "force_non_parallel",
    "set_buffer_timeout",
    "start_new_chain",
    "disable_chaining",
    "slot_sharing_group",
):
    setattr(KeyedStream, _setting, _refuse(_setting))
