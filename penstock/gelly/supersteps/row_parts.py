"""Parts of a graph as rows: values, edges and messages in dictionaries by vertex id."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from penstock.dataset import DataSet
from penstock.dataset.functions import FlatMapFunction
from penstock.errors import ProgramError
from penstock.gelly.elements import Edge, Vertex
from penstock.gelly.graph_base import GraphBase
from penstock.gelly.supersteps.engine import Parcel, PartOperator, owner_of, to_parts

Messages = list[tuple[Any, Any]]
"""Pairs of the id of a vertex and a message."""
_VERTEX, _OUT, _IN = range(3)


class RowPart:
    """The vertices of one part, with their edges and messages."""

    def __init__(self, number: int, parts: int) -> None:
        self.number = number
        self.parts = parts
        self.values: dict[Any, Any] = {}
        """Values of the vertices by id."""
        self.out_edges: dict[Any, list[Edge]] = {}
        self.in_edges: dict[Any, list[Edge]] = {}
        self.active: Iterable[Any] = ()
        """Ids of the vertices that take part in the next superstep."""
        self.inbox: dict[Any, list[Any]] = {}
        """Messages for the next superstep by vertex."""

    def begin(self) -> None:
        """Note that all elements have come: all vertices are active."""
        self.active = list(self.values)

    def check_vertex(self, vertex_id: Any) -> None:
        """Raise an error if a vertex is not in this part."""
        if vertex_id not in self.values:
            raise unknown_vertex(vertex_id)


def unknown_vertex(vertex_id: Any) -> ProgramError:
    """Return the error for a message to a vertex that is not there."""
    return ProgramError(f"a message goes to the vertex {vertex_id!r}, which is not in the graph")


def row_parts(graph: GraphBase, parts: int, with_in_edges: bool) -> DataSet:
    """Return the parts of a graph."""
    edges = graph.get_edges()
    elements = graph.get_vertices().flat_map(Addressed(_VERTEX, 0, parts))
    elements = elements.union(edges.flat_map(Addressed(_OUT, 0, parts)))
    if with_in_edges:
        elements = elements.union(edges.flat_map(Addressed(_IN, 1, parts)))
    return to_parts(elements, "Graph Parts", RowPartBuilder(parts), parts)


def vertices_of_parts(parts: DataSet) -> DataSet:
    """Return the vertices of parts."""
    return parts.flat_map(lambda parcel: [Vertex(*item) for item in parcel.content.values.items()]).name("Vertices")


class Addressed(FlatMapFunction):
    """Sends an element to the part that has the vertex with one of its fields as the id."""

    def __init__(self, kind: int, position: int, parts: int) -> None:
        self.kind = kind
        self.position = position
        self.parts = parts

    def flat_map(self, value: Any) -> tuple[Parcel]:
        return (Parcel(owner_of(value[self.position], self.parts), False, (self.kind, value)),)


class RowPartBuilder(PartOperator):
    """Makes parts of their elements."""

    def __init__(self, parts: int) -> None:
        super().__init__()
        self.parts = parts

    def complete(self, number: int, part: Any, batches: list[Any]) -> Iterator[Parcel]:
        part = RowPart(number, self.parts)
        for kind, element in batches:
            if kind == _VERTEX:
                part.values[element[0]] = element[1]
            elif kind == _OUT:
                part.out_edges.setdefault(element[0], []).append(element)
            else:
                part.in_edges.setdefault(element[1], []).append(element)
        part.begin()
        yield Parcel(number, True, part)


class Outbox:
    """Messages of one part, by the part that they go to."""

    def __init__(self, parts: int) -> None:
        self.parts = parts
        self.batches: dict[int, Messages] = {}

    def add(self, vertex_id: Any, message: Any) -> None:
        """Add a message."""
        self.batches.setdefault(owner_of(vertex_id, self.parts), []).append((vertex_id, message))


def by_vertex(messages: Iterable[tuple[Any, Any]]) -> dict[Any, list[Any]]:
    """Return the messages of each vertex."""
    found: dict[Any, list[Any]] = {}
    for vertex_id, message in messages:
        found.setdefault(vertex_id, []).append(message)
    return found
