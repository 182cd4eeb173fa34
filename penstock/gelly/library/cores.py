"""The parts of a graph in which all vertices have many neighbours."""

from __future__ import annotations

from penstock.dataset.plan.checks import check_count
from penstock.gelly.algorithms import GraphAlgorithm
from penstock.gelly.asm.simple.undirected import Simplify
from penstock.gelly.columns.kernels import run_kernel
from penstock.gelly.columns.packing import Packing
from penstock.gelly.columns.propagation import Cores
from penstock.gelly.graph import Graph
from penstock.gelly.transforming import FirstSide

_ROUNDS = 2**31 - 1


class KCore(GraphAlgorithm):
    """Finds the k-core: the largest part of a graph in which each vertex has at least k neighbours in this part.

    The direction of edges does not matter, and loops and parallel edges do not count. Gelly has no such algorithm.
    """

    def __init__(self, k: int) -> None:
        """Create the algorithm."""
        check_count("KCore", "k", k)
        self.k = k

    def run(self, graph: Graph) -> Graph:
        """Return the vertices of the k-core, and all edges between them."""
        simple = graph.run(Simplify(False))
        kept = run_kernel(simple, Cores(self.k), Packing(graph.get_context().get_parallelism()), _ROUNDS)
        ids = kept.map(lambda vertex_id: (vertex_id,))
        return graph.with_vertices_alone(graph.get_vertices().join(ids).where(0).equal_to(0).with_(FirstSide()))
