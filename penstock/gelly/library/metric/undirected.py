"""Figures of undirected graphs, whose edges come in both directions."""

from __future__ import annotations

from typing import Any, NamedTuple

from penstock.dataset import DataSet
from penstock.gelly.algorithms import GraphAnalytic
from penstock.gelly.asm.degree.annotate.undirected import EdgeDegreePair, VertexDegree
from penstock.gelly.graph import Graph
from penstock.gelly.library.metric.measuring import EdgeMetricsBase, EdgeMetricsResult, ratio, triplets_of
from penstock.gelly.settings import IncludesZeroDegrees, ReducesOnTarget

__all__ = ["EdgeMetrics", "EdgeMetricsResult", "VertexMetrics", "VertexMetricsResult"]


class VertexMetricsResult(NamedTuple):
    """Figures of an undirected graph."""

    number_of_vertices: int = 0
    ends: int = 0
    """Number of ends of edges."""
    number_of_triplets: int = 0
    maximum_degree: int = 0
    maximum_triplets: int = 0

    def get_number_of_vertices(self) -> int:
        """Return the number of vertices."""
        return self.number_of_vertices

    def get_number_of_edges(self) -> int:
        """Return the number of edges. The two directions count as one."""
        return self.ends // 2

    def get_average_degree(self) -> float:
        """Return the average number of neighbours; NaN without vertices."""
        return ratio(self.ends, self.number_of_vertices)

    def get_density(self) -> float:
        """Return the share of possible edges that exist; NaN for fewer than two vertices."""
        return ratio(self.ends, self.number_of_vertices * (self.number_of_vertices - 1))

    def get_number_of_triplets(self) -> int:
        """Return the number of pairs of neighbours of a vertex."""
        return self.number_of_triplets

    def get_maximum_degree(self) -> int:
        """Return the greatest number of neighbours."""
        return self.maximum_degree

    def get_maximum_triplets(self) -> int:
        """Return the greatest number of pairs of neighbours of a vertex."""
        return self.maximum_triplets


class VertexMetrics(IncludesZeroDegrees, ReducesOnTarget, GraphAnalytic):
    """Counts the vertices and edges of a graph."""

    def prepare(self, graph: Graph) -> DataSet:
        degrees = VertexDegree().set_include_zero_degree_vertices(self.include_zero_degree_vertices)
        annotated: DataSet = graph.run(degrees.set_reduce_on_target_id(self.reduce_on_target_id))
        return annotated.map(metrics_of).reduce(add_metrics)

    def summarize(self, parts: list[Any]) -> VertexMetricsResult:
        return parts[0] if parts else VertexMetricsResult()


def metrics_of(vertex: Any) -> VertexMetricsResult:
    """Return the figures of one vertex."""
    degree = vertex[1]
    return VertexMetricsResult(1, degree, triplets_of(degree), degree, triplets_of(degree))


def add_metrics(one: Any, other: Any) -> VertexMetricsResult:
    """Return the figures of two sets of vertices together."""
    sums = (mine + theirs for mine, theirs in zip(one[:3], other[:3], strict=True))
    return VertexMetricsResult(*sums, *map(max, one[3:], other[3:]))


class EdgeMetrics(ReducesOnTarget, EdgeMetricsBase):
    """Counts pairs of edges by the ranks of vertices."""

    def prepare(self, graph: Graph) -> DataSet:
        edges = graph.run(EdgeDegreePair().set_reduce_on_target_id(self.reduce_on_target_id))
        return self.count(edges.map(lambda edge: (edge[0], edge[1], edge[2][1], edge[2][2])))
