"""The state objects that user functions hold, over a table and the current key.

Every method reads `scope.key`: a state object never remembers a key, so it cannot show the value of another key.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from copy import deepcopy
from typing import Any

from penstock.api.functions.element_functions import ReduceFunction
from penstock.api.state.descriptors import (
    AggregatingState,
    AggregatingStateDescriptor,
    BroadcastState,
    ListState,
    MapState,
    ReadOnlyBroadcastState,
    ReducingState,
    ReducingStateDescriptor,
    ValueState,
    refuse_text,
)
from penstock.engine.state.tables import KeyScope, Table

_FROM_DESCRIPTOR = object()


class HeapValueState(ValueState[Any]):
    """One value per key."""

    __slots__ = ("_changed", "_default", "_entries", "_scope", "_table")

    def __init__(self, table: Table, scope: KeyScope, default: Any = _FROM_DESCRIPTOR) -> None:
        self._table = table
        self._scope = scope
        self._entries = table.entries
        self._changed = table.changed
        self._default = getattr(table.descriptor, "default_value", None) if default is _FROM_DESCRIPTOR else default

    def value(self) -> Any:
        held = self._entries.get(self._scope.key)
        return held if held is not None or self._default is None else deepcopy(self._default)

    def update(self, value: Any) -> None:
        key = self._scope.key
        if value is None:
            self._table.remove(key)
            return
        self._entries[key] = value
        self._changed.add(key)

    def clear(self) -> None:
        self._table.remove(self._scope.key)


class HeapListState(ListState[Any]):
    """A list per key. `get` returns a copy, because the state must know of all changes."""

    __slots__ = ("_scope", "_table")

    def __init__(self, table: Table, scope: KeyScope) -> None:
        self._table = table
        self._scope = scope

    def get(self) -> list[Any]:
        return list(self._table.entries.get(self._scope.key, ()))

    def add(self, value: Any) -> None:
        _refuse_none(value, self._table)
        key = self._scope.key
        held = self._table.entries.get(key)
        if held is None:
            self._table.entries[key] = [value]
        else:
            held.append(value)
        self._table.changed.add(key)

    def add_all(self, values: Iterable[Any]) -> None:
        refuse_text(values, "add_all")
        for value in values:
            self.add(value)

    def update(self, values: Iterable[Any]) -> None:
        refuse_text(values, "update")
        replacement = list(values)
        for value in replacement:
            _refuse_none(value, self._table)
        if replacement:
            self._table.put(self._scope.key, replacement)
        else:
            self.clear()

    def clear(self) -> None:
        self._table.remove(self._scope.key)


class HeapMapState(MapState[Any, Any]):
    """A map for each key. An empty map has no entry in the table."""

    __slots__ = ("_scope", "_table")

    def __init__(self, table: Table, scope: KeyScope) -> None:
        self._table = table
        self._scope = scope

    def _current_map(self) -> dict[Any, Any]:
        return self._table.entries.get(self._scope.key) or {}

    def get(self, key: Any) -> Any:
        return self._current_map().get(key)

    def put(self, key: Any, value: Any) -> None:
        address = self._scope.key
        held = self._table.entries.get(address)
        if held is None:
            held = self._table.entries[address] = {}
        held[key] = value
        self._table.changed.add(address)

    def put_all(self, dict_value: Any) -> None:
        for key, value in dict(dict_value).items():
            self.put(key, value)

    def remove(self, key: Any) -> None:
        held = self._current_map()
        if key in held:
            del held[key]
            self._table.changed.add(self._scope.key)
            if not held:
                self._table.remove(self._scope.key)

    def contains(self, key: Any) -> bool:
        return key in self._current_map()

    def items(self) -> list[tuple[Any, Any]]:
        return list(self._current_map().items())

    def keys(self) -> list[Any]:
        return list(self._current_map())

    def values(self) -> list[Any]:
        return list(self._current_map().values())

    def is_empty(self) -> bool:
        return not self._current_map()

    def clear(self) -> None:
        self._table.remove(self._scope.key)


class HeapReducingState(ReducingState[Any]):
    """The values added for a key, folded into one by a reduce function."""

    __slots__ = ("_reduce", "_scope", "_table")

    def __init__(self, table: Table, scope: KeyScope) -> None:
        descriptor = table.descriptor
        assert isinstance(descriptor, ReducingStateDescriptor)
        self._table = table
        self._scope = scope
        self._reduce = reducer(descriptor.get_reduce_function())

    def get(self) -> Any:
        return self._table.entries.get(self._scope.key)

    def add(self, value: Any) -> None:
        key = self._scope.key
        held = self._table.entries.get(key)
        self._table.put(key, value if held is None else self._reduce(held, value))

    def clear(self) -> None:
        self._table.remove(self._scope.key)


class HeapAggregatingState(AggregatingState[Any, Any]):
    """The values added for a key, folded into an accumulator; `get` gives the aggregate's result."""

    __slots__ = ("_scope", "_table", "aggregate")

    def __init__(self, table: Table, scope: KeyScope) -> None:
        descriptor = table.descriptor
        assert isinstance(descriptor, AggregatingStateDescriptor)
        self._table = table
        self._scope = scope
        self.aggregate = descriptor.get_agg_function()

    def get(self) -> Any:
        held = self._table.entries.get(self._scope.key)
        return None if held is None else self.aggregate.get_result(held)

    def add(self, value: Any) -> None:
        key = self._scope.key
        held = self._table.entries.get(key)
        if held is None:
            held = self.aggregate.create_accumulator()
        self._table.put(key, self.aggregate.add(value, held))

    def clear(self) -> None:
        self._table.remove(self._scope.key)


class HeapReadOnlyBroadcastState(ReadOnlyBroadcastState[Any, Any]):
    """A broadcast map for the side that is not broadcast."""

    __slots__ = ("_table",)

    def __init__(self, table: Table) -> None:
        self._table = table

    def get(self, key: Any) -> Any:
        return self._table.entries.get(key)

    def contains(self, key: Any) -> bool:
        return key in self._table.entries

    def items(self) -> list[tuple[Any, Any]]:
        return list(self._table.entries.items())

    def keys(self) -> list[Any]:
        return list(self._table.entries)

    def values(self) -> list[Any]:
        return list(self._table.entries.values())

    def is_empty(self) -> bool:
        return not self._table.entries

    def _refuse(self, *_: Any) -> None:
        raise PermissionError(
            f"broadcast state '{self._table.name}' is read-only on the non-broadcast side: only "
            "process_broadcast_element may change it, so that every subtask holds the same"
        )

    clear = put = put_all = remove = __setitem__ = __delitem__ = _refuse


class HeapBroadcastState(HeapReadOnlyBroadcastState, BroadcastState[Any, Any]):
    """A broadcast map for the broadcast side."""

    __slots__ = ()

    def put(self, key: Any, value: Any) -> None:
        self._table.put(key, value)

    def put_all(self, dict_value: Any) -> None:
        for key, value in dict(dict_value).items():
            self._table.put(key, value)

    def remove(self, key: Any) -> None:
        self._table.remove(key)

    def clear(self) -> None:
        for key in self.keys():
            self._table.remove(key)

    __setitem__ = put
    __delitem__ = remove


def reducer(function: Any) -> Callable[[Any, Any], Any]:
    """Return the bare callable of a ReduceFunction or lambda."""
    return function.reduce if isinstance(function, ReduceFunction) else function


def _refuse_none(value: Any, table: Table) -> None:
    if value is None:
        raise ValueError(f"list state '{table.name}' cannot hold None")
