"""Figures of directed graphs without loops and parallel edges."""

from __future__ import annotations

from typing import Any, NamedTuple

from penstock.dataset import DataSet
from penstock.gelly.algorithms import GraphAnalytic
from penstock.gelly.asm.degree.annotate.directed import EdgeDegreesPair, VertexDegrees
from penstock.gelly.graph import Graph
from penstock.gelly.library.metric.measuring import EdgeMetricsBase, EdgeMetricsResult, ratio, triplets_of
from penstock.gelly.settings import IncludesZeroDegrees

__all__ = ["EdgeMetrics", "EdgeMetricsResult", "VertexMetrics", "VertexMetricsResult"]


class VertexMetricsResult(NamedTuple):
    """Figures of a directed graph."""

    number_of_vertices: int = 0
    one_way_ends: int = 0
    """Number of ends of edges without an opposite one."""
    two_way_ends: int = 0
    """Number of ends of pairs of opposite edges."""
    number_of_triplets: int = 0
    maximum_degree: int = 0
    maximum_out_degree: int = 0
    maximum_in_degree: int = 0
    maximum_triplets: int = 0

    def get_number_of_vertices(self) -> int:
        """Return the number of vertices."""
        return self.number_of_vertices

    def get_number_of_edges(self) -> int:
        """Return the number of edges. Two opposite ones count as two."""
        return self.get_number_of_directed_edges() + 2 * self.get_number_of_undirected_edges()

    def get_number_of_directed_edges(self) -> int:
        """Return the number of edges without an opposite one."""
        return self.one_way_ends // 2

    def get_number_of_undirected_edges(self) -> int:
        """Return the number of pairs of opposite edges."""
        return self.two_way_ends // 2

    def get_average_degree(self) -> float:
        """Return the number of edges for each vertex; NaN without vertices."""
        return ratio(self.get_number_of_edges(), self.number_of_vertices)

    def get_density(self) -> float:
        """Return the share of possible edges that exist; NaN for fewer than two vertices."""
        return ratio(self.get_number_of_edges(), self.number_of_vertices * (self.number_of_vertices - 1))

    def get_number_of_triplets(self) -> int:
        """Return the number of pairs of neighbours of a vertex."""
        return self.number_of_triplets

    def get_maximum_degree(self) -> int:
        """Return the greatest number of neighbours."""
        return self.maximum_degree

    def get_maximum_out_degree(self) -> int:
        """Return the greatest number of neighbours that edges lead to."""
        return self.maximum_out_degree

    def get_maximum_in_degree(self) -> int:
        """Return the greatest number of neighbours that edges come from."""
        return self.maximum_in_degree

    def get_maximum_triplets(self) -> int:
        """Return the greatest number of pairs of neighbours of a vertex."""
        return self.maximum_triplets


class VertexMetrics(IncludesZeroDegrees, GraphAnalytic):
    """Counts the vertices and edges of a graph."""

    def prepare(self, graph: Graph) -> DataSet:
        degrees = VertexDegrees().set_include_zero_degree_vertices(self.include_zero_degree_vertices)
        annotated: DataSet = graph.run(degrees)
        return annotated.map(metrics_of).reduce(add_metrics)

    def summarize(self, parts: list[Any]) -> VertexMetricsResult:
        return parts[0] if parts else VertexMetricsResult()


def metrics_of(vertex: Any) -> VertexMetricsResult:
    """Return the figures of one vertex."""
    degree, out, into = vertex[1]
    two_way = out + into - degree
    triplets = triplets_of(degree)
    return VertexMetricsResult(1, degree - two_way, two_way, triplets, degree, out, into, triplets)


def add_metrics(one: Any, other: Any) -> VertexMetricsResult:
    """Return the figures of two sets of vertices together."""
    sums = (mine + theirs for mine, theirs in zip(one[:4], other[:4], strict=True))
    return VertexMetricsResult(*sums, *map(max, one[4:], other[4:]))


class EdgeMetrics(EdgeMetricsBase):
    """Counts pairs of edges by the ranks of vertices."""

    def prepare(self, graph: Graph) -> DataSet:
        edges = graph.run(EdgeDegreesPair())
        ends = edges.flat_map(
            lambda edge: (
                (edge[0], edge[1], edge[2][1][0], edge[2][2][0]),
                (edge[1], edge[0], edge[2][2][0], edge[2][1][0]),
            )
        )
        return self.count(ends)
