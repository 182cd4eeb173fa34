"""The partial matches of one key, which share their common events.

A partial match points to a node: an event, the element that took it, and the previous node. Matches that branch off
share all nodes before the branch. Python counts references, so it frees a node as soon as no match points to it, and no
code has to search for unused nodes.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, TypeAlias

from penstock.persisted import persisted

Node: TypeAlias = tuple[str, int, Any, "Node | None"]
"""An element's name, the number of its event, the event, and the node before."""
Partial: TypeAlias = tuple[int, Node, int, int, int]
"""The number of its state, its last node, the number and the time of its first event, the time of its last."""
Finished: TypeAlias = tuple[int, Node]
"""The number of its first event, and its last node."""


@persisted
class PartialMatches:
    """The matches that one key has begun.

    In checkpoints the chains of events are stored flat, because they may be longer than pickle can nest.
    """

    __slots__ = ("begun", "finished", "last_number", "partials", "shape")

    def __init__(self, shape: int) -> None:
        self.shape = shape
        """The shape of the automaton to which the numbers of states belong."""
        self.partials: list[Partial] = []
        """Partial matches in the order of their first events."""
        self.finished: list[Finished] = []
        """Complete matches that wait for those which began before them; a heap in Java's order."""
        self.last_number = 0
        """The number of the last event that was taken. Numbers grow in the order of events."""
        self.begun = False
        """True if the last event began a match. It is not saved."""

    def __bool__(self) -> bool:
        return bool(self.partials or self.finished)

    def nodes(self) -> Iterator[Node]:
        """Yield every node that a match holds, once."""
        seen: set[int] = set()
        for node in [*(partial[1] for partial in self.partials), *(item[1] for item in self.finished)]:
            current: Node | None = node
            while current is not None and id(current) not in seen:
                seen.add(id(current))
                yield current
                current = current[3]

    def __getstate__(self) -> tuple[Any, ...]:
        flat = _Flat()
        partials = [(state, flat.index(node), *times) for state, node, *times in self.partials]
        finished = [(start, flat.index(node)) for start, node in self.finished]
        return self.shape, self.last_number, flat.events, flat.nodes, partials, finished

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        self.shape, self.last_number, events, flat, partials, finished = state
        nodes: list[Node] = []
        for element, number, previous in flat:
            nodes.append((element, number, events[number], None if previous is None else nodes[previous]))
        self.partials = [(where, nodes[index], start, began, last) for where, index, start, began, last in partials]
        self.finished = [(start, nodes[index]) for start, index in finished]
        self.begun = False


class _Flat:
    """A flat form of nodes: each knows the index of the node before, and every event is stored once by its number."""

    def __init__(self) -> None:
        self.nodes: list[tuple[str, int, int | None]] = []
        self.events: dict[int, Any] = {}
        self._indices: dict[int, int] = {}

    def index(self, node: Node) -> int:
        """Return the index of a node. A new node is added, together with its predecessors."""
        chain: list[Node] = []
        current: Node | None = node
        while current is not None and id(current) not in self._indices:
            chain.append(current)
            current = current[3]
        previous = None if current is None else self._indices[id(current)]
        for each in reversed(chain):
            element, number, event, _ = each
            self.events[number] = event
            self.nodes.append((element, number, previous))
            previous = self._indices[id(each)] = len(self.nodes) - 1
        assert previous is not None
        return previous


def chain(node: Node | None) -> list[Node]:
    """Return a match's nodes, the first one first."""
    nodes = []
    while node is not None:
        nodes.append(node)
        node = node[3]
    nodes.reverse()
    return nodes


def events_of(node: Node | None) -> dict[str, list[Any]]:
    """Return a match as its events by name, in the order in which the names took their first events."""
    match: dict[str, list[Any]] = {}
    for element, _, event, _ in chain(node):
        match.setdefault(element, []).append(event)
    return match


def numbers_of(node: Node) -> dict[str, list[int]]:
    """Return a match as the numbers of its events by name."""
    match: dict[str, list[int]] = {}
    for element, number, _, _ in chain(node):
        match.setdefault(element, []).append(number)
    return match
