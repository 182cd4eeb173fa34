"""The common parts of the algorithms on triangles."""

from __future__ import annotations

import math
from collections import Counter
from typing import Any, NamedTuple, Self

from penstock.dataset import DataSet
from penstock.dataset.plan.checks import check_type
from penstock.gelly.algorithms import GraphAlgorithm, GraphAnalytic
from penstock.gelly.columns.kernels import Change, run_kernel
from penstock.gelly.columns.packing import Packing
from penstock.gelly.columns.triangles import CountOfGraph, CountOfVertices, ListOfTriangles, TriangleKernel
from penstock.gelly.graph import Graph
from penstock.gelly.settings import IncludesZeroDegrees


def run_triangles(graph: Graph, kernel: TriangleKernel, of_edges: bool = True) -> DataSet:
    """Return the results of an algorithm on triangles."""
    packing = Packing(graph.get_context().get_parallelism(), inward=True, of_edges=of_edges)
    return run_kernel(graph, kernel, packing, kernel.supersteps, criterion=Change(None, 1, 1))


class TriangleEnumerator(GraphAlgorithm):
    """Lists the triangles of a graph, whatever the direction of edges."""

    def run(self, graph: Graph) -> DataSet:
        """Return tuples of three ids."""
        return run_triangles(graph, ListOfTriangles(False, False)).map(lambda found: found[:3])


class TriangleListingBase(GraphAlgorithm):
    """Lists the triangles of a graph."""

    def __init__(self) -> None:
        self.sort_triangle_vertices = False
        self.permute_results = False

    def set_sort_triangle_vertices(self, sort: bool) -> Self:
        """Say whether the vertices of a triangle are in the order of their ids."""
        check_type("set_sort_triangle_vertices", "sort", sort, bool)
        self.sort_triangle_vertices = sort
        return self

    def set_permute_results(self, permute: bool) -> Self:
        """Say whether each triangle comes six times, with its vertices in all orders."""
        check_type("set_permute_results", "permute", permute, bool)
        self.permute_results = permute
        return self

    def list_triangles(self, graph: Graph) -> DataSet:
        """Return tuples of three ids and the bits of the edges between them."""
        return run_triangles(graph, ListOfTriangles(self.sort_triangle_vertices, self.permute_results))


class LocalClusteringCoefficientResult(NamedTuple):
    """The number of neighbours of a vertex, and of edges between them."""

    vertex_id0: Any
    degree: int
    triangle_count: int
    possible: float
    """Greatest possible number of edges between the neighbours."""

    def get_vertex_id0(self) -> Any:
        """Return the id of the vertex."""
        return self[0]

    def get_degree(self) -> int:
        """Return the number of neighbours."""
        return self[1]

    def get_triangle_count(self) -> int:
        """Return the number of edges between neighbours."""
        return self[2]

    def get_local_clustering_coefficient_score(self) -> float:
        """Return the share of possible edges between neighbours that exist; NaN for fewer than two neighbours."""
        return self[2] / self[3] if self[3] else math.nan


class LocalClusteringCoefficientBase(IncludesZeroDegrees, GraphAlgorithm):
    """Computes the share of pairs of neighbours that are neighbours of each other, for each vertex."""

    include_zero_degree_vertices = True
    directed = False

    def run(self, graph: Graph) -> DataSet:
        """Return a LocalClusteringCoefficientResult for each vertex."""
        counted = run_triangles(graph, CountOfVertices(self.directed), not self.include_zero_degree_vertices)
        share = 1 if self.directed else 2

        def with_possible(found: tuple[Any, int, int]) -> LocalClusteringCoefficientResult:
            vertex_id, degree, triangles = found
            return LocalClusteringCoefficientResult(vertex_id, degree, triangles, degree * (degree - 1) / share)

        return counted.map(with_possible)


class AverageClusteringCoefficientResult(NamedTuple):
    """The average of the local clustering coefficients."""

    number_of_vertices: int
    sum_of_scores: float

    def get_number_of_vertices(self) -> int:
        """Return the number of vertices, also of those without edges."""
        return self[0]

    def get_average_clustering_coefficient(self) -> float:
        """Return the average. Vertices with fewer than two neighbours count as 0."""
        return self[1] / self[0] if self[0] else math.nan


class AverageClusteringCoefficientBase(GraphAnalytic):
    """Computes the average of the local clustering coefficients."""

    algorithm: type[LocalClusteringCoefficientBase]

    def prepare(self, graph: Graph) -> DataSet:
        scores = self.algorithm().run(graph).map(lambda result: (1, result.get_local_clustering_coefficient_score()))
        return scores.map(lambda pair: (pair[0], 0.0 if math.isnan(pair[1]) else pair[1])).reduce(
            lambda one, other: (one[0] + other[0], one[1] + other[1])
        )

    def summarize(self, parts: list[Any]) -> AverageClusteringCoefficientResult:
        return AverageClusteringCoefficientResult(*(parts[0] if parts else (0, 0.0)))


class GlobalClusteringCoefficientResult(NamedTuple):
    """The numbers of triplets and of closed ones."""

    number_of_triplets: int
    number_of_triangles: int

    def get_number_of_triplets(self) -> int:
        """Return the number of pairs of edges that meet in a vertex."""
        return self[0]

    def get_number_of_triangles(self) -> int:
        """Return the number of such pairs that are part of a triangle, which is three times that of triangles."""
        return self[1]

    def get_global_clustering_coefficient_score(self) -> float:
        """Return the share of triplets that are closed; NaN if there are no triplets."""
        return self[1] / self[0] if self[0] else math.nan


class GlobalClusteringCoefficientBase(GraphAnalytic):
    """Computes the share of pairs of edges with a common vertex that are part of a triangle."""

    def prepare(self, graph: Graph) -> DataSet:
        return run_triangles(graph, CountOfGraph())

    def summarize(self, parts: list[Any]) -> GlobalClusteringCoefficientResult:
        triangles = sum(sum(part["triangles"]) for part in parts)
        return GlobalClusteringCoefficientResult(sum(total_pairs(parts).values()), 3 * triangles)


def total_pairs(parts: list[Any]) -> Counter[tuple[int, int]]:
    """Return the number of pairs of neighbours by the bits of their edges."""
    total: Counter[tuple[int, int]] = Counter()
    for part in parts:
        total.update(part["pairs"])
    return total
