"""Simple directed graphs."""

from __future__ import annotations

from penstock.gelly.algorithms import GraphAlgorithm
from penstock.gelly.graph import Graph

__all__ = ["Simplify"]


class Simplify(GraphAlgorithm):
    """Removes loops, and all but one of parallel edges."""

    def run(self, graph: Graph) -> Graph:
        """Return the graph."""
        return graph.with_data(edges=graph.get_edges().filter(lambda edge: edge[0] != edge[1]).distinct(0, 1))
