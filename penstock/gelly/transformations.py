"""Transformations of graphs: each gives another graph."""

from __future__ import annotations

from typing import Any, Self

from penstock.dataset import DataSet
from penstock.dataset.plan.checks import check_function, check_type
from penstock.gelly.graph_base import GraphBase
from penstock.gelly.transforming import (
    EdgesInBothDirections,
    EdgeValues,
    FirstSide,
    JoinedValues,
    TranslatedEdgeIds,
    TranslatedEdgeValues,
    TranslatedVertexIds,
    TranslatedVertexValues,
    ValuesJoinedOnOneEnd,
    VertexValues,
    reverse_edge,
)


class Transformations(GraphBase):
    """The transformations of a graph."""

    # --- values and ids ---
    def map_vertices(self, mapper: Any) -> Self:
        """Replace the value of each vertex by what a function of the vertex returns."""
        check_function("map_vertices", mapper, "map")
        return self.with_data(vertices=self._vertices.map(VertexValues(mapper, "map")))

    def map_edges(self, mapper: Any) -> Self:
        """Replace the value of each edge by what a function of the edge returns."""
        check_function("map_edges", mapper, "map")
        return self.with_data(edges=self._edges.map(EdgeValues(mapper, "map")))

    def translate_graph_ids(self, translator: Any) -> Self:
        """Replace the ids of vertices and edges by what a function of the id returns. Nothing is merged."""
        check_function("translate_graph_ids", translator, "translate")
        return self.with_data(
            self._vertices.map(TranslatedVertexIds(translator, "translate")),
            self._edges.map(TranslatedEdgeIds(translator, "translate")),
        )

    def translate_vertex_values(self, translator: Any) -> Self:
        """Replace the value of each vertex by what a function of the value returns."""
        check_function("translate_vertex_values", translator, "translate")
        return self.with_data(vertices=self._vertices.map(TranslatedVertexValues(translator, "translate")))

    def translate_edge_values(self, translator: Any) -> Self:
        """Replace the value of each edge by what a function of the value returns."""
        check_function("translate_edge_values", translator, "translate")
        return self.with_data(edges=self._edges.map(TranslatedEdgeValues(translator, "translate")))

    # --- parts ---
    def filter_on_vertices(self, predicate: Any) -> Self:
        """Keep the vertices for which a function returns true, and the edges between them."""
        check_function("filter_on_vertices", predicate, "filter")
        return self.with_vertices_alone(self._vertices.filter(predicate))

    def filter_on_edges(self, predicate: Any) -> Self:
        """Keep all vertices, and the edges for which a function returns true."""
        check_function("filter_on_edges", predicate, "filter")
        return self.with_data(edges=self._edges.filter(predicate))

    def subgraph(self, vertex_predicate: Any, edge_predicate: Any) -> Self:
        """Keep the vertices for which one function returns true, and of the edges between them those of another."""
        return self.filter_on_vertices(vertex_predicate).filter_on_edges(edge_predicate)

    def with_vertices_alone(self, vertices: DataSet) -> Self:
        """Return the graph of some of its vertices, with the edges between them."""
        edges = self._edges.join(vertices).where(0).equal_to(0).with_(FirstSide())
        return self.with_data(vertices, edges.join(vertices).where(1).equal_to(0).with_(FirstSide()))

    # --- values from data sets ---
    def join_with_vertices(self, data: DataSet, function: Any) -> Self:
        """Combine the values of vertices with those of tuples (id, value): function(own value, joined value)."""
        check_type("join_with_vertices", "data", data, DataSet)
        check_function("join_with_vertices", function, "vertex_join")
        pairs = self._vertices.co_group(data).where(0).equal_to(0)
        return self.with_data(vertices=pairs.with_(JoinedValues(function, "vertex_join")))

    def join_with_edges(self, data: DataSet, function: Any) -> Self:
        """Combine the values of edges with those of tuples (source, target, value). Of parallel edges one is kept."""
        check_type("join_with_edges", "data", data, DataSet)
        check_function("join_with_edges", function, "edge_join")
        pairs = self._edges.co_group(data).where(0, 1).equal_to(0, 1)
        return self.with_data(edges=pairs.with_(JoinedValues(function, "edge_join")))

    def join_with_edges_on_source(self, data: DataSet, function: Any) -> Self:
        """Combine the values of edges with those of tuples (id of the source, value)."""
        return self._join_on_end("join_with_edges_on_source", 0, data, function)

    def join_with_edges_on_target(self, data: DataSet, function: Any) -> Self:
        """Combine the values of edges with those of tuples (id of the target, value)."""
        return self._join_on_end("join_with_edges_on_target", 1, data, function)

    def _join_on_end(self, method: str, end: int, data: DataSet, function: Any) -> Self:
        check_type(method, "data", data, DataSet)
        check_function(method, function, "edge_join")
        pairs = self._edges.co_group(data).where(end).equal_to(0)
        return self.with_data(edges=pairs.with_(ValuesJoinedOnOneEnd(function, "edge_join")))

    # --- directions ---
    def reverse(self) -> Self:
        """Turn all edges round."""
        return self.with_data(edges=self._edges.map(reverse_edge))

    def get_undirected(self) -> Self:
        """Add the reverse of every edge."""
        return self.with_data(edges=self._edges.flat_map(EdgesInBothDirections()))
