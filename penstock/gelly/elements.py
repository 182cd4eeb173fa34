"""The elements of graphs: vertices, edges and triplets, which are tuples, and the directions of edges."""

from __future__ import annotations

from enum import Enum
from typing import Any, NamedTuple

from penstock.errors import TypeMismatch, UnsupportedKey


class EdgeDirection(Enum):
    """The edges of a vertex that an operation looks at."""

    IN = "in"
    """Edges that end at the vertex."""
    OUT = "out"
    """Edges that begin at the vertex."""
    ALL = "all"
    """Edges that begin or end at the vertex."""


class Vertex(NamedTuple):
    """A vertex: its id and its value."""

    id: Any
    value: Any

    def get_id(self) -> Any:
        """Return the id."""
        return self[0]

    def get_value(self) -> Any:
        """Return the value."""
        return self[1]


class Edge(NamedTuple):
    """A directed edge: the ids of its source and its target, and its value."""

    source: Any
    target: Any
    value: Any

    def get_source(self) -> Any:
        """Return the id of the source."""
        return self[0]

    def get_target(self) -> Any:
        """Return the id of the target."""
        return self[1]

    def get_value(self) -> Any:
        """Return the value."""
        return self[2]

    def reverse(self) -> Edge:
        """Return the edge in the other direction."""
        return Edge(self[1], self[0], self[2])


class Triplet(NamedTuple):
    """An edge with its vertices."""

    source_id: Any
    target_id: Any
    source_value: Any
    target_value: Any
    edge_value: Any

    def get_src_vertex(self) -> Vertex:
        """Return the source."""
        return Vertex(self[0], self[2])

    def get_trg_vertex(self) -> Vertex:
        """Return the target."""
        return Vertex(self[1], self[3])

    def get_edge(self) -> Edge:
        """Return the edge."""
        return Edge(self[0], self[1], self[4])


def as_vertex(value: Any) -> Vertex:
    """Return a vertex that was given as a Vertex or as a tuple. Raise an error if it is neither, or has no id."""
    if type(value) is not Vertex:
        if not isinstance(value, tuple) or len(value) != 2:
            raise TypeMismatch(f"a vertex is a Vertex(id, value) or such a tuple, not {value!r}")
        value = Vertex(*value)
    if value[0] is None:
        raise UnsupportedKey(f"the id of {value!r} is None")
    return value  # type: ignore[no-any-return]


def as_edge(value: Any) -> Edge:
    """Return an edge that was given as an Edge or as a tuple. Raise an error if it is neither, or lacks an id."""
    if type(value) is not Edge:
        if not isinstance(value, tuple) or len(value) != 3:
            raise TypeMismatch(f"an edge is an Edge(source, target, value) or such a tuple, not {value!r}")
        value = Edge(*value)
    if value[0] is None or value[1] is None:
        raise UnsupportedKey(f"the source or the target of {value!r} is None")
    return value  # type: ignore[no-any-return]


def as_bare_edge(value: Any) -> Edge:
    """Return an edge without a value, given the ids of its source and its target."""
    if not isinstance(value, tuple) or len(value) != 2:
        raise TypeMismatch(f"an edge without a value is a tuple (source, target), not {value!r}")
    return as_edge((*value, None))
