"""Degrees in undirected graphs, whose edges come in both directions."""

from __future__ import annotations

from penstock.dataset import DataSet
from penstock.gelly.algorithms import GraphAlgorithm
from penstock.gelly.asm.degree.annotate.annotating import annotate_edges, count_ends, with_all_vertices, with_tuples
from penstock.gelly.graph import Graph
from penstock.gelly.settings import IncludesZeroDegrees, ReducesOnTarget

__all__ = ["EdgeDegreePair", "EdgeSourceDegree", "EdgeTargetDegree", "VertexDegree"]


class VertexDegree(IncludesZeroDegrees, ReducesOnTarget, GraphAlgorithm):
    """Counts the edges of each vertex."""

    def run(self, graph: Graph) -> DataSet:
        """Return vertices whose values are numbers of edges."""
        degrees = count_ends(graph, self.end)
        return with_all_vertices(graph, degrees, 0) if self.include_zero_degree_vertices else degrees


class EdgeSourceDegree(ReducesOnTarget, GraphAlgorithm):
    """Adds the degree of its source to each edge."""

    def run(self, graph: Graph) -> DataSet:
        """Return edges whose values are (value, degree of the source)."""
        return annotate_edges(with_tuples(graph), count_ends(graph, self.end), 0)


class EdgeTargetDegree(ReducesOnTarget, GraphAlgorithm):
    """Adds the degree of its target to each edge."""

    def run(self, graph: Graph) -> DataSet:
        """Return edges whose values are (value, degree of the target)."""
        return annotate_edges(with_tuples(graph), count_ends(graph, self.end), 1)


class EdgeDegreePair(ReducesOnTarget, GraphAlgorithm):
    """Adds the degrees of its source and its target to each edge."""

    def run(self, graph: Graph) -> DataSet:
        """Return edges whose values are (value, degree of the source, degree of the target)."""
        degrees = count_ends(graph, self.end)
        return annotate_edges(annotate_edges(with_tuples(graph), degrees, 0), degrees, 1)
