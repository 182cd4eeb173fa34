"""Clustering in undirected graphs, whose edges come in both directions."""

from __future__ import annotations

from math import comb
from typing import Any, NamedTuple

from penstock.dataset import DataSet
from penstock.gelly.algorithms import GraphAnalytic
from penstock.gelly.columns.triangles import CountOfGraph
from penstock.gelly.graph import Graph
from penstock.gelly.library.clustering.enumerating import (
    AverageClusteringCoefficientBase,
    GlobalClusteringCoefficientBase,
    LocalClusteringCoefficientBase,
    TriangleListingBase,
    run_triangles,
    total_pairs,
)

__all__ = [
    "AverageClusteringCoefficient",
    "GlobalClusteringCoefficient",
    "LocalClusteringCoefficient",
    "TriadicCensus",
    "TriadicCensusResult",
    "TriangleListing",
    "TriangleListingResult",
]


class TriangleListingResult(NamedTuple):
    """A triangle."""

    vertex_id0: Any
    vertex_id1: Any
    vertex_id2: Any

    def get_vertex_id0(self) -> Any:
        """Return the id of the first vertex."""
        return self[0]

    def get_vertex_id1(self) -> Any:
        """Return the id of the second vertex."""
        return self[1]

    def get_vertex_id2(self) -> Any:
        """Return the id of the third vertex."""
        return self[2]


class TriangleListing(TriangleListingBase):
    """Lists the triangles of a graph."""

    def run(self, graph: Graph) -> DataSet:
        """Return a TriangleListingResult for each triangle."""
        return self.list_triangles(graph).map(lambda found: TriangleListingResult(*found[:3]))


class LocalClusteringCoefficient(LocalClusteringCoefficientBase):
    """Computes, for each vertex, the share of pairs of its neighbours that are neighbours of each other."""


class GlobalClusteringCoefficient(GlobalClusteringCoefficientBase):
    """Computes the share of pairs of edges with a common vertex that are part of a triangle."""


class AverageClusteringCoefficient(AverageClusteringCoefficientBase):
    """Computes the average of the local clustering coefficients."""

    algorithm = LocalClusteringCoefficient


class TriadicCensusResult(NamedTuple):
    """The numbers of sets of three vertices by the edges between them."""

    count03: int
    count12: int
    count21: int
    count30: int

    def get_count03(self) -> int:
        """Return the number of sets without edges."""
        return self[0]

    def get_count12(self) -> int:
        """Return the number of sets with one edge."""
        return self[1]

    def get_count21(self) -> int:
        """Return the number of sets with two edges."""
        return self[2]

    def get_count30(self) -> int:
        """Return the number of triangles."""
        return self[3]


class TriadicCensus(GraphAnalytic):
    """Counts the sets of three vertices by the number of edges between them."""

    def prepare(self, graph: Graph) -> DataSet:
        return run_triangles(graph, CountOfGraph())

    def summarize(self, parts: list[Any]) -> TriadicCensusResult:
        vertices = sum(part["vertices"] for part in parts)
        edges = sum(part["one-way"] * 2 + part["both ways"] for part in parts) // 2
        triangles = sum(sum(part["triangles"]) for part in parts)
        two = sum(total_pairs(parts).values()) - 3 * triangles
        one = edges * max(vertices - 2, 0) - 2 * two - 3 * triangles
        return TriadicCensusResult(comb(vertices, 3) - one - two - triangles, one, two, triangles)
