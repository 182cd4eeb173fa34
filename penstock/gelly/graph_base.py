"""The base of Graph: its two data sets, and what can be asked of them."""

from __future__ import annotations

from typing import Any, Self

from penstock.dataset import DataSet, ExecutionEnvironment
from penstock.gelly.elements import EdgeDirection, as_edge, as_vertex
from penstock.gelly.transforming import CountOfVertex, SourceOfEdge, TripletOfEdge, ends_of


class GraphBase:
    """A data set of vertices, and one of edges."""

    def __init__(self, vertices: DataSet, edges: DataSet, env: ExecutionEnvironment) -> None:
        self._vertices = vertices
        self._edges = edges
        self._env = env

    def with_data(self, vertices: DataSet | None = None, edges: DataSet | None = None) -> Self:
        """Return a graph with other vertices or other edges. They are Vertex and Edge objects."""
        return type(self)(
            self._vertices if vertices is None else vertices, self._edges if edges is None else edges, self._env
        )

    def get_context(self) -> ExecutionEnvironment:
        """Return the environment that the graph belongs to."""
        return self._env

    def get_vertices(self) -> DataSet:
        """Return the vertices."""
        return self._vertices

    def get_edges(self) -> DataSet:
        """Return the edges."""
        return self._edges

    def get_vertices_as_tuple2(self) -> DataSet:
        """Return the vertices as plain tuples (id, value)."""
        return self._vertices.map(tuple)

    def get_edges_as_tuple3(self) -> DataSet:
        """Return the edges as plain tuples (source, target, value)."""
        return self._edges.map(tuple)

    def get_vertex_ids(self) -> DataSet:
        """Return the ids of the vertices."""
        return self._vertices.map(lambda vertex: vertex[0])

    def get_edge_ids(self) -> DataSet:
        """Return the ids of the edges, as tuples (source, target)."""
        return self._edges.map(ends_of)

    def get_triplets(self) -> DataSet:
        """Return the edges with their vertices. Edges to vertices that are not in the graph are left out."""
        with_source = self._edges.join(self._vertices).where(0).equal_to(0).with_(SourceOfEdge())
        triplets: DataSet = with_source.join(self._vertices).where(1).equal_to(0).with_(TripletOfEdge())
        return triplets

    def number_of_vertices(self) -> int:
        """Run a job, and return the number of vertices."""
        return self._vertices.count()

    def number_of_edges(self) -> int:
        """Run a job, and return the number of edges."""
        return self._edges.count()

    # --- degrees ---
    def in_degrees(self) -> DataSet:
        """Return (id, number of edges that end there) for every vertex."""
        return self._degrees(1)

    def out_degrees(self) -> DataSet:
        """Return (id, number of edges that begin there) for every vertex."""
        return self._degrees(0)

    def get_degrees(self) -> DataSet:
        """Return (id, number of edges) for every vertex. A loop counts twice."""
        return self.out_degrees().union(self.in_degrees()).group_by(0).sum(1)

    def _degrees(self, end: int) -> DataSet:
        degrees: DataSet = self._vertices.co_group(self._edges).where(0).equal_to(end).with_(CountOfVertex())
        return degrees


def vertices_of(data: DataSet) -> DataSet:
    """Return a set of Vertex objects, given those or tuples."""
    return data.map(as_vertex).name("Vertices")


def edges_of(data: DataSet) -> DataSet:
    """Return a set of Edge objects, given those or tuples."""
    return data.map(as_edge).name("Edges")


ENDS = {EdgeDirection.IN: 1, EdgeDirection.OUT: 0}
"""Position, within an edge, of the vertex whose edges are meant."""


def other_end(position: int) -> int:
    """Return the position of the other id of an edge."""
    return 1 - position


def is_function(value: Any) -> bool:
    """Return True if an argument is an initializer of vertices, and not edges or an environment."""
    return callable(value) or (callable(getattr(value, "map", None)) and not isinstance(value, DataSet))
