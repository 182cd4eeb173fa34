"""State as functions see it, and the descriptors with which they request it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Generic, Never, Self, TypeAlias, overload

from penstock.api.functions.element_functions import AggregateFunction, FoldFunction, ReduceFunction
from penstock.api.functions.folding import FoldAggregate
from penstock.api.state.time_to_live import StateTtlConfig
from penstock.base.arguments import check_arguments, invalid_argument
from penstock.base.type_variables import ACC, IN, NOTHING, OUT, K, T, U, V
from penstock.common.type_information import DeclaredType, declared_type
from penstock.common.typeinfo import Types

__all__ = [
    "AggregatingState",
    "AggregatingStateDescriptor",
    "AppendingState",
    "BroadcastState",
    "FoldingState",
    "FoldingStateDescriptor",
    "ListState",
    "ListStateDescriptor",
    "MapState",
    "MapStateDescriptor",
    "MergingState",
    "OperatorStateStore",
    "ReadOnlyBroadcastState",
    "ReducingState",
    "ReducingStateDescriptor",
    "State",
    "StateDescriptor",
    "StateTtlConfig",
    "ValueState",
    "ValueStateDescriptor",
]


class _WithDefault:
    """A generic class with two parameters, the second of which is optional."""

    if not TYPE_CHECKING:  # from Python 3.13 on, type variables have defaults

        def __class_getitem__(cls, parameters):
            return super().__class_getitem__(parameters if isinstance(parameters, tuple) else (parameters, None))


class State(ABC):
    """Base of all kinds of state. Keyed state always means the part that belongs to the current key."""

    @abstractmethod
    def clear(self) -> None:
        """Remove the content of this state."""

    def get_internal_state(self) -> Self:
        """Return the state itself. PyFlink has another object beneath it; Penstock has none."""
        return self


class ValueState(State, _WithDefault, Generic[T, NOTHING]):
    """State that holds one value.

    The second parameter is the type that a key without a value reads: None by default, or Never with a default value.
    """

    @abstractmethod
    def value(self) -> T | NOTHING:
        """Return the value, or the default of the descriptor if there is no value."""

    @abstractmethod
    def update(self, value: T | None) -> None:
        """Replace the value. None removes it, like `clear`."""


class AppendingState(State, Generic[IN, OUT]):
    """State that combines the values added to it."""

    @abstractmethod
    def get(self) -> OUT | None:
        """Return the combination of the added values, or None if there are none."""

    @abstractmethod
    def add(self, value: IN) -> None:
        """Add one value."""


class MergingState(AppendingState[IN, OUT]):
    """An appending state of which two can be merged into one, as when session windows merge."""


class ReducingState(MergingState[T, T]):
    """State that reduces the values added to it."""


class AggregatingState(MergingState[IN, OUT]):
    """State that aggregates the values added to it. `get` returns the result of the aggregation."""


class FoldingState(AppendingState[IN, OUT]):
    """State that folds the values added to it, as in Flink 1.x. Use AggregatingState in new programs."""


class ListState(MergingState[T, Iterable[T]]):
    """State that holds a list, in the order of insertion."""

    @abstractmethod
    def get(self) -> Iterable[T]:
        """Return the elements. The result is empty if no element was added."""

    @abstractmethod
    def update(self, values: list[T]) -> None:
        """Replace the whole list. An empty list removes the entry, like `clear`."""

    @abstractmethod
    def add_all(self, values: list[T]) -> None:
        """Append the values in their order."""

    def __iter__(self) -> Iterator[T]:
        return iter(self.get())


class ReadableMapState(State, Generic[K, V]):
    """The methods of every map that can be read."""

    @abstractmethod
    def get(self, key: K) -> V | None:
        """Return the value of `key`, or None if there is no such key."""

    @abstractmethod
    def contains(self, key: K) -> bool:
        """Return True if there is a value for `key`."""

    @abstractmethod
    def items(self) -> Iterable[tuple[K, V]]:
        """Return all pairs of key and value."""

    def entries(self) -> Iterable[tuple[K, V]]:
        """Return all pairs of key and value, as `items` does."""
        return self.items()

    def immutable_entries(self) -> Iterable[tuple[K, V]]:
        """Return all pairs of key and value, as `items` does."""
        return self.items()

    @abstractmethod
    def keys(self) -> Iterable[K]:
        """Return all keys."""

    @abstractmethod
    def values(self) -> Iterable[V]:
        """Return all values."""

    @abstractmethod
    def is_empty(self) -> bool:
        """Return True if there are no entries."""

    def __getitem__(self, key: K) -> V | None:
        return self.get(key)

    def __contains__(self, key: K) -> bool:
        return self.contains(key)

    def __iter__(self) -> Iterator[K]:
        return iter(self.keys())


class WritableMapState(ReadableMapState[K, V]):
    """The additional methods of a map that can be changed."""

    @abstractmethod
    def put(self, key: K, value: V) -> None:
        """Set the value of `key`."""

    @abstractmethod
    def put_all(self, dict_value: Mapping[K, V]) -> None:
        """Set the value of each key in `dict_value`. Other entries stay."""

    @abstractmethod
    def remove(self, key: K) -> None:
        """Remove `key` if it is there."""

    def __setitem__(self, key: K, value: V) -> None:
        self.put(key, value)

    def __delitem__(self, key: K) -> None:
        self.remove(key)


class MapState(WritableMapState[K, V]):
    """State that holds a map. Each entry is stored, and expires, by itself."""


class ReadOnlyBroadcastState(ReadableMapState[K, V]):
    """A map of which every subtask has the same copy, for the side that must not change it."""


class BroadcastState(ReadOnlyBroadcastState[K, V], WritableMapState[K, V]):
    """A map of which every subtask has the same copy, for the broadcast side. Every subtask must change it alike."""


class OperatorStateStore(ABC):
    """A store of state that belongs to a subtask, not to a key."""

    @abstractmethod
    def get_broadcast_state(self, state_descriptor: MapStateDescriptor[K, V]) -> BroadcastState[K, V]:
        """Return the broadcast state with that name."""

    @abstractmethod
    def get_list_state(self, state_descriptor: ListStateDescriptor[T]) -> ListState[T]:
        """Return a list whose items are split evenly between the subtasks when the parallelism changes."""

    @abstractmethod
    def get_union_list_state(self, state_descriptor: ListStateDescriptor[T]) -> ListState[T]:
        """Return a list of which every subtask receives all items when it is restored."""


def check_descriptor(descriptor: Any, kind: type[StateDescriptor], method: str) -> None:
    """Refuse a descriptor of another kind of state than the method returns."""
    if not isinstance(descriptor, kind):
        raise invalid_argument(method, "state_descriptor", descriptor, f"a {kind.__name__}")


def refuse_text(values: Any, method: str) -> None:
    """Refuse a string or bytes where a list of values is expected.

    Its characters are probably not meant as the values.
    """
    if isinstance(values, (str, bytes)):
        raise invalid_argument(f"ListState.{method}", "values", values, "a list of values")


@check_arguments
class StateDescriptor(Generic[T]):
    """Names a state within its operator and describes its content.

    Descriptors are plain data: they are pickled with the program and compared by kind, name, type and settings.
    Functions in them are left out of the comparison, since equal functions cannot be recognised.
    """

    _queryable_state_name: str | None = None

    def __init__(self, name: str, type_info: DeclaredType[T] | None = None) -> None:
        if not name:
            raise ValueError("the name of a state must not be empty")
        self.name = name
        self.type_info = declared_type(type_info)
        self.ttl_config: StateTtlConfig | None = None

    def get_name(self) -> str:
        """Return the name."""
        return self.name

    def enable_time_to_live(self, ttl_config: StateTtlConfig) -> None:
        """Let the values of this state expire."""
        self.ttl_config = ttl_config

    def set_queryable(self, queryable_state_name: str) -> None:
        """Let clients outside the job read this state under a name. The name must be unique in the job.

        Call it before the function asks for the state.
        """
        if not queryable_state_name:
            raise ValueError("the name of a queryable state must not be empty")
        if self._queryable_state_name not in (None, queryable_state_name):
            raise ValueError(f"state '{self.name}' is already queryable as '{self._queryable_state_name}'")
        self._queryable_state_name = queryable_state_name

    def is_queryable(self) -> bool:
        """Return True if clients can read this state."""
        return self._queryable_state_name is not None

    def get_queryable_state_name(self) -> str | None:
        """Return the name under which clients read this state, or None if they cannot."""
        return self._queryable_state_name

    def _identity(self) -> tuple[object, ...]:
        return self.name, self.type_info, self.ttl_config

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, StateDescriptor) and type(self) is type(other) and self._identity() == other._identity()
        )

    def __hash__(self) -> int:
        return hash((type(self), self.name))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name!r}, {self.type_info!r})"


@check_arguments
class ValueStateDescriptor(StateDescriptor[T], _WithDefault, Generic[T, NOTHING]):
    """Describes a ValueState. A key without a value reads the default."""

    @overload
    def __init__(
        self: ValueStateDescriptor[T, None],
        name: str,
        value_type_info: DeclaredType[T] | None = None,
        default_value: None = None,
    ) -> None: ...

    @overload
    def __init__(
        self: ValueStateDescriptor[T, Never],
        name: str,
        value_type_info: DeclaredType[T] | None = None,
        *,
        default_value: T,
    ) -> None: ...

    @overload
    def __init__(
        self: ValueStateDescriptor[T, Never], name: str, value_type_info: DeclaredType[T] | None, default_value: T
    ) -> None: ...

    def __init__(self, name: str, value_type_info: DeclaredType[T] | None = None, default_value: Any = None) -> None:
        super().__init__(name, value_type_info)
        self.default_value = default_value

    def _identity(self) -> tuple[object, ...]:
        return *super()._identity(), self.default_value


@check_arguments
class ListStateDescriptor(StateDescriptor[list[T]], Generic[T]):
    """Describes a ListState by the type of its elements."""

    def __init__(self, name: str, elem_type_info: DeclaredType[T] | None = None) -> None:
        super().__init__(name, None if elem_type_info is None else Types.LIST(elem_type_info))
        self.elem_type_info = declared_type(elem_type_info)


@check_arguments
class MapStateDescriptor(StateDescriptor[dict[K, V]], Generic[K, V]):
    """Describes a MapState, or a broadcast state, by the types of its keys and values."""

    def __init__(
        self,
        name: str,
        key_type_info: DeclaredType[K] | None = None,
        value_type_info: DeclaredType[V] | None = None,
    ) -> None:
        if (key_type_info is None) != (value_type_info is None):
            raise ValueError(f"map state {name!r} needs the types of both keys and values, or neither")
        typed = None if key_type_info is None or value_type_info is None else Types.MAP(key_type_info, value_type_info)
        super().__init__(name, typed)
        self.key_type_info = declared_type(key_type_info)
        self.value_type_info = declared_type(value_type_info)


Reduction: TypeAlias = ReduceFunction[T] | Callable[[T, T], T]


class _CallableReduceFunction(ReduceFunction[T]):
    """A plain callable as a ReduceFunction."""

    def __init__(self, function: Callable[[T, T], T]) -> None:
        self._function = function

    def reduce(self, value1: T, value2: T) -> T:
        return self._function(value1, value2)


@check_arguments
class ReducingStateDescriptor(StateDescriptor[T]):
    """Describes a ReducingState. The function is a ReduceFunction or a callable of two values."""

    def __init__(self, name: str, reduce_function: Reduction[T], type_info: DeclaredType[T] | None = None) -> None:
        super().__init__(name, type_info)
        self._reduce_function = (
            reduce_function if isinstance(reduce_function, ReduceFunction) else _CallableReduceFunction(reduce_function)
        )

    def get_reduce_function(self) -> ReduceFunction[T]:
        """Return the function; a callable comes back as a ReduceFunction."""
        return self._reduce_function


@check_arguments
class AggregatingStateDescriptor(StateDescriptor[Any], Generic[T, U]):
    """Describes an AggregatingState. The type is that of the accumulator, because the state stores accumulators."""

    def __init__(
        self, name: str, agg_function: AggregateFunction[T, ACC, U], state_type_info: DeclaredType[ACC] | None = None
    ) -> None:
        super().__init__(name, state_type_info)
        self._agg_function = agg_function

    def get_agg_function(self) -> AggregateFunction[T, Any, U]:
        """Return the function."""
        return self._agg_function


@check_arguments
class FoldingStateDescriptor(AggregatingStateDescriptor[T, U]):
    """Describes a FoldingState by its first accumulator and a FoldFunction or a function of (accumulator, value)."""

    def __init__(
        self,
        name: str,
        initial_value: U,
        fold_function: FoldFunction[T, U] | Callable[[U, T], U],
        type_info: DeclaredType[U] | None = None,
    ) -> None:
        super().__init__(name, FoldAggregate(initial_value, fold_function), type_info)
