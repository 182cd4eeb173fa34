"""Tables, which map the address of a state to its value and know the changes since the last complete checkpoint.

The address is the key, or contains it: (key, namespace) for a state that lives in namespaces such as windows, and
(time, key, namespace) for a timer.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from contextlib import suppress
from enum import Enum
from itertools import islice
from typing import Any, Protocol

from penstock.api.state.descriptors import StateDescriptor
from penstock.base import pickling
from penstock.engine.state.live_entries import ABSENT
from penstock.errors import KeyedStateRequired

PAGE_ENTRIES = 4096
Page = bytes
"""A pickled triple: addresses, their values, and removed addresses. Pages are applied in order, so a later one wins."""


class KeyScope:
    """The key whose state can be accessed. The operator sets it for each record, and removes it between records.

    Without a current key there is no attribute `key`, so that access raises an error and never shows the state of
    another key.
    """

    __slots__ = ("key",)
    key: Any

    def leave(self) -> None:
        """Leave the current key: access raises an error until the next key is set."""
        with suppress(AttributeError):
            del self.key

    def entering(self, key_of: Callable[[Any], Any]) -> Callable[[Any], Any]:
        """Return a key selector that also makes its result the current key."""

        def enter(value: Any) -> Any:
            self.key = key = key_of(value)
            return key

        return enter

    def __getattr__(self, name: str) -> Any:
        """Raise KeyedStateRequired.

        Python calls this only without a current key, so access with a key costs nothing extra.
        """
        raise KeyedStateRequired(
            "there is no current key here: keyed state and timers can be used while a record or a timer of a key is "
            "being processed, but not in open(), close(), a checkpoint or the processing of a broadcast record"
        )


class Layout(Enum):
    """The parts of an address."""

    KEY = "key"
    PANE = "pane"
    TIMER = "timer"

    def key_of(self, address: Any) -> Any:
        """Return the key inside an address."""
        return address if self is Layout.KEY else address[0] if self is Layout.PANE else address[1]


class Table:
    """All values of one state of one operator in one slot, as live objects in memory.

    Code that changes an entry adds its address to `changed`. A checkpoint moves these addresses to the unconfirmed
    ones; they stay there until a checkpoint that holds them is known to be complete, so that a failed checkpoint loses
    nothing.
    """

    __slots__ = ("_sweeping", "_unconfirmed", "changed", "descriptor", "entries", "layout", "name", "prune", "schema")

    def __init__(self, name: str, layout: Layout = Layout.KEY) -> None:
        self.name = name
        self.layout = layout
        self.descriptor: StateDescriptor | None = None
        """Descriptor of the state; None for restored state that no function has requested yet."""
        self.schema: dict[str, Any] | None = None
        """Description of the values in restored metadata; None for state that was never restored."""
        self.entries: dict[Any, Any] = {}
        self.changed: set[Any] = set()
        self.prune: Callable[[Any], Any] | None = None
        """Function that removes the expired parts of a value, for state that expires.

        It returns None if nothing is left.
        """
        self._unconfirmed: dict[int, set[Any]] = {}
        self._sweeping: Iterator[Any] = iter(())

    def put(self, address: Hashable, value: Any) -> None:
        """Store a value and remember that it changed."""
        self.entries[address] = value
        self.changed.add(address)

    def remove(self, address: Hashable) -> None:
        """Drop an entry. Only an existing entry counts as a change."""
        if address in self.entries:
            del self.entries[address]
            self.changed.add(address)

    def remove_all(self, addresses: Iterable[Hashable]) -> None:
        """Drop many entries."""
        pop = self.entries.pop
        self.changed.update([address for address in addresses if pop(address, ABSENT) is not ABSENT])

    def get_all(self, addresses: Sequence[Any]) -> list[Any]:
        """Return the values of many entries, with None for each missing entry."""
        return list(map(self.entries.get, addresses))

    # --- looking without touching ---
    def peek(self, address: Hashable) -> Any:
        """Return the value of an entry, or ABSENT. It is the live object, so the caller must not change it."""
        return self.entries.get(address, ABSENT)

    def items(self) -> Iterable[tuple[Any, Any]]:
        """Return every address with its value, in no particular order. The table must not change meanwhile."""
        return self.entries.items()

    # --- epochs ---
    def end_epoch(self, tracking: bool) -> None:
        """End an epoch. Without tracking, forget its changes, because no checkpoint will ask for them."""
        if not tracking:
            self.changed.clear()

    def sweep(self, most: int) -> None:
        """Check this many entries, in turn, and drop those that have expired."""
        if self.prune is None or most <= 0:
            return
        addresses = list(islice(self._sweeping, most))
        if len(addresses) < most:
            self._sweeping = self.addresses()
        for address in addresses:
            held = self.entries.get(address)
            if held is not None:
                self._prune(address, held)

    def addresses(self) -> Iterator[Any]:
        """Return an iterator over the addresses at this moment."""
        return iter(list(self.entries))

    def _prune(self, address: Any, held: Any) -> None:
        assert self.prune is not None
        left = self.prune(held)
        if left is None:
            self.remove(address)
        elif left is not held:
            self.put(address, left)

    # --- checkpoints ---
    def mark(self, checkpoint: int) -> None:
        """Assign the changes so far to this checkpoint."""
        self._unconfirmed[checkpoint] = set(self.changed)
        self.changed.clear()

    def confirm(self, checkpoint: int) -> None:
        """Forget the changes that this checkpoint and those before it hold, because the checkpoint is complete."""
        for number in [number for number in self._unconfirmed if number <= checkpoint]:
            del self._unconfirmed[number]

    def changes(self) -> Iterable[Page]:
        """Return the changes that no complete checkpoint holds yet."""
        entries, addresses = self.entries, set[Any]().union(*self._unconfirmed.values())
        gone = [address for address in addresses if address not in entries]
        kept = ((address, entries[address]) for address in addresses if address in entries)
        return [*pages(kept), pack_page([], gone)] if gone else list(pages(kept))

    def everything(self, pruned: bool = False) -> Iterable[Page]:
        """Return all present entries, on request without expired ones. Another thread may consume the pages."""
        prune = self.prune if pruned else None
        if prune is None:
            return list(pages(self.entries.items()))
        left = ((address, prune(value)) for address, value in self.entries.items())
        return list(pages((address, value) for address, value in left if value is not None))

    def load(self, page: Page, wanted: Callable[[Any], bool] | None = None) -> None:
        """Load a page of restored entries, or only those whose key is wanted. They do not count as changes."""
        addresses, values, gone = pickling.loads(page)
        if wanted is None:
            self.entries.update(zip(addresses, values, strict=True))
        else:
            key_of = self.layout.key_of
            self.entries.update((a, v) for a, v in zip(addresses, values, strict=True) if wanted(key_of(a)))
        for address in gone:
            self.entries.pop(address, None)

    def convert(self, function: Callable[[Any], Any]) -> None:
        """Replace every value by the result of a function, because its type changed."""
        for address in self.addresses():
            self.put(address, function(self.entries[address]))

    def clear(self) -> None:
        """Forget every entry."""
        self.entries.clear()


def pages(entries: Iterable[tuple[Any, Any]]) -> Iterator[Page]:
    """Yield pages of entries. Each page is serialised when it is requested."""
    feed = iter(entries)
    while piece := list(islice(feed, PAGE_ENTRIES)):
        yield pack_page(piece)


def pack_page(entries: Sequence[tuple[Any, ...]], gone: list[Any] | None = None) -> Page:
    """Return one page of entries. Each entry begins with an address and its value."""
    return page([entry[0] for entry in entries], [entry[1] for entry in entries], gone)


def page(addresses: list[Any], values: list[Any], gone: list[Any] | None = None) -> Page:
    """Serialise one page of entries."""
    return pickling.dumps((addresses, values, gone or []))


class Tables(Protocol):
    """Creates the tables of a slot: in memory, or in a database on disk."""

    def table(self, owner: str, name: str, layout: Layout) -> Table:
        """Create an empty table. `owner` and `name` together are unique in a slot."""

    def figures(self, wanted: Sequence[str]) -> dict[str, int]:
        """Return the wanted figures of the database, by name. Without a database there are none."""

    def close(self) -> None:
        """Release the resources of the tables outside this process's memory."""


class HeapTables:
    """Tables as live objects in the slot's memory."""

    def table(self, owner: str, name: str, layout: Layout) -> Table:
        return Table(name, layout)

    def figures(self, wanted: Sequence[str]) -> dict[str, int]:
        return {}

    def close(self) -> None:
        """Do nothing: there is nothing to release."""
