"""A table maps the address of a state to its value, and knows what changed since it was last asked.

The address is the key, or (key, namespace) for a state that lives in namespaces such as windows.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any

from penstock.datastream.state import StateDescriptor


class KeyScope:
    """The key whose state is in reach. The operator moves it from record to record."""

    __slots__ = ("key",)

    def __init__(self) -> None:
        self.key: Any = None


@dataclass(frozen=True)
class Change:
    """One entry that was written or removed since the last take_changes()."""

    address: Hashable
    present: bool
    value: Any = None


class Table:
    """All values of one registered state of one operator in one slot."""

    __slots__ = ("changed", "descriptor", "entries", "namespaced")

    def __init__(self, descriptor: StateDescriptor, namespaced: bool = False) -> None:
        self.descriptor = descriptor
        self.namespaced = namespaced
        self.entries: dict[Any, Any] = {}
        self.changed: set[Any] = set()

    def put(self, address: Hashable, value: Any) -> None:
        """Store a value and remember that it changed."""
        self.entries[address] = value
        self.changed.add(address)

    def remove(self, address: Hashable) -> None:
        """Drop an entry; it counts as a change only if there was one."""
        if address in self.entries:
            del self.entries[address]
            self.changed.add(address)

    def take_changes(self) -> list[Change]:
        """What changed since the last call; afterwards nothing has."""
        entries = self.entries
        changes = [
            Change(address, True, entries[address]) if address in entries else Change(address, False)
            for address in self.changed
        ]
        self.changed.clear()
        return changes
