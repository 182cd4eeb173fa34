"""A smaller graph, in which vertices and edges with equal values are one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

from penstock.gelly.algorithms import GraphAlgorithm
from penstock.gelly.elements import Edge, Vertex
from penstock.gelly.graph import Graph


class Summarization(GraphAlgorithm):
    """Turns vertices with equal values into one, and edges with equal values between the same two vertices."""

    def run(self, graph: Graph) -> Graph:
        """Return the graph: vertex values are (value, number of vertices), edge values (value, number of edges)."""
        members = graph.get_vertices().group_by(lambda vertex: (vertex[1],)).reduce_group(members_of)
        vertices = members.filter(lambda member: member[0] == member[1][0]).map(lambda member: member[1])
        edges = graph.get_edges()
        for end in (0, 1):
            edges = edges.join(members).where(end).equal_to(0).with_(MoveEnd(end))
        counted = edges.group_by(tuple).reduce_group(count_edges)
        return graph.with_data(vertices, counted)


def members_of(vertices: Iterable[Any]) -> Iterator[tuple[Any, Vertex]]:
    """Yield the id of each vertex of a group, with the vertex that stands for the group: it has the least id."""
    group = list(vertices)
    ids = [vertex[0] for vertex in group]
    representative = Vertex(min(ids), (group[0][1], len(group)))
    for vertex_id in ids:
        yield vertex_id, representative


class MoveEnd:
    """Replaces one end of an edge by the vertex that stands for its group."""

    def __init__(self, end: int) -> None:
        self.end = end

    def __call__(self, edge: Any, member: Any) -> Edge:
        group = member[1][0]
        return Edge(group, edge[1], edge[2]) if self.end == 0 else Edge(edge[0], group, edge[2])


def count_edges(edges: Iterable[Any]) -> Iterator[Edge]:
    """Yield an edge with its value and the number of edges that it stands for."""
    for (source, target, value), count in Counter(map(tuple, edges)).items():
        yield Edge(source, target, (value, count))
