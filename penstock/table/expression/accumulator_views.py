"""Lists and maps inside the accumulators of aggregate functions."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, ItemsView, Iterable, Iterator, KeysView, MutableMapping, ValuesView
from typing import Any, Generic, TypeVar

__all__ = ["DataView", "ListView", "MapView"]

T = TypeVar("T")
K = TypeVar("K")
V = TypeVar("V")


class DataView(ABC):
    """A collection that belongs to an accumulator."""

    @abstractmethod
    def clear(self) -> None:
        """Remove everything."""


class ListView(DataView, Generic[T]):
    """A list that an accumulator holds."""

    def __init__(self) -> None:
        self._list: list[T] = []

    def get(self) -> Iterable[T]:
        """Return the elements."""
        return self._list

    def add(self, value: T) -> None:
        """Add an element."""
        self._list.append(value)

    def add_all(self, values: Iterable[T]) -> None:
        """Add elements."""
        self._list.extend(values)

    def clear(self) -> None:
        self._list = []

    def __iter__(self) -> Iterator[T]:
        return iter(self._list)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ListView) and self._list == other._list

    def __hash__(self) -> int:
        return hash(tuple(self._list))

    def __repr__(self) -> str:
        return f"ListView({self._list})"


class _RemovingIterator(Iterator[T]):
    """Goes through a map, and can remove the entry that it gave last."""

    def __init__(self, held: MutableMapping[Any, Any], give: Callable[[Any], T]) -> None:
        self._held, self._give = held, give
        self._keys = iter(list(held))
        self._last: list[Any] = []

    def __next__(self) -> T:
        self._last = []
        key = next(self._keys)
        self._last = [key]
        return self._give(key)

    def remove(self) -> None:
        """Remove the entry that came last."""
        if not self._last:
            raise RuntimeError("remove: there is no last entry; call next before every remove")
        del self._held[self._last.pop()]


class _Keys(KeysView[K]):
    _mapping: MutableMapping[K, Any]

    def __iter__(self) -> Iterator[K]:
        return _RemovingIterator(self._mapping, lambda key: key)


class _Items(ItemsView[K, V]):
    _mapping: MutableMapping[K, V]

    def __iter__(self) -> Iterator[tuple[K, V]]:
        return _RemovingIterator(self._mapping, lambda key: (key, self._mapping[key]))


class _Values(ValuesView[V]):
    _mapping: MutableMapping[Any, V]

    def __iter__(self) -> Iterator[V]:
        return _RemovingIterator(self._mapping, lambda key: self._mapping[key])


class MapView(DataView, Generic[K, V]):
    """A map that an accumulator holds."""

    def __init__(self) -> None:
        self._dict: dict[K, V] = {}

    def get(self, key: K) -> V:
        """Return the value of a key. Raise KeyError if there is no such key."""
        return self._dict[key]

    def put(self, key: K, value: V) -> None:
        """Set the value of a key."""
        self._dict[key] = value

    def put_all(self, dict_value: dict[K, V]) -> None:
        """Set the values of keys."""
        self._dict.update(dict_value)

    def remove(self, key: K) -> None:
        """Remove a key. Raise KeyError if there is no such key."""
        del self._dict[key]

    def contains(self, key: K) -> bool:
        """Return True if there is such a key."""
        return key in self._dict

    def items(self) -> ItemsView[K, V]:
        """Return the entries. Iterators over entries, keys or values have a method `remove` for the last entry."""
        return _Items(self._dict)

    def keys(self) -> KeysView[K]:
        """Return the keys."""
        return _Keys(self._dict)

    def values(self) -> ValuesView[V]:
        """Return the values."""
        return _Values(self._dict)

    def is_empty(self) -> bool:
        """Return True if there are no entries."""
        return not self._dict

    def clear(self) -> None:
        self._dict = {}

    def __getitem__(self, key: K) -> V:
        return self.get(key)

    def __setitem__(self, key: K, value: V) -> None:
        self.put(key, value)

    def __delitem__(self, key: K) -> None:
        self.remove(key)

    def __contains__(self, key: K) -> bool:
        return self.contains(key)

    def __iter__(self) -> Iterator[K]:
        return iter(self.keys())

    def __eq__(self, other: object) -> bool:
        return isinstance(other, MapView) and self._dict == other._dict

    def __hash__(self) -> int:
        return id(self)

    def __repr__(self) -> str:
        return f"MapView({self._dict})"
