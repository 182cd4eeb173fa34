"""State of a query by key, which may expire when it has not been written for a while."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from penstock.common.time import Time
from penstock.state.backend import KeyedStateBackend
from penstock.state.tables import Layout, Table
from penstock.state.ttl import Expiry, pruner
from penstock.vocabulary.state.descriptors import StateTtlConfig, ValueStateDescriptor


class Store:
    """One value for each address. Whoever changes a value in place puts it again."""

    def __init__(self, table: Table) -> None:
        self.table = table
        self.get = table.entries.get
        self.put = table.put
        self.remove = table.remove

    def get_all(self, addresses: Sequence[Any]) -> list[Any]:
        """The values of some addresses; None where there is none."""
        get = self.get
        return [get(address) for address in addresses]

    def put_all(self, addresses: Sequence[Any], values: Sequence[Any]) -> None:
        """Store values and remember that they changed."""
        self.table.entries.update(zip(addresses, values, strict=True))
        self.table.changed.update(addresses)

    def remove_all(self, addresses: Sequence[Any]) -> None:
        """Drop the values of some addresses, which all have one."""
        entries: Any = self.table.entries
        if isinstance(entries, dict):
            for address in addresses:
                del entries[address]
            self.table.changed.update(addresses)
        else:
            for address in addresses:
                self.remove(address)

    def items(self) -> Iterator[tuple[Any, Any]]:
        """Every address with its value; nothing may change meanwhile."""
        return iter(self.table.items())


class ExpiringStore:
    """The same with the time of the last write beside each value."""

    def __init__(self, table: Table, expiry: Expiry) -> None:
        self.table = table
        self.remove = table.remove
        self._expiry = expiry

    def get(self, address: Any) -> Any:
        held = self.table.entries.get(address)
        return held[0] if held is not None and self._expiry.visible(held) else None

    def put(self, address: Any, value: Any) -> None:
        self.table.put(address, self._expiry.stamp(value))

    def get_all(self, addresses: Sequence[Any]) -> list[Any]:
        return [self.get(address) for address in addresses]

    def put_all(self, addresses: Sequence[Any], values: Sequence[Any]) -> None:
        for address, value in zip(addresses, values, strict=True):
            self.put(address, value)

    def remove_all(self, addresses: Sequence[Any]) -> None:
        for address in addresses:
            self.remove(address)

    def items(self) -> Iterator[tuple[Any, Any]]:
        return ((address, held[0]) for address, held in self.table.items() if self._expiry.visible(held))


def store(backend: KeyedStateBackend, name: str, ttl: int = 0, layout: Layout | None = None) -> Store | ExpiringStore:
    """The state of a name; with a time to live in milliseconds, unless that is 0."""
    descriptor = ValueStateDescriptor(name)
    if not ttl:
        return Store(backend.table(descriptor, layout))
    config = StateTtlConfig.new_builder(Time.milliseconds(ttl)).cleanup_incrementally(10, False).build()
    descriptor.enable_time_to_live(config)
    table = backend.table(descriptor, layout)
    backend.state(descriptor)
    expiry = backend._expiries[table.name]
    table.prune = pruner(descriptor, expiry)
    return ExpiringStore(table, expiry)
