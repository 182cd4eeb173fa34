"""Entries of a table in a database. Entries in use are live objects, within the slot's memory budget."""

from __future__ import annotations

import gc
import pickle
from collections.abc import Callable, Iterator, MutableMapping, Sequence
from sys import getsizeof
from types import FunctionType, ModuleType
from typing import Any, Protocol

ABSENT: Any = object()
HEAVY = 16 << 10
"""Size of a pickle, in bytes, from which an entry is estimated separately. The mean size stands for smaller entries."""
_SLOT = 100
"""Memory of an entry besides its key and value, in bytes: its places in partly empty hash tables."""
_FIRST_GUESS = 4.0
_MOST_PARTS = 1000
_MOST_FETCHED = 1024
"""Number of entries that are fetched before the remaining room is checked."""
_ALIGNED = 16


class StoredTable(Protocol):
    """The view of a table that `Entries` and `Room` need."""

    entries: Any

    def read(self, address: Any) -> bytes | None:
        """Return the pickled (address, value) from the database, or None if it has no such entry."""

    def scan(self) -> Iterator[tuple[Any, Any, bytes]]:
        """Yield all entries with their pickles."""

    def flush(self) -> None:
        """Write the changes to the database."""

    def clear(self) -> None:
        """Forget every entry."""


class Entries(MutableMapping[Any, Any]):
    """A table's entries by address. Entries that are read or set become live objects.

    Live objects have two generations. Objects that are read or set are young. When the young objects of all tables
    fill half of the room, the old objects are dropped and the young ones become old. Changes are written before
    that, so dropping loses nothing. A reader may change an object and then report the change, as long as it has not
    read half a room of other objects in between.
    """

    __slots__ = ("_heavy_old", "_old", "_room", "_table", "_young", "get", "gone", "heavy", "scale", "written")

    def __init__(self, table: StoredTable, room: Room) -> None:
        self._table = table
        self._room = room
        self._young: dict[Any, Any] = {}
        self._old: dict[Any, Any] = {}
        self.gone: set[Any] = set()
        """Addresses removed since the last flush. The database may still have them."""
        self.written = False
        """True if the database has entries of this table."""
        self.scale = Scale()
        self.heavy: dict[Any, int] = {}
        self._heavy_old: dict[Any, int] = {}
        self.get = self._getter()  # type: ignore[method-assign]

    def _getter(self) -> Callable[..., Any]:
        """Return `get` as a closure. It runs for every record and costs half as much as a method."""
        live, fetch = self._young.get, self._fetch

        def get(address: Any, default: Any = None) -> Any:
            held = live(address, ABSENT)
            return fetch(address, default) if held is ABSENT else held

        return get

    def _fetch(self, address: Any, default: Any) -> Any:
        """Make an entry young. Room is made first, so that this entry is not dropped at once."""
        room = self._room
        room.left -= self.scale.mean
        if room.left < 0:
            room.review()
        held = self._old.pop(address, ABSENT)
        if held is not ABSENT:
            if address in self._heavy_old:
                self.heavy[address] = self._heavy_old[address]
        else:
            stored = self.read_stored(address)
            if stored is None:
                return default
            address, held = pickle.loads(stored)
            if len(stored) >= HEAVY:
                self.heavy[address] = len(stored)
        self._young[address] = held
        return held

    def get_all(self, addresses: Sequence[Any]) -> list[Any]:
        """Return the values of many entries, with None for each missing entry."""
        found = list(map(self._young.get, addresses))
        if None in found:
            self._fetch_all(addresses, found, [index for index, held in enumerate(found) if held is None])
        return found

    def _fetch_all(self, addresses: Sequence[Any], found: list[Any], missing: Sequence[int]) -> None:
        """Fetch entries that are not young, like `_fetch`.

        Most of them are new, and the database does not have them.
        """
        room, read, young, gone = self._room, self._table.read, self._young, self.gone
        for start in range(0, len(missing), _MOST_FETCHED):
            some = missing[start : start + _MOST_FETCHED]
            room.left -= self.scale.mean * len(some)
            if room.left < 0:
                room.review()
            old = self._old
            for index in some:
                address = addresses[index]
                if address in old or address in young:
                    found[index] = self.get(address)
                elif self.written and address not in gone and (stored := read(address)) is not None:
                    address, held = pickle.loads(stored)
                    found[index] = young[address] = held
                    if len(stored) >= HEAVY:
                        self.heavy[address] = len(stored)

    def read_stored(self, address: Any) -> bytes | None:
        """Return the pickle that the database has for an address without a live object, or None."""
        return None if not self.written or address in self.gone else self._table.read(address)

    def live(self, address: Any) -> Any:
        """Return the live object of an address, or ABSENT."""
        held = self._young.get(address, ABSENT)
        return self._old.get(address, ABSENT) if held is ABSENT else held

    def present(self, addresses: set[Any]) -> Iterator[tuple[Any, Any]]:
        """Yield the addresses among these that have a live object, each with its object."""
        young, old = self._young.get, self._old.get
        for address in addresses:
            held = young(address, ABSENT)
            if held is ABSENT:
                held = old(address, ABSENT)
            if held is not ABSENT:
                yield address, held

    def missing(self, addresses: set[Any]) -> set[Any]:
        """Return the addresses among these that have no entry, neither here nor in the database."""
        return {
            address
            for address in addresses.difference(self._young)
            if address not in self._old and self.read_stored(address) is None
        }

    def discard(self, address: Any) -> bool:
        """Remove an entry. Return True if there was one."""
        self.heavy.pop(address, None)
        was_young = self._young.pop(address, ABSENT) is not ABSENT
        if self._old.pop(address, ABSENT) is ABSENT and not was_young and self.read_stored(address) is None:
            return False
        self.gone.add(address)
        return True

    def wrote(self, piece: list[tuple[Any, Any, bytes]]) -> None:
        """Note that the database now has these entries, and estimate their weight from the sizes of their pickles."""
        self.written = True
        light = 0
        for address, _, pickled in piece:
            if len(pickled) < HEAVY:
                light += len(pickled)
            else:
                self.heavy[address] = len(pickled)
        address, value, pickled = piece[-1]
        if len(pickled) < HEAVY:
            self.scale.weigh(footprint(address, value), len(pickled), light / len(piece))

    def age(self) -> None:
        """Drop the old objects. Their changes must have been written before."""
        self._old = self._young.copy()
        self._young.clear()
        self._heavy_old, self.heavy = self.heavy, {}

    def forget(self) -> None:
        """Drop all objects and the record of removed addresses."""
        self._young.clear()
        self._old.clear()
        self.gone.clear()
        self.heavy.clear()
        self._heavy_old.clear()

    def weight(self) -> float:
        """Return the approximate memory of the young objects, in bytes."""
        return len(self._young) * self.scale.mean + sum(self.heavy.values()) * self.scale.ratio

    def __getitem__(self, address: Any) -> Any:
        held = self.get(address, ABSENT)
        if held is ABSENT:
            raise KeyError(address)
        return held

    def __setitem__(self, address: Any, value: Any) -> None:
        self._young[address] = value

    def update(self, other: Any = (), /, **named: Any) -> None:
        """Set many entries at once."""
        self._young.update(other, **named)

    def __delitem__(self, address: Any) -> None:
        if not self.discard(address):
            raise KeyError(address)

    def clear(self) -> None:
        self._table.clear()

    def __contains__(self, address: object) -> bool:
        return self.live(address) is not ABSENT or self.read_stored(address) is not None

    def __iter__(self) -> Iterator[Any]:
        return (address for address, _, _ in self._table.scan())

    def __len__(self) -> int:
        return sum(1 for _ in self._table.scan())

    def __bool__(self) -> bool:
        return next(self._table.scan(), None) is not None


