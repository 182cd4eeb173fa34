"""State of a query by key. It may expire if it has not been written for some time."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from penstock.api.state.descriptors import StateTtlConfig, ValueStateDescriptor
from penstock.common.time import Time
from penstock.engine.state.backend import KeyedStateBackend
from penstock.engine.state.tables import Layout, Table
from penstock.engine.state.ttl import Expiry, Stamped, pruner


class Store:
    """One value for each address. A caller that changes a value in place must put it again."""

    def __init__(self, table: Table) -> None:
        self.table = table
        self.get = table.entries.get
        self.get_all = table.get_all
        self.put = table.put
        self.remove = table.remove
        self.remove_all = table.remove_all

    def put_all(self, addresses: Sequence[Any], values: Sequence[Any]) -> None:
        """Store values and mark them as changed."""
        self.table.entries.update(zip(addresses, values, strict=True))
        self.table.changed.update(addresses)

    def items(self) -> Iterator[tuple[Any, Any]]:
        """Return every address with its value. The table must not change during the iteration."""
        return iter(self.table.items())


class ExpiringStore:
    """A store with the time of the last write beside each value. A value that is `in_use` does not expire."""

    def __init__(self, table: Table, expiry: Expiry, in_use: Callable[[Any], bool]) -> None:
        self.table = table
        self.remove = table.remove
        self.remove_all = table.remove_all
        self._expiry = expiry
        self._in_use = in_use

    def get(self, address: Any) -> Any:
        """Return a value, or None if there is none or it has expired."""
        held = self.table.entries.get(address)
        return held[0] if held is not None and self._there(held) else None

    def _there(self, held: Stamped) -> bool:
        return self._expiry.visible(held) or self._in_use(held[0])

    def put(self, address: Any, value: Any) -> None:
        """Store a value with the time of the write."""
        self.table.put(address, self._expiry.stamp(value))

    def get_all(self, addresses: Sequence[Any]) -> list[Any]:
        """Return the value of each address, or None."""
        found, there = self.table.get_all(addresses), self._there
        return [None if held is None or not there(held) else held[0] for held in found]

    def put_all(self, addresses: Sequence[Any], values: Sequence[Any]) -> None:
        """Store values with the time of the write, and mark them as changed."""
        self.table.entries.update(zip(addresses, map(self._expiry.stamp, values), strict=True))
        self.table.changed.update(addresses)

    def items(self) -> Iterator[tuple[Any, Any]]:
        """Return every address with its value, without expired ones."""
        return ((address, held[0]) for address, held in self.table.items() if self._there(held))


AnyStore = Store | ExpiringStore


def never(value: Any) -> bool:
    """Return False, for stores in which no value is in use."""
    return False


def store(
    backend: KeyedStateBackend,
    name: str,
    ttl: int = 0,
    layout: Layout | None = None,
    in_use: Callable[[Any], bool] = never,
) -> AnyStore:
    """Return the state with a name. It expires after `ttl` milliseconds without a write, or never if `ttl` is 0."""
    descriptor = ValueStateDescriptor(name)
    if not ttl:
        return Store(backend.table(descriptor, layout))
    config = StateTtlConfig.new_builder(Time.milliseconds(ttl)).cleanup_incrementally(10, False).build()
    descriptor.enable_time_to_live(config)
    table = backend.table(descriptor, layout)
    backend.state(descriptor)
    expiry = backend._expiries[table.name]
    prune = pruner(descriptor, expiry)
    table.prune = lambda held: held if in_use(held[0]) else prune(held)
    return ExpiringStore(table, expiry, in_use)
