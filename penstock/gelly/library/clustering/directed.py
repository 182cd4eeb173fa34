"""Clustering in directed graphs without loops and parallel edges."""

from __future__ import annotations

from typing import Any, NamedTuple

from penstock.dataset import DataSet
from penstock.gelly.algorithms import GraphAnalytic
from penstock.gelly.columns.triangles import CountOfGraph
from penstock.gelly.graph import Graph
from penstock.gelly.library.clustering.census import TriadCounts, count_triads
from penstock.gelly.library.clustering.enumerating import (
    AverageClusteringCoefficientBase,
    GlobalClusteringCoefficientBase,
    LocalClusteringCoefficientBase,
    TriangleListingBase,
    run_triangles,
)

__all__ = [
    "AverageClusteringCoefficient",
    "GlobalClusteringCoefficient",
    "LocalClusteringCoefficient",
    "TriadicCensus",
    "TriangleListing",
    "TriangleListingResult",
]


class TriangleListingResult(NamedTuple):
    """A triangle."""

    vertex_id0: Any
    vertex_id1: Any
    vertex_id2: Any
    bitmask: int

    def get_vertex_id0(self) -> Any:
        """Return the id of the first vertex."""
        return self[0]

    def get_vertex_id1(self) -> Any:
        """Return the id of the second vertex."""
        return self[1]

    def get_vertex_id2(self) -> Any:
        """Return the id of the third vertex."""
        return self[2]

    def get_bitmask(self) -> int:
        """Return six bits.

        Two each are for the vertices 0 and 1, 0 and 2, 1 and 2: the higher bit says that there is an edge from the
        first to the second, the lower one that there is an edge the other way.
        """
        return self[3]


class TriangleListing(TriangleListingBase):
    """Lists the triangles of a graph, with the directions of their edges."""

    def run(self, graph: Graph) -> DataSet:
        """Return a TriangleListingResult for each triangle."""
        return self.list_triangles(graph).map(lambda found: TriangleListingResult(*found))


class LocalClusteringCoefficient(LocalClusteringCoefficientBase):
    """Computes, for each vertex, the share of possible edges between its neighbours that exist."""

    directed = True


class GlobalClusteringCoefficient(GlobalClusteringCoefficientBase):
    """Computes the share of pairs of edges with a common vertex that are part of a triangle."""


class AverageClusteringCoefficient(AverageClusteringCoefficientBase):
    """Computes the average of the local clustering coefficients."""

    algorithm = LocalClusteringCoefficient


class TriadicCensus(GraphAnalytic):
    """Counts the sets of three vertices by the edges between them: there are 16 kinds."""

    def prepare(self, graph: Graph) -> DataSet:
        return run_triangles(graph, CountOfGraph())

    def summarize(self, parts: list[Any]) -> TriadCounts:
        return count_triads(parts)