class Room:
    """The memory of a slot for the live objects of its tables.

    Each read reduces the remaining memory by the mean weight of an entry. When nothing remains, `review` adds up
    the memory in use.
    """

    def __init__(self, most: int) -> None:
        self._half = most / 2
        self.left = self._half
        self.tables: list[StoredTable] = []

    def review(self) -> None:
        """Compute the remaining memory, and let the objects age if there is none."""
        used = sum(table.entries.weight() for table in self.tables)
        if used > self._half:
            for table in self.tables:
                table.flush()
                table.entries.age()
            used = 0
        self.left = max(self._half - used, self._half / 64)


class Scale:
    """Weight of a table's entries in memory, estimated from their pickles and from inspecting some of them."""

    __slots__ = ("mean", "ratio")

    def __init__(self) -> None:
        self.ratio = _FIRST_GUESS
        """Bytes in memory for each byte of a pickle: a little over 1 for text, 4 to 12 for most other values."""
        self.mean = 2.0 * _SLOT

    def weigh(self, live: int, pickled: int, mean_pickled: float) -> None:
        """Adjust the estimate by an entry's two sizes and by the mean size of the pickles beside it."""
        self.ratio += (live / pickled - self.ratio) / 8
        self.mean = _SLOT + mean_pickled * self.ratio


def footprint(*values: Any) -> int:
    """Return the bytes that objects and everything they refer to take, counting at most the first thousand parts."""
    seen, size, waiting = set[int](), 0, list(values)
    while waiting and len(seen) < _MOST_PARTS:
        part = waiting.pop()
        if id(part) not in seen and not isinstance(part, type | ModuleType | FunctionType):
            seen.add(id(part))
            size += -(-getsizeof(part) // _ALIGNED) * _ALIGNED
            waiting.extend(gc.get_referents(part))
    return size
