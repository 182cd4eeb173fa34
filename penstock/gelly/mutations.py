"""Graphs with more or fewer elements, and combinations of two graphs. No graph changes; each method gives another."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Self

from penstock.dataset import DataSet
from penstock.dataset.plan.checks import check_type
from penstock.errors import InvalidArgument
from penstock.gelly.elements import Edge, Vertex
from penstock.gelly.graph_base import GraphBase
from penstock.gelly.transformations import Transformations
from penstock.gelly.transforming import (
    FirstIfAlone,
    FirstOfEither,
    FirstSide,
    MatchingEdges,
    bare_vertex,
    ends_of,
    whole,
)


class Mutations(Transformations):
    """The methods that add elements to a graph, or take some away."""

    # --- vertices ---
    def add_vertex(self, vertex: Vertex) -> Self:
        """Add a vertex. One with a known id changes nothing."""
        return self.add_vertices([vertex])

    def add_vertices(self, vertices: Iterable[Vertex]) -> Self:
        """Add vertices. Those with a known id change nothing."""
        new = self._env.from_collection(_checked("add_vertices", vertices, Vertex))
        both = self._vertices.co_group(new).where(0).equal_to(0)
        return self.with_data(vertices=both.with_(FirstOfEither()))

    def remove_vertex(self, vertex: Vertex) -> Self:
        """Remove the vertex with this id, and its edges."""
        return self.remove_vertices([vertex])

    def remove_vertices(self, vertices: Iterable[Vertex]) -> Self:
        """Remove the vertices with these ids, and their edges."""
        return self._without(self._env.from_collection(_checked("remove_vertices", vertices, Vertex)))

    def _without(self, removed: DataSet) -> Self:
        left = self._vertices.co_group(removed).where(0).equal_to(0).with_(FirstIfAlone())
        return self.with_vertices_alone(left)

    # --- edges ---
    def add_edge(self, source: Vertex, target: Vertex, value: Any) -> Self:
        """Add an edge and its vertices. A vertex that is there with the same value is not added again."""
        (source,) = _checked("add_edge", [source], Vertex)
        (target,) = _checked("add_edge", [target], Vertex)
        edge = Edge(source.get_id(), target.get_id(), value)
        vertices, edges = self._env.from_collection([source, target]), self._env.from_collection([edge])
        return self.union(self.with_data(vertices, edges))

    def add_edges(self, edges: Iterable[Edge]) -> Self:
        """Add edges. Those whose vertices are not in the graph are left out."""
        new = self._env.from_collection(_checked("add_edges", edges, Edge))
        valid = new.join(self._vertices).where(0).equal_to(0).with_(FirstSide())
        valid = valid.join(self._vertices).where(1).equal_to(0).with_(FirstSide())
        return self.with_data(edges=self._edges.union(valid))

    def remove_edge(self, edge: Edge) -> Self:
        """Remove all edges with this source and target, whatever their values."""
        (removed,) = _checked("remove_edge", [edge], Edge)
        ends = ends_of(removed)
        return self.with_data(edges=self._edges.filter(lambda each: ends_of(each) != ends))

    def remove_edges(self, edges: Iterable[Edge]) -> Self:
        """Remove the edges with these sources and targets. Of other parallel edges one is kept."""
        removed = self._env.from_collection(_checked("remove_edges", edges, Edge))
        left = self._edges.co_group(removed).where(0, 1).equal_to(0, 1).with_(FirstIfAlone())
        return self.with_data(edges=left)

    # --- two graphs ---
    def union(self, graph: Self) -> Self:
        """Return a graph with the vertices of both, equal ones once, and with all edges of both."""
        check_type("union", "graph", graph, GraphBase)
        vertices = self._vertices.union(graph._vertices).distinct(whole)
        return self.with_data(vertices, self._edges.union(graph._edges))

    def difference(self, graph: Self) -> Self:
        """Remove the vertices whose ids are in another graph, and their edges."""
        check_type("difference", "graph", graph, GraphBase)
        return self._without(graph._vertices)

    def intersect(self, graph: Self, distinct_edges: bool) -> Self:
        """Return the edges that are in both graphs with the same values, and their vertices, which have no values.

        Without `distinct_edges` an edge that is m times in one graph and n times in the other comes 2 * min(m, n)
        times.
        """
        check_type("intersect", "graph", graph, GraphBase)
        check_type("intersect", "distinct_edges", distinct_edges, bool)
        edges = self._edges.co_group(graph._edges).where(whole).equal_to(whole).with_(MatchingEdges())
        if distinct_edges:
            edges = edges.distinct(whole)
        return self.with_data(edges.flat_map(ends_of).distinct().map(bare_vertex), edges)


def _checked(method: str, elements: Iterable[Any], kind: type) -> list[Any]:
    """Return the elements as a list. Raise an error if one of them is not of its class."""
    if isinstance(elements, (str, bytes, DataSet, kind)) or not isinstance(elements, Iterable):
        raise InvalidArgument(f"{method} takes a list of {kind.__name__} objects, not {elements!r}")
    found = list(elements)
    for element in found:
        check_type(method, "an element", element, kind)
        if None in element[: len(element) - 1]:
            raise InvalidArgument(f"{method}: an id must not be None: {element!r}")
    return found
