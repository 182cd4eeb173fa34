"""The common parts of the figures of directed and undirected graphs."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from penstock.dataset import DataSet
from penstock.gelly.algorithms import GraphAnalytic
from penstock.gelly.settings import in_order


class EdgeMetricsResult(NamedTuple):
    """Numbers of pairs of edges that meet in a vertex, as algorithms on triangles and rectangles look at them."""

    number_of_triangle_triplets: int
    number_of_rectangle_triplets: int
    maximum_triangle_triplets: int
    maximum_rectangle_triplets: int

    def get_number_of_triangle_triplets(self) -> int:
        """Return the number of pairs of neighbours of higher rank. The rank is the degree, and then the id."""
        return self[0]

    def get_number_of_rectangle_triplets(self) -> int:
        """Return the number of pairs of neighbours of which at least one has a higher rank."""
        return self[1]

    def get_maximum_triangle_triplets(self) -> int:
        """Return the greatest number of triangle triplets of a vertex."""
        return self[2]

    def get_maximum_rectangle_triplets(self) -> int:
        """Return the greatest number of rectangle triplets of a vertex."""
        return self[3]


class EdgeMetricsBase(GraphAnalytic):
    """Counts pairs of edges by the ranks of vertices."""

    def count(self, ends: DataSet) -> DataSet:
        """Return the figures of all vertices together, given (id, neighbour, degree, degree of the neighbour)."""
        return ends.group_by(0).reduce_group(count_triplets).reduce(add_triplets)

    def summarize(self, parts: list[Any]) -> EdgeMetricsResult:
        return parts[0] if parts else EdgeMetricsResult(0, 0, 0, 0)


def count_triplets(ends: Iterable[tuple[Any, Any, int, int]]) -> Iterator[EdgeMetricsResult]:
    """Yield the figures of one vertex."""
    higher = lower = 0
    for vertex_id, neighbor, own_degree, degree in {end[1]: end for end in ends}.values():
        is_higher = own_degree < degree or (own_degree == degree and in_order(vertex_id, neighbor))
        higher, lower = higher + is_higher, lower + (not is_higher)
    triangles = higher * (higher - 1) // 2
    rectangles = triangles + higher * lower
    yield EdgeMetricsResult(triangles, rectangles, triangles, rectangles)


def add_triplets(one: Any, other: Any) -> EdgeMetricsResult:
    """Return the figures of two sets of vertices together."""
    return EdgeMetricsResult(one[0] + other[0], one[1] + other[1], max(one[2], other[2]), max(one[3], other[3]))


def ratio(value: float, whole: float) -> float:
    """Return a quotient; NaN if there is nothing to divide by."""
    return value / whole if whole > 0 else math.nan


def triplets_of(degree: int) -> int:
    """Return the number of pairs of neighbours."""
    return degree * (degree - 1) // 2
