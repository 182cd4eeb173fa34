"""The importance of vertices by the edges between them."""

from __future__ import annotations

from typing import Any, NamedTuple

from penstock.dataset import DataSet
from penstock.errors import InvalidArgument
from penstock.gelly.algorithms import GraphAlgorithm
from penstock.gelly.columns.kernels import Change, check_limits, run_kernel
from penstock.gelly.columns.packing import Packing
from penstock.gelly.columns.ranking import AUTHORITIES, HUBS, SENT, HitsKernel, PageRankKernel
from penstock.gelly.graph import Graph
from penstock.gelly.settings import IncludesZeroDegrees

__all__ = ["HITS", "HITSResult", "PageRank", "PageRankResult"]


class PageRankResult(NamedTuple):
    """The score of a vertex."""

    vertex_id0: Any
    page_rank_score: float

    def get_vertex_id0(self) -> Any:
        """Return the id of the vertex."""
        return self[0]

    def get_page_rank_score(self) -> float:
        """Return the score. The scores of all vertices add up to 1."""
        return self[1]


class PageRank(IncludesZeroDegrees, GraphAlgorithm):
    """Computes PageRank. The scores of vertices without outgoing edges are spread over all vertices."""

    def __init__(self, damping_factor: float, iterations: int | float, threshold: float | None = None) -> None:
        """Create the algorithm.

        It ends after a number of iterations (an int), when the sum of all changes is at most a threshold (a float), or
        whichever comes first if both are given.
        """
        if not isinstance(damping_factor, float) or not 0 < damping_factor < 1:
            raise InvalidArgument(f"PageRank: the damping factor must be between 0 and 1, not {damping_factor!r}")
        self.damping_factor = damping_factor
        self.iterations, self.threshold = check_limits("PageRank", iterations, threshold)

    def run(self, graph: Graph) -> DataSet:
        """Return a PageRankResult for each vertex."""
        parts = graph.get_context().get_parallelism()
        packing = Packing(parts, of_edges=not self.include_zero_degree_vertices)
        kernel = PageRankKernel(self.damping_factor, self.iterations)
        # The superstep after the last iteration completes its scores.
        criterion = Change(self.threshold, first=2, every=1)
        scores = run_kernel(graph, kernel, packing, min(self.iterations + 1, 2**31 - 1), [SENT], criterion)
        return scores.map(lambda score: PageRankResult(*score))


class HITSResult(NamedTuple):
    """The scores of a vertex."""

    vertex_id0: Any
    hub_score: float
    authority_score: float

    def get_vertex_id0(self) -> Any:
        """Return the id of the vertex."""
        return self[0]

    def get_hub_score(self) -> float:
        """Return the hub score, which is high if edges lead to good authorities."""
        return self[1]

    def get_authority_score(self) -> float:
        """Return the authority score, which is high if edges come from good hubs."""
        return self[2]


class HITS(GraphAlgorithm):
    """Computes hub and authority scores. The squares of each kind add up to 1."""

    def __init__(self, iterations: int | float, threshold: float | None = None) -> None:
        """Create the algorithm, which ends as PageRank does."""
        self.iterations, self.threshold = check_limits("HITS", iterations, threshold)

    def run(self, graph: Graph) -> DataSet:
        """Return a HITSResult for each vertex that has an edge."""
        packing = Packing(graph.get_context().get_parallelism(), inward=True, of_edges=True)
        criterion = Change(self.threshold, first=3, every=2)
        supersteps = min(2 * self.iterations + 1, 2**31 - 1)
        scores = run_kernel(graph, HitsKernel(self.iterations), packing, supersteps, [HUBS, AUTHORITIES], criterion)
        return scores.map(lambda score: HITSResult(*score))
