"""The rows of partitions in an order.

The cost of adding or removing a row does not grow with the size of a partition.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator
from itertools import islice
from typing import Any

from penstock.engine.state.backend import KeyedStateBackend
from penstock.engine.state.tables import Layout
from penstock.table.operators.base.query_batches import Held
from penstock.table.operators.base.query_state import store

Order = Callable[[Held], tuple[Any, ...]]
Item = tuple[int, Held]
"""The number of a row in the order of arrival, which decides between equal rows, and the row."""
Leaf = list[Item]
Inner = tuple[list[Item], list[int]]
"""Lower bounds of all children but the first, and the numbers of the children."""
MOST_TOGETHER = 128
"""Maximum number of rows of a partition in one entry of state.

With several entries, a change does not rewrite all rows.
"""
FEW_AGAIN = 32


class OrderedRows:
    """The rows of partitions. A caller that changes rows must write them again.

    A partition is a list. A large partition is a tree of pieces, and its entry is a tuple of the tree's figures. Beside
    the tree, every row has an entry with its numbers, which finds it among rows that are equal in order. With a time to
    live, a partition is always a list: it expires as a whole after some time without a write.
    """

    def __init__(self, backend: KeyedStateBackend, name: str, order: Order, ttl: int) -> None:
        self._heads = store(backend, name, ttl)
        self.nodes = store(backend, f"{name} nodes", 0, Layout.PANE)
        self.numbers = store(backend, f"{name} numbers", 0, Layout.PANE)
        self.order = order
        self._most = None if ttl else MOST_TOGETHER

    def read(self, key: Any) -> Few | Tree:
        """Return the rows of a partition."""
        head = self._heads.get(key)
        return Tree(self, key, *head) if isinstance(head, tuple) else Few(head or [], self.order)

    def write(self, key: Any, rows: Few | Tree) -> None:
        """Store the rows of a partition. Convert a list that has become large to a tree, and a small tree to a list."""
        if isinstance(rows, Few) and self._most is not None and len(rows) > self._most:
            rows = Tree.of(self, key, rows)
        if isinstance(rows, Tree) and len(rows) <= FEW_AGAIN:
            rows = rows.take_apart()
        if len(rows):
            self._heads.put(key, rows.save())
        else:
            self._heads.remove(key)


class Few:
    """The rows of a partition as a list in order."""

    def __init__(self, rows: list[Held], order: Order) -> None:
        self._rows = rows
        self._order = order

    def insert(self, row: Held) -> None:
        """Insert a row behind the rows that are equal in order."""
        self._rows.insert(bisect_right(self._rows, self._order(row), key=self._order), row)

    def remove(self, row: Held) -> bool:
        """Remove the first of the equal rows. Return True if there was one."""
        rows, place = self._rows, self._order(row)
        start = bisect_left(rows, place, key=self._order)
        for position in range(start, bisect_right(rows, place, start, key=self._order)):
            if rows[position] == row:
                del rows[position]
                return True
        return False

    def first(self, count: int | None) -> list[Held]:
        """Return the first rows, or all if the count is None."""
        return self._rows[:count]

    def save(self) -> list[Held]:
        """Return the entry of the partition."""
        return self._rows

    def __len__(self) -> int:
        return len(self._rows)


class Tree:
    """Many rows of one partition: a B+ tree whose nodes are entries of state. Nodes are read when they are needed."""

    def __init__(self, rows: OrderedRows, key: Any, root: int, nodes: int, arrived: int, count: int) -> None:
        """Create a tree. `nodes` and `arrived` are the next numbers of a node and of a row."""
        self._rows = rows
        self._key = key
        self._root = root
        self._nodes = nodes
        self._arrived = arrived
        self._count = count
        self._loaded: dict[int, Leaf | Inner] = {}
        self._changed: set[int] = set()

    @staticmethod
    def of(rows: OrderedRows, key: Any, few: Few) -> Tree:
        """Return a new tree with the rows of a list."""
        made = Tree(rows, key, 0, 1, 0, 0)
        made._loaded[0] = []
        for row in few.first(None):
            made.insert(row)
        return made

    def take_apart(self) -> Few:
        """Delete the tree from state, and return its rows as a list."""
        rows = self.first(None)
        self._rows.numbers.remove_all([(self._key, row) for row in rows])
        for number in {*self._all(self._root), *self._changed}:
            self._rows.nodes.remove((self._key, number))
        return Few(rows, self._rows.order)

    def save(self) -> tuple[int, int, int, int]:
        """Write the changed nodes, and return the entry of the partition."""
        for number in self._changed:
            if number in self._loaded:
                self._rows.nodes.put((self._key, number), self._loaded[number])
            else:
                self._rows.nodes.remove((self._key, number))
        self._changed.clear()
        return self._root, self._nodes, self._arrived, self._count

    # --- rows ---
    def insert(self, row: Held) -> None:
        """Insert a row behind the rows that are equal in order."""
        item = (self._arrived, row)
        numbers = self._rows.numbers.get((self._key, row)) or ()
        self._rows.numbers.put((self._key, row), (*numbers, self._arrived))
        self._arrived += 1
        self._count += 1
        path = self._path(item)
        leaf = self._leaf(path[-1])
        leaf.insert(bisect_left(leaf, self._place(item), key=self._place), item)
        self._changed.add(path[-1])
        if len(leaf) > MOST_TOGETHER:
            self._split(path)

    def remove(self, row: Held) -> bool:
        """Remove the first of the equal rows. Return True if there was one."""
        numbers = self._rows.numbers.get((self._key, row))
        if not numbers:
            return False
        if len(numbers) > 1:
            self._rows.numbers.put((self._key, row), numbers[1:])
        else:
            self._rows.numbers.remove((self._key, row))
        item = (numbers[0], row)
        path = self._path(item)
        leaf = self._leaf(path[-1])
        del leaf[bisect_left(leaf, self._place(item), key=self._place)]
        self._changed.add(path[-1])
        self._count -= 1
        if not leaf:
            self._drop(path)
        return True

    def first(self, count: int | None) -> list[Held]:
        """Return the first rows, or all if the count is None."""
        return [row for _, row in islice(self._items(self._root), count)]

    def __len__(self) -> int:
        return self._count

    def _place(self, item: Item) -> tuple[tuple[Any, ...], int]:
        return self._rows.order(item[1]), item[0]

    # --- nodes ---
    def _node(self, number: int) -> Leaf | Inner:
        known = self._loaded.get(number)
        if known is not None:
            return known
        stored: Leaf | Inner | None = self._rows.nodes.get((self._key, number))
        assert stored is not None, "a part of a partition is missing"
        self._loaded[number] = stored
        return stored

    def _leaf(self, number: int) -> Leaf:
        found = self._node(number)
        assert isinstance(found, list)
        return found

    def _inner(self, number: int) -> Inner:
        found = self._node(number)
        assert isinstance(found, tuple)
        return found

    def _path(self, item: Item) -> list[int]:
        """Return the numbers of the nodes from the root to the leaf of an item."""
        path, place = [self._root], self._place(item)
        while isinstance(node := self._node(path[-1]), tuple):
            beginnings, children = node
            path.append(children[bisect_right(beginnings, place, key=self._place)])
        return path

    def _items(self, number: int) -> Iterator[Item]:
        node = self._node(number)
        if isinstance(node, list):
            yield from node
        else:
            for child in node[1]:
                yield from self._items(child)

    def _all(self, number: int) -> Iterator[int]:
        node = self._node(number)
        if isinstance(node, tuple):
            for child in node[1]:
                yield from self._all(child)
        yield number

    def _split(self, path: list[int]) -> None:
        """Move half of a node that is too large to a new node."""
        number = path.pop()
        node, new, half = self._node(number), self._nodes, MOST_TOGETHER // 2
        self._nodes += 1
        if isinstance(node, list):
            self._loaded[new], beginning = node[half:], node[half]
            del node[half:]
        else:
            beginnings, children = node
            self._loaded[new], beginning = (beginnings[half + 1 :], children[half + 1 :]), beginnings[half]
            del beginnings[half:], children[half + 1 :]
        self._changed |= {number, new}
        if not path:
            self._root, self._nodes = self._nodes, self._nodes + 1
            self._loaded[self._root] = ([beginning], [number, new])
            self._changed.add(self._root)
            return
        beginnings, children = self._inner(path[-1])
        at = children.index(number)
        beginnings.insert(at, beginning)
        children.insert(at + 1, new)
        self._changed.add(path[-1])
        if len(children) > MOST_TOGETHER:
            self._split(path)

    def _drop(self, path: list[int]) -> None:
        """Remove an empty node. The root remains as an empty leaf."""
        number = path.pop()
        if not path:
            self._loaded[number] = []
            return
        self._changed |= {number, path[-1]}
        self._loaded.pop(number)
        beginnings, children = self._inner(path[-1])
        at = children.index(number)
        del children[at]
        if beginnings:
            del beginnings[max(at - 1, 0)]
        if not children:
            self._drop(path)
        elif len(children) == 1 and len(path) == 1:
            self._loaded.pop(self._root)
            self._root = children[0]
