"""The states that one operator registered in one slot, found by name."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from penstock.api.state.descriptors import (
    AggregatingStateDescriptor,
    FoldingStateDescriptor,
    ListStateDescriptor,
    MapStateDescriptor,
    ReducingStateDescriptor,
    StateDescriptor,
    ValueStateDescriptor,
)
from penstock.engine.state.evolution import migration
from penstock.engine.state.state_objects import (
    HeapAggregatingState,
    HeapBroadcastState,
    HeapListState,
    HeapMapState,
    HeapReadOnlyBroadcastState,
    HeapReducingState,
    HeapValueState,
    reducer,
)
from penstock.engine.state.tables import HeapTables, KeyScope, Layout, Table, Tables
from penstock.engine.state.ttl import (
    Expiry,
    TtlAggregatingState,
    TtlListState,
    TtlMapState,
    TtlReducingState,
    TtlValueState,
    pruner,
    ttl_of,
)
from penstock.errors import ProgramError

_KINDS: dict[type[StateDescriptor], Callable[[Table, KeyScope], Any]] = {
    ValueStateDescriptor: HeapValueState,
    ListStateDescriptor: HeapListState,
    MapStateDescriptor: HeapMapState,
    ReducingStateDescriptor: HeapReducingState,
    AggregatingStateDescriptor: HeapAggregatingState,
    FoldingStateDescriptor: HeapAggregatingState,
}


class KeyedStateBackend:
    """Keyed tables of one operator. `scope.key` is the key whose state is accessed, `now` the time used for expiry."""

    def __init__(
        self,
        now: Callable[[], int] = lambda: 0,
        tables: Tables | None = None,
        owner: str = "",
        layout: Layout = Layout.KEY,
        publish: Callable[[StateDescriptor, Table], None] | None = None,
    ) -> None:
        """Create the backend. `publish` is called for every queryable state."""
        self.scope = KeyScope()
        self.layout = layout
        self._now = now
        self._make: Tables = tables or HeapTables()
        self._owner = owner
        self._publish = publish
        self.tables: dict[str, Table] = {}
        self._expiries: dict[str, Expiry] = {}

    def state(self, descriptor: StateDescriptor) -> Any:
        """Return the state object for a descriptor. The table behind it is created on first use."""
        config = ttl_of(descriptor)
        if config is not None:
            return self._expiring(descriptor, Expiry(config, self._now))
        return _KINDS[type(descriptor)](self.table(descriptor), self.scope)

    def _expiring(self, descriptor: StateDescriptor, expiry: Expiry) -> Any:
        table = self.table(descriptor)
        expiry = self._expiries.setdefault(table.name, expiry)
        table.prune = pruner(descriptor, expiry)
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

    def table(self, descriptor: StateDescriptor, layout: Layout | None = None) -> Table:
        """Return the table of a descriptor's name. The same name must stay the same kind of state."""
        name = descriptor.get_name()
        table = self.tables.get(name) or self.empty_table(name, layout or self.layout)
        if table.descriptor is None:
            self._claim(table, descriptor)
        elif (ttl_of(table.descriptor) is None) is not (ttl_of(descriptor) is None):
            raise ValueError(f"state '{name}' is asked for both with and without a time to live")
        elif type(table.descriptor) is not type(descriptor):
            raise ValueError(
                f"state '{name}' is registered as {type(table.descriptor).__name__} and cannot also be a "
                f"{type(descriptor).__name__}: give one of them another name"
            )
        if descriptor.is_queryable() and self._publish is not None:
            self._publish(descriptor, table)
        return table

    def empty_table(self, name: str, layout: Layout) -> Table:
        """Create a table that no descriptor asked for: for restored entries, and for timers."""
        make = HeapTables() if layout is Layout.TIMER else self._make
        table = self.tables[name] = make.table(self._owner, name, layout)
        return table

    def _claim(self, table: Table, descriptor: StateDescriptor) -> None:
        """Bind a table to the first descriptor that asks for it.

        Restored values are converted to the declared types.
        """
        if table.schema is not None:
            convert = migration(table.schema, descriptor)
            if convert is not None:
                table.convert(convert)
        table.descriptor = descriptor

    def end_epoch(self, tracking: bool) -> None:
        """Remove some expired values, and end the epoch in all tables."""
        for name, expiry in self._expiries.items():
            self.tables[name].sweep(expiry.take_sweep())
        for table in self.tables.values():
            table.end_epoch(tracking)

    def drop_keys(self) -> None:
        """Forget every key's state, as BATCH mode does when it is done with a key."""
        for table in self.tables.values():
            table.clear()

    def prunes_snapshots(self, table: Table) -> bool:
        """Return True if full snapshots leave out expired values of this table."""
        expiry = self._expiries.get(table.name)
        return expiry is not None and expiry.prunes_snapshots


class BroadcastStateBackend:
    """Broadcast maps of one operator in one slot."""

    def __init__(self, restored: Iterable[tuple[str, Any, dict[Any, Any]]] = ()) -> None:
        self.tables: dict[str, Table] = {}
        for name, schema, entries in restored:
            table = self.tables[name] = Table(name)
            table.schema = schema
            table.entries.update(entries)

    def _table(self, descriptor: MapStateDescriptor) -> Table:
        name = descriptor.get_name()
        if ttl_of(descriptor) is not None:
            raise ProgramError(f"broadcast state '{name}' cannot have a time to live: only keyed state can")
        table = self.tables.get(name)
        if table is None:
            table = self.tables[name] = Table(name)
        if table.descriptor is None:
            convert = None if table.schema is None else migration(table.schema, descriptor)
            if convert is not None:
                converted = convert(dict(table.entries))
                table.entries.clear()
                table.entries.update(converted)
            table.descriptor = descriptor
        return table

    def writable(self, descriptor: MapStateDescriptor) -> HeapBroadcastState:
        """Return the broadcast state of a descriptor for the broadcast side."""
        return HeapBroadcastState(self._table(descriptor))

    def read_only(self, descriptor: MapStateDescriptor) -> HeapReadOnlyBroadcastState:
        """Return the broadcast state of a descriptor for the other side, which cannot change it."""
        return HeapReadOnlyBroadcastState(self._table(descriptor))

    def end_epoch(self) -> None:
        """Forget the changes, because broadcast state is small and always written whole."""
        for table in self.tables.values():
            table.changed.clear()
