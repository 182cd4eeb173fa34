"""Filters by degrees in undirected graphs."""

from __future__ import annotations

from typing import Self

from penstock.dataset.plan.checks import check_count, check_type
from penstock.gelly.algorithms import GraphAlgorithm
from penstock.gelly.asm.degree.annotate.undirected import VertexDegree
from penstock.gelly.graph import Graph
from penstock.gelly.settings import ReducesOnTarget
from penstock.gelly.transforming import FirstIfAlone

__all__ = ["MaximumDegree"]


class MaximumDegree(ReducesOnTarget, GraphAlgorithm):
    """Removes the vertices with too many edges, and their edges."""

    def __init__(self, maximum_degree: int) -> None:
        check_count("MaximumDegree", "maximum_degree", maximum_degree)
        self.maximum_degree = maximum_degree

    def set_broadcast_high_degree_vertices(self, broadcast: bool) -> Self:
        """Accept a setting that has no effect here."""
        check_type("set_broadcast_high_degree_vertices", "broadcast", broadcast, bool)
        return self

    def run(self, graph: Graph) -> Graph:
        """Return the graph of the other vertices."""
        maximum = self.maximum_degree
        degrees = graph.run(VertexDegree().set_reduce_on_target_id(self.reduce_on_target_id))
        high = degrees.filter(lambda vertex: vertex[1] > maximum)
        vertices = graph.get_vertices().co_group(high).where(0).equal_to(0).with_(FirstIfAlone())
        return graph.with_vertices_alone(vertices)
