"""The parts of graph transformations that run in tasks: around functions of the program, and on joins and groups."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from penstock.dataset.functions import CoGroupFunction, FlatMapFunction, JoinFunction, MapFunction
from penstock.errors import ProgramError
from penstock.gelly.elements import Edge, Triplet, Vertex
from penstock.gelly.functions import Wrapper


# --- around functions of the program ---
class VertexValues(Wrapper, MapFunction):
    """Computes the value of a vertex from the vertex."""

    def map(self, value: Any) -> Vertex:
        return Vertex(value[0], self.call(value))


class EdgeValues(Wrapper, MapFunction):
    """Computes the value of an edge from the edge."""

    def map(self, value: Any) -> Edge:
        return Edge(value[0], value[1], self.call(value))


class InitialVertex(Wrapper, MapFunction):
    """Makes a vertex of an id, with the value that a function computes from the id."""

    def map(self, value: Any) -> Vertex:
        return Vertex(value, self.call(value))


class TranslatedVertexIds(Wrapper, MapFunction):
    """Replaces the id of a vertex."""

    def map(self, value: Any) -> Vertex:
        return Vertex(self.call(value[0]), value[1])


class TranslatedEdgeIds(Wrapper, MapFunction):
    """Replaces the ids of an edge."""

    def map(self, value: Any) -> Edge:
        return Edge(self.call(value[0]), self.call(value[1]), value[2])


class TranslatedVertexValues(Wrapper, MapFunction):
    """Replaces the value of a vertex, knowing the value alone."""

    def map(self, value: Any) -> Vertex:
        return Vertex(value[0], self.call(value[1]))


class TranslatedEdgeValues(Wrapper, MapFunction):
    """Replaces the value of an edge, knowing the value alone."""

    def map(self, value: Any) -> Edge:
        return Edge(value[0], value[1], self.call(value[2]))


class JoinedValues(Wrapper, CoGroupFunction):
    """Combines the value of a vertex or edge, which is its last field, with that of an element with the same ids."""

    def co_group(self, first: Iterable[Any], second: Iterable[Any]) -> Iterator[Any]:
        mine, other = next(iter(first), None), next(iter(second), None)
        if mine is not None:
            yield mine if other is None else mine._replace(value=self.call(mine[-1], other[-1]))


class ValuesJoinedOnOneEnd(Wrapper, CoGroupFunction):
    """Combines the values of all edges of a vertex with that of an element with its id."""

    def co_group(self, first: Iterable[Any], second: Iterable[Any]) -> Iterator[Any]:
        other = next(iter(second), None)
        for edge in first:
            yield edge if other is None else Edge(edge[0], edge[1], self.call(edge[2], other[-1]))


class ReducedPairs(Wrapper):
    """Combines the values of two pairs (id, value)."""

    def reduce(self, first: Any, second: Any) -> tuple[Any, Any]:
        """Return the pair with the combined value."""
        return first[0], self.call(first[1], second[1])


class WithVertex(Wrapper, CoGroupFunction):
    """Calls a function with a vertex and the elements of its neighbourhood, which are tuples that begin with its id."""

    def co_group(self, first: Iterable[Any], second: Iterable[Any]) -> Any:
        vertex = only_vertex(first, second)
        return self.call(vertex, (each[1] if len(each) == 2 else each[1:] for each in second))


class WithoutVertex(Wrapper):
    """Calls a function with the elements of the neighbourhood of one vertex."""

    def reduce(self, values: Iterator[Any]) -> Any:
        """Return the results for a vertex."""
        return self.call(values)


def only_vertex(vertices: Iterable[Any], others: Iterable[Any]) -> Vertex:
    """Return the vertex of a group. Raise an error if edges name one that is not there."""
    vertex = next(iter(vertices), None)
    if vertex is None:
        raise ProgramError(f"an edge begins or ends at a vertex that is not in the graph: {next(iter(others))!r}")
    return vertex  # type: ignore[no-any-return]


# --- groups ---
class CountOfVertex(CoGroupFunction):
    """Counts the edges of a vertex."""

    def co_group(self, first: Iterable[Any], second: Iterable[Any]) -> Iterator[tuple[Any, int]]:
        edges = list(second)
        yield only_vertex(first, edges)[0], len(edges)


class FirstIfAlone(CoGroupFunction):
    """Keeps the first element of the first side, unless the second side has its key."""

    def co_group(self, first: Iterable[Any], second: Iterable[Any]) -> Iterator[Any]:
        mine = next(iter(first), None)
        if mine is not None and next(iter(second), None) is None:
            yield mine


class FirstOfEither(CoGroupFunction):
    """Keeps the first element of the first side, or else of the second."""

    def co_group(self, first: Iterable[Any], second: Iterable[Any]) -> Iterator[Any]:
        for side in (first, second):
            for element in side:
                yield element
                return


class MatchingEdges(CoGroupFunction):
    """Keeps as many edges of each side as the other side has."""

    def co_group(self, first: Iterable[Any], second: Iterable[Any]) -> Iterator[Any]:
        for pair in zip(list(first), list(second), strict=False):
            yield from pair


class UnknownIds(CoGroupFunction):
    """Emits the ids of edges for which there is no vertex."""

    def co_group(self, first: Iterable[Any], second: Iterable[Any]) -> Iterator[Any]:
        if next(iter(first), None) is None:
            yield next(iter(second))


# --- joins and single elements ---
class FirstSide(JoinFunction):
    """Keeps the first element of a pair."""

    def join(self, first: Any, second: Any) -> Any:
        return first


class SourceOfEdge(JoinFunction):
    """Adds the value of its source to an edge."""

    def join(self, first: Any, second: Any) -> tuple[Any, ...]:
        return (*first, second[1])


class TripletOfEdge(JoinFunction):
    """Makes the triplet of an edge that has the value of its source already."""

    def join(self, first: Any, second: Any) -> Triplet:
        source, target, value, source_value = first
        return Triplet(source, target, source_value, second[1], value)


class EdgesInBothDirections(FlatMapFunction):
    """Emits an edge and its reverse."""

    def flat_map(self, value: Any) -> tuple[Edge, Edge]:
        return value, Edge(value[1], value[0], value[2])


def whole(element: Any) -> tuple[Any, ...]:
    """Return an element as the key that it is, with fields that may be None."""
    return tuple(element)


def ends_of(edge: Any) -> tuple[Any, Any]:
    """Return the ids of an edge."""
    return edge[0], edge[1]


def bare_vertex(vertex_id: Any) -> Vertex:
    """Return a vertex without a value."""
    return Vertex(vertex_id, None)


def reverse_edge(edge: Any) -> Edge:
    """Return an edge in the other direction."""
    return Edge(edge[1], edge[0], edge[2])
