"""The states that one operator registered in one slot, found by name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from penstock.datastream.state import (
    AggregatingStateDescriptor,
    ListStateDescriptor,
    MapStateDescriptor,
    ReducingStateDescriptor,
    StateDescriptor,
    ValueStateDescriptor,
)
from penstock.state.states import (
    HeapAggregatingState,
    HeapBroadcastState,
    HeapListState,
    HeapMapState,
    HeapReadOnlyBroadcastState,
    HeapReducingState,
    HeapValueState,
    reducer,
)
from penstock.state.tables import KeyScope, Table
from penstock.state.ttl import (
    Expiry,
    TtlAggregatingState,
    TtlListState,
    TtlMapState,
    TtlReducingState,
    TtlValueState,
    ttl_of,
)

_KINDS: dict[type[StateDescriptor], Callable[[Table, KeyScope], Any]] = {
    ValueStateDescriptor: HeapValueState,
    ListStateDescriptor: HeapListState,
    MapStateDescriptor: HeapMapState,
    ReducingStateDescriptor: HeapReducingState,
    AggregatingStateDescriptor: HeapAggregatingState,
}


class KeyedStateBackend:
    """Keyed tables of one operator; `scope.key` says whose state is in reach, `now` what time it is for expiry."""

    def __init__(self, now: Callable[[], int] = lambda: 0) -> None:
        self.scope = KeyScope()
        self._now = now
        self.tables: dict[str, Table] = {}

    def state(self, descriptor: StateDescriptor) -> Any:
        """The state object for a descriptor; the table behind it is made on first use."""
        config = ttl_of(descriptor)
        if config is not None:
            return self._expiring(descriptor, Expiry(config, self._now))
        return _KINDS[type(descriptor)](self.table(descriptor), self.scope)

    def _expiring(self, descriptor: StateDescriptor, expiry: Expiry) -> Any:
        table = self.table(descriptor)
        if isinstance(descriptor, ListStateDescriptor):
            return TtlListState(HeapListState(table, self.scope), expiry)
        if isinstance(descriptor, MapStateDescriptor):
            return TtlMapState(HeapMapState(table, self.scope), expiry)
        stamped = HeapValueState(table, self.scope, default=None)
        if isinstance(descriptor, ReducingStateDescriptor):
            return TtlReducingState(stamped, expiry, reducer(descriptor.get_reduce_function()))
        if isinstance(descriptor, AggregatingStateDescriptor):
            return TtlAggregatingState(stamped, expiry, descriptor.get_agg_function())
        assert isinstance(descriptor, ValueStateDescriptor)
        return TtlValueState(stamped, expiry, descriptor.default_value)

    def table(self, descriptor: StateDescriptor) -> Table:
        """The table of a descriptor's name; the same name must stay the same kind of state."""
        name = descriptor.get_name()
        table = self.tables.get(name)
        if table is None:
            table = self.tables[name] = Table(descriptor)
        elif (ttl_of(table.descriptor) is None) is not (ttl_of(descriptor) is None):
            raise ValueError(f"state '{name}' is asked for both with and without a time to live")
        elif type(table.descriptor) is not type(descriptor):
            raise ValueError(
                f"state '{name}' is registered as {type(table.descriptor).__name__} and cannot also be a "
                f"{type(descriptor).__name__}: give one of them another name"
            )
        return table

    def forget_changes(self) -> None:
        """Nobody will ask what has changed so far."""
        for table in self.tables.values():
            table.changed.clear()

    def drop_keys(self) -> None:
        """Forget every key's state, as BATCH mode does when it is done with a key."""
        for table in self.tables.values():
            table.entries.clear()


class BroadcastStateBackend:
    """Broadcast maps of one operator in one slot."""

    def __init__(self) -> None:
        self.tables: dict[str, Table] = {}

    def _table(self, descriptor: MapStateDescriptor) -> Table:
        return self.tables.setdefault(descriptor.get_name(), Table(descriptor))

    def writable(self, descriptor: MapStateDescriptor) -> HeapBroadcastState:
        return HeapBroadcastState(self._table(descriptor))

    def read_only(self, descriptor: MapStateDescriptor) -> HeapReadOnlyBroadcastState:
        return HeapReadOnlyBroadcastState(self._table(descriptor))
