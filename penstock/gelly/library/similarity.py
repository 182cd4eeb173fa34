"""The similarity of vertices by their common neighbours, in undirected graphs, whose edges come in both directions."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from itertools import combinations
from typing import Any, NamedTuple, Self

import numpy as np

from penstock.dataset import DataSet
from penstock.dataset.functions import RichFilterFunction
from penstock.dataset.plan.checks import check_count
from penstock.errors import InvalidArgument
from penstock.gelly.algorithms import GraphAlgorithm
from penstock.gelly.asm.degree.annotate.undirected import EdgeSourceDegree, VertexDegree
from penstock.gelly.graph import Graph
from penstock.gelly.settings import MirrorsResults, in_order

__all__ = ["AdamicAdar", "AdamicAdarResult", "JaccardIndex", "JaccardIndexResult"]
_TOTALS = "scores of all pairs"


# --- Jaccard ---
class JaccardIndexResult(NamedTuple):
    """The similarity of two vertices."""

    vertex_id0: Any
    vertex_id1: Any
    shared_neighbor_count: int
    distinct_neighbor_count: int

    def get_vertex_id0(self) -> Any:
        """Return the id of one vertex, the lesser one unless results are mirrored."""
        return self[0]

    def get_vertex_id1(self) -> Any:
        """Return the id of the other vertex."""
        return self[1]

    def get_shared_neighbor_count(self) -> int:
        """Return the number of common neighbours."""
        return self[2]

    def get_distinct_neighbor_count(self) -> int:
        """Return the number of neighbours of either."""
        return self[3]

    def get_jaccard_index_score(self) -> float:
        """Return the share of the neighbours of either that are neighbours of both."""
        return self[2] / self[3]


class JaccardIndex(MirrorsResults, GraphAlgorithm):
    """Computes the Jaccard index of all pairs of vertices with a common neighbour."""

    def __init__(self) -> None:
        self.minimum = 0, 1
        self.maximum = 1, 1

    def set_minimum_score(self, numerator: int, denominator: int) -> Self:
        """Leave out pairs whose score is less than a fraction."""
        self.minimum = _fraction("set_minimum_score", numerator, denominator)
        return self

    def set_maximum_score(self, numerator: int, denominator: int) -> Self:
        """Leave out pairs whose score is greater than a fraction."""
        self.maximum = _fraction("set_maximum_score", numerator, denominator)
        return self

    def set_group_size(self, group_size: int) -> Self:
        """Accept a setting that has no effect here: groups of neighbours are not split."""
        check_count("set_group_size", "group_size", group_size)
        return self

    def run(self, graph: Graph) -> DataSet:
        """Return a JaccardIndexResult for each pair."""
        edges: DataSet = graph.run(EdgeSourceDegree()).map(lambda edge: (edge[1], edge[0], edge[2][1]))
        pairs = edges.group_by(0).reduce_group(neighbor_pairs).group_by(0, 1).sum(2)
        results = pairs.flat_map(ScoredPair(self.minimum, self.maximum))
        return results.flat_map(mirror) if self.mirror_results else results


def _fraction(method: str, numerator: Any, denominator: Any) -> tuple[int, int]:
    check_count(method, "denominator", denominator)
    if not isinstance(numerator, int) or isinstance(numerator, bool) or not 0 <= numerator <= denominator:
        raise InvalidArgument(f"{method}: the numerator must be from 0 to {denominator}, not {numerator!r}")
    return numerator, denominator


def neighbor_pairs(edges: Iterable[tuple[Any, Any, int]]) -> Iterator[tuple[Any, Any, int, int]]:
    """Yield the pairs of neighbours of a vertex, as (lesser id, greater id, 1, sum of their degrees)."""
    for one, other in combinations(edges, 2):
        first, second = (one, other) if in_order(one[1], other[1]) else (other, one)
        yield first[1], second[1], 1, one[2] + other[2]


class ScoredPair:
    """Makes the result of a pair, if its score is within limits."""

    def __init__(self, minimum: tuple[int, int], maximum: tuple[int, int]) -> None:
        self.minimum = minimum
        self.maximum = maximum

    def __call__(self, pair: tuple[Any, Any, int, int]) -> list[JaccardIndexResult]:
        one, other, shared, degrees = pair
        distinct = degrees - shared
        least, most = self.minimum, self.maximum
        if shared * least[1] < least[0] * distinct or shared * most[1] > most[0] * distinct:
            return []
        return [JaccardIndexResult(one, other, shared, distinct)]


def mirror(result: Any) -> tuple[Any, Any]:
    """Return a result, and that for the same vertices in the other order."""
    return result, type(result)(result[1], result[0], *result[2:])


# --- Adamic-Adar ---
class AdamicAdarResult(NamedTuple):
    """The similarity of two vertices."""

    vertex_id0: Any
    vertex_id1: Any
    adamic_adar_score: float

    def get_vertex_id0(self) -> Any:
        """Return the id of one vertex, the lesser one unless results are mirrored."""
        return self[0]

    def get_vertex_id1(self) -> Any:
        """Return the id of the other vertex."""
        return self[1]

    def get_adamic_adar_score(self) -> float:
        """Return the sum, over the common neighbours, of 1 / log(degree), in single precision."""
        return self[2]


class AdamicAdar(MirrorsResults, GraphAlgorithm):
    """Computes the similarity of all pairs of vertices with a common neighbour.

    The fewer neighbours a common neighbour has, the more it counts.
    """

    def __init__(self) -> None:
        self.minimum_score = 0.0
        self.minimum_ratio = 0.0

    def set_minimum_score(self, score: float) -> Self:
        """Leave out pairs whose score is less than this."""
        self.minimum_score = _not_negative("set_minimum_score", score)
        return self

    def set_minimum_ratio(self, ratio: float) -> Self:
        """Leave out pairs whose score is less than this many times the average of the pairs of all neighbourhoods."""
        self.minimum_ratio = _not_negative("set_minimum_ratio", ratio)
        return self

    def run(self, graph: Graph) -> DataSet:
        """Return an AdamicAdarResult for each pair."""
        pairs = graph.get_edges().group_by(1).reduce_group(weighted_pairs)
        scores = pairs.group_by(0, 1).reduce(lambda one, other: (*one[:2], np.float32(one[2]) + np.float32(other[2])))
        results = scores.map(lambda score: AdamicAdarResult(score[0], score[1], float(score[2])))
        if self.minimum_score > 0:
            least = self.minimum_score
            results = results.filter(lambda result: result[2] >= least)
        if self.minimum_ratio > 0:
            totals = graph.run(VertexDegree()).map(lambda vertex: total_of_pairs(vertex[1]))
            total = totals.reduce(lambda one, other: (one[0] + other[0], one[1] + other[1]))
            results = results.filter(AboveAverage(self.minimum_ratio)).with_broadcast_set(total, _TOTALS)
        return results.flat_map(mirror) if self.mirror_results else results


def _not_negative(method: str, value: Any) -> float:
    if not isinstance(value, (int, float)) or isinstance(value, bool) or not value >= 0:
        raise InvalidArgument(f"{method} takes a number of at least 0, not {value!r}")
    return value


def inverse_logarithm(degree: int) -> float:
    """Return the weight of a common neighbour, in single precision; 0 for one that connects nothing."""
    return 0.0 if degree < 2 else float(np.float32(1) / np.float32(math.log(degree)))


def weighted_pairs(edges: Iterable[Any]) -> Iterator[tuple[Any, Any, float]]:
    """Yield the pairs of neighbours of a vertex, the lesser id first, with the weight of the vertex."""
    neighbors = [edge[0] for edge in edges]
    weight = inverse_logarithm(len(neighbors))
    for one, other in combinations(neighbors, 2):
        yield (one, other, weight) if in_order(one, other) else (other, one, weight)


def total_of_pairs(degree: int) -> tuple[float, int]:
    """Return the sum of the weights of all pairs of neighbours of a vertex, and their number."""
    pairs = degree * (degree - 1) // 2
    return inverse_logarithm(degree) * pairs, pairs


class AboveAverage(RichFilterFunction):
    """Keeps scores that are at least some multiple of the average."""

    def __init__(self, ratio: float) -> None:
        self.ratio = ratio

    def filter(self, value: Any) -> bool:
        ((score, pairs),) = self.get_runtime_context().get_broadcast_variable(_TOTALS)
        return bool(value[2] >= self.ratio * score / pairs)
