"""Functions that add degrees to the values of vertices and edges."""

from __future__ import annotations

from typing import Any

from penstock.dataset import DataSet
from penstock.gelly.elements import Edge, Vertex
from penstock.gelly.graph import Graph


def count_ends(graph: Graph, end: int) -> DataSet:
    """Return a Vertex with the number of its edges for each vertex at one end of edges."""
    ones = graph.get_edges().map(lambda edge: (edge[end], 1))
    return ones.group_by(0).sum(1).map(lambda pair: Vertex(*pair))


def with_all_vertices(graph: Graph, degrees: DataSet, zero: Any) -> DataSet:
    """Return a Vertex with a degree for each vertex of a graph, which is `zero` where there is none yet."""
    joined = graph.get_vertices().left_outer_join(degrees).where(0).equal_to(0)
    vertices: DataSet = joined.with_(lambda vertex, found: Vertex(vertex[0], zero if found is None else found[1]))
    return vertices


def annotate_edges(edges: DataSet, degrees: DataSet, end: int) -> DataSet:
    """Add the degree of the vertex at one end to the value of each edge, which is a tuple already."""
    joined = edges.join(degrees).where(end).equal_to(0)
    annotated: DataSet = joined.with_(lambda edge, vertex: Edge(edge[0], edge[1], (*edge[2], vertex[1])))
    return annotated


def with_tuples(graph: Graph) -> DataSet:
    """Return the edges, with their values in tuples."""
    return graph.get_edges().map(lambda edge: Edge(edge[0], edge[1], (edge[2],)))
