"""Bipartite graphs: vertices of two kinds, top and bottom, with edges from one kind to the other."""

from __future__ import annotations

from typing import Any, NamedTuple

from penstock.dataset import DataSet, ExecutionEnvironment
from penstock.dataset.functions import FlatJoinFunction
from penstock.dataset.plan.checks import check_type
from penstock.errors import TypeMismatch, UnsupportedKey
from penstock.gelly.elements import Edge
from penstock.gelly.graph import Graph
from penstock.gelly.graph_base import vertices_of
from penstock.gelly.transforming import SourceOfEdge

__all__ = ["BipartiteEdge", "BipartiteGraph", "Projection"]


class BipartiteEdge(NamedTuple):
    """An edge from a top vertex to a bottom vertex."""

    top_id: Any
    bottom_id: Any
    value: Any

    def get_top_id(self) -> Any:
        """Return the id of the top vertex."""
        return self[0]

    def get_bottom_id(self) -> Any:
        """Return the id of the bottom vertex."""
        return self[1]

    def get_value(self) -> Any:
        """Return the value."""
        return self[2]


class Projection(NamedTuple):
    """The vertex that connects two others, with all values on the way."""

    intermediate_vertex_id: Any
    intermediate_vertex_value: Any
    source_vertex_value: Any
    target_vertex_value: Any
    source_edge_value: Any
    target_edge_value: Any

    def get_intermediate_vertex_id(self) -> Any:
        """Return the id of the connecting vertex."""
        return self[0]

    def get_intermediate_vertex_value(self) -> Any:
        """Return the value of the connecting vertex."""
        return self[1]

    def get_source_vertex_value(self) -> Any:
        """Return the value of the source."""
        return self[2]

    def get_target_vertex_value(self) -> Any:
        """Return the value of the target."""
        return self[3]

    def get_source_edge_value(self) -> Any:
        """Return the value of the edge of the source."""
        return self[4]

    def get_target_edge_value(self) -> Any:
        """Return the value of the edge of the target."""
        return self[5]


TOP, BOTTOM = 0, 1


class BipartiteGraph:
    """Top vertices, bottom vertices, and edges between them."""

    def __init__(self, top: DataSet, bottom: DataSet, edges: DataSet, env: ExecutionEnvironment) -> None:
        self._vertices = top, bottom
        self._edges = edges
        self._env = env

    @staticmethod
    def from_dataset(
        top_vertices: DataSet, bottom_vertices: DataSet, edges: DataSet, env: ExecutionEnvironment
    ) -> BipartiteGraph:
        """Return a graph of data sets. The elements are Vertex and BipartiteEdge objects, or such tuples."""
        for name, data in (("top_vertices", top_vertices), ("bottom_vertices", bottom_vertices), ("edges", edges)):
            check_type("from_dataset", name, data, DataSet)
        check_type("from_dataset", "env", env, ExecutionEnvironment)
        return BipartiteGraph(
            vertices_of(top_vertices), vertices_of(bottom_vertices), edges.map(as_bipartite_edge).name("Edges"), env
        )

    def get_top_vertices(self) -> DataSet:
        """Return the top vertices."""
        return self._vertices[TOP]

    def get_bottom_vertices(self) -> DataSet:
        """Return the bottom vertices."""
        return self._vertices[BOTTOM]

    def get_edges(self) -> DataSet:
        """Return the edges."""
        return self._edges

    # --- projections ---
    def projection_top_simple(self) -> Graph:
        """Connect top vertices with a common bottom vertex. The values of edges are pairs of values of edges."""
        return self._simple(TOP)

    def projection_bottom_simple(self) -> Graph:
        """Connect bottom vertices with a common top vertex. The values of edges are pairs of values of edges."""
        return self._simple(BOTTOM)

    def projection_top_full(self) -> Graph:
        """Connect top vertices with a common bottom vertex. The values of edges are Projection objects."""
        return self._full(TOP)

    def projection_bottom_full(self) -> Graph:
        """Connect bottom vertices with a common top vertex. The values of edges are Projection objects."""
        return self._full(BOTTOM)

    def _simple(self, side: int) -> Graph:
        other = 1 - side
        edges = self._edges.join(self._edges).where(other).equal_to(other).with_(SimplePair(side))
        return Graph(self._vertices[side], edges, self._env)

    def _full(self, side: int) -> Graph:
        other = 1 - side
        edges = self._edges
        for end in (TOP, BOTTOM):
            edges = edges.join(self._vertices[end]).where(end).equal_to(0).with_(SourceOfEdge())
        pairs = edges.join(edges).where(other).equal_to(other).with_(FullPair(side))
        return Graph(self._vertices[side], pairs, self._env)


def as_bipartite_edge(value: Any) -> BipartiteEdge:
    """Return an edge that was given as a BipartiteEdge or as a tuple. Raise an error if it is neither."""
    if type(value) is not BipartiteEdge:
        if not isinstance(value, tuple) or len(value) != 3:
            raise TypeMismatch(f"an edge is a BipartiteEdge(top, bottom, value) or such a tuple, not {value!r}")
        value = BipartiteEdge(*value)
    if value[0] is None or value[1] is None:
        raise UnsupportedKey(f"an id of {value!r} is None")
    return value  # type: ignore[no-any-return]


class SimplePair(FlatJoinFunction):
    """Connects two vertices of one side, given an edge of each."""

    def __init__(self, side: int) -> None:
        self.side = side

    def join(self, first: Any, second: Any) -> list[Edge]:
        source, target = first[self.side], second[self.side]
        return [Edge(source, target, (first[2], second[2]))] if source != target else []


class FullPair(SimplePair):
    """Connects two vertices of one side, given an edge of each: (top, bottom, value, top value, bottom value)."""

    def join(self, first: Any, second: Any) -> list[Edge]:
        source, target = first[self.side], second[self.side]
        if source == target:
            return []
        middle, own = 1 - self.side, 3 + self.side
        values = first[own], second[own], first[2], second[2]
        return [Edge(source, target, Projection(first[middle], first[4 - self.side], *values))]
