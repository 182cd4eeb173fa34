"""Degrees in directed graphs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from penstock.dataset import DataSet
from penstock.gelly.algorithms import GraphAlgorithm
from penstock.gelly.asm.degree.annotate.annotating import annotate_edges, count_ends, with_all_vertices, with_tuples
from penstock.gelly.elements import Vertex
from penstock.gelly.graph import Graph
from penstock.gelly.settings import IncludesZeroDegrees

__all__ = [
    "Degrees",
    "EdgeDegreesPair",
    "EdgeSourceDegrees",
    "EdgeTargetDegrees",
    "VertexDegrees",
    "VertexInDegree",
    "VertexOutDegree",
]
_OUT, _IN = 1, 2


class Degrees(NamedTuple):
    """The degrees of a vertex. Parallel edges count once."""

    degree: int
    """Number of neighbours."""
    out_degree: int
    in_degree: int

    def get_degree(self) -> int:
        """Return the number of neighbours."""
        return self[0]

    def get_out_degree(self) -> int:
        """Return the number of neighbours that edges lead to."""
        return self[1]

    def get_in_degree(self) -> int:
        """Return the number of neighbours that edges come from."""
        return self[2]


class VertexDegrees(IncludesZeroDegrees, GraphAlgorithm):
    """Computes the degrees of vertices."""

    def run(self, graph: Graph) -> DataSet:
        """Return vertices whose values are Degrees: (degree, out-degree, in-degree)."""
        ends = graph.get_edges().flat_map(lambda edge: ((edge[0], edge[1], _OUT), (edge[1], edge[0], _IN)))
        degrees = ends.group_by(0).reduce_group(count_directions)
        if not self.include_zero_degree_vertices:
            return degrees
        return with_all_vertices(graph, degrees, Degrees(0, 0, 0))


def count_directions(ends: Iterable[tuple[Any, Any, int]]) -> Iterator[Vertex]:
    """Yield the vertex of some edges with its degrees."""
    directions: dict[Any, int] = {}
    found_ends = list(ends)
    for _, neighbor, direction in found_ends:
        directions[neighbor] = directions.get(neighbor, 0) | direction
    out = sum(1 for found in directions.values() if found & _OUT)
    into = sum(1 for found in directions.values() if found & _IN)
    yield Vertex(found_ends[0][0], Degrees(len(directions), out, into))


class VertexInDegree(IncludesZeroDegrees, GraphAlgorithm):
    """Counts the edges that end at each vertex."""

    def run(self, graph: Graph) -> DataSet:
        """Return vertices whose values are numbers of edges."""
        degrees = count_ends(graph, 1)
        return with_all_vertices(graph, degrees, 0) if self.include_zero_degree_vertices else degrees


class VertexOutDegree(IncludesZeroDegrees, GraphAlgorithm):
    """Counts the edges that begin at each vertex."""

    def run(self, graph: Graph) -> DataSet:
        """Return vertices whose values are numbers of edges."""
        degrees = count_ends(graph, 0)
        return with_all_vertices(graph, degrees, 0) if self.include_zero_degree_vertices else degrees


class EdgeSourceDegrees(GraphAlgorithm):
    """Adds the degrees of their sources to edges."""

    def run(self, graph: Graph) -> DataSet:
        """Return edges whose values are (value, degrees of the source)."""
        return annotate_edges(with_tuples(graph), graph.run(VertexDegrees()), 0)


class EdgeTargetDegrees(GraphAlgorithm):
    """Adds the degrees of their targets to edges."""

    def run(self, graph: Graph) -> DataSet:
        """Return edges whose values are (value, degrees of the target)."""
        return annotate_edges(with_tuples(graph), graph.run(VertexDegrees()), 1)


class EdgeDegreesPair(GraphAlgorithm):
    """Adds the degrees of their sources and targets to edges."""

    def run(self, graph: Graph) -> DataSet:
        """Return edges whose values are (value, degrees of the source, degrees of the target)."""
        degrees = graph.run(VertexDegrees())
        return annotate_edges(annotate_edges(with_tuples(graph), degrees, 0), degrees, 1)
