"""Functions on the edges and the neighbours of each vertex."""

from __future__ import annotations

import inspect
from typing import Any

from penstock.dataset import DataSet
from penstock.dataset.plan.checks import check_function, check_type
from penstock.errors import InvalidArgument
from penstock.gelly.elements import EdgeDirection
from penstock.gelly.functions import (
    EdgesFunction,
    EdgesFunctionWithVertexValue,
    NeighborsFunction,
    NeighborsFunctionWithVertexValue,
)
from penstock.gelly.graph_base import ENDS, GraphBase, other_end
from penstock.gelly.transforming import ReducedPairs, WithoutVertex, WithVertex


class Neighborhoods(GraphBase):
    """The methods that look at the surroundings of each vertex."""

    def reduce_on_edges(self, function: Any, direction: EdgeDirection) -> DataSet:
        """Combine the values of the edges of each vertex, two at a time. Return (id, value) for those with edges."""
        check_function("reduce_on_edges", function, "reduce_edges")
        edges = self._edges_by_vertex("reduce_on_edges", direction)
        values = edges.map(lambda pair: (pair[0], pair[1][2]))
        return values.group_by(0).reduce(ReducedPairs(function, "reduce_edges"))

    def reduce_on_neighbors(self, function: Any, direction: EdgeDirection) -> DataSet:
        """Combine the values of the neighbours of each vertex, two at a time. Return (id, value) if there are some."""
        check_function("reduce_on_neighbors", function, "reduce_neighbors")
        neighbors = self._neighbors_by_vertex("reduce_on_neighbors", direction)
        values = neighbors.map(lambda triple: (triple[0], triple[2][1]))
        return values.group_by(0).reduce(ReducedPairs(function, "reduce_neighbors"))

    def group_reduce_on_edges(self, function: Any, direction: EdgeDirection) -> DataSet:
        """Turn the edges of each vertex into any number of results.

        A function of one argument gets pairs (id, edge) of a vertex that has edges. A function of two gets a vertex and
        its edges, of which there may be none.
        """
        method, edges = "group_reduce_on_edges", self._edges_by_vertex("group_reduce_on_edges", direction)
        with_vertex = _takes_vertex(method, function, "iterate_edges", EdgesFunction, EdgesFunctionWithVertexValue)
        return self._group_reduce(edges, function, "iterate_edges", with_vertex)

    def group_reduce_on_neighbors(self, function: Any, direction: EdgeDirection) -> DataSet:
        """Turn the neighbours of each vertex into any number of results.

        A function of one argument gets triples (id, edge, neighbour) of a vertex that has neighbours. A function of two
        gets a vertex and pairs (edge, neighbour), of which there may be none.
        """
        method = "group_reduce_on_neighbors"
        neighbors = self._neighbors_by_vertex(method, direction)
        kinds = NeighborsFunction, NeighborsFunctionWithVertexValue
        with_vertex = _takes_vertex(method, function, "iterate_neighbors", *kinds)
        return self._group_reduce(neighbors, function, "iterate_neighbors", with_vertex)

    def _group_reduce(self, data: DataSet, function: Any, method: str, with_vertex: bool) -> DataSet:
        if with_vertex:
            results: DataSet = self._vertices.co_group(data).where(0).equal_to(0).with_(WithVertex(function, method))
            return results
        return data.group_by(0).reduce_group(WithoutVertex(function, method))

    def _edges_by_vertex(self, method: str, direction: EdgeDirection) -> DataSet:
        """Return pairs (id of the vertex, edge). With ALL an edge comes twice."""
        return _union([self._edges.map(lambda edge, end=end: (edge[end], edge)) for end in _ends(method, direction)])

    def _neighbors_by_vertex(self, method: str, direction: EdgeDirection) -> DataSet:
        """Return triples (id of the vertex, edge, neighbour). Neighbours that are not in the graph are left out."""
        parts = []
        for end in _ends(method, direction):
            pairs = self._edges.join(self._vertices).where(other_end(end)).equal_to(0)
            parts.append(pairs.with_(lambda edge, vertex, end=end: (edge[end], edge, vertex)))
        return _union(parts)


def _ends(method: str, direction: EdgeDirection) -> list[int]:
    check_type(method, "direction", direction, EdgeDirection)
    return [ENDS[direction]] if direction in ENDS else [0, 1]


def _union(parts: list[DataSet]) -> DataSet:
    return parts[0] if len(parts) == 1 else parts[0].union(parts[1])


def _takes_vertex(method: str, function: Any, name: str, without: type, with_it: type) -> bool:
    """Return True if a function takes the vertex and its neighbourhood, and not the neighbourhood alone."""
    check_function(method, function, name)
    if isinstance(function, (without, with_it)):
        return isinstance(function, with_it)
    try:
        signature = inspect.signature(getattr(function, name, function))
    except (TypeError, ValueError):
        return False
    for count in (1, 2):
        try:
            signature.bind(*range(count))
        except TypeError:
            continue
        return count == 2
    raise InvalidArgument(f"{method} takes a function of one or two arguments, not {function!r}")
