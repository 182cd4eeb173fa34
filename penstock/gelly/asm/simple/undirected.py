"""Simple undirected graphs, whose edges come in both directions."""

from __future__ import annotations

from penstock.dataset.plan.checks import check_type
from penstock.gelly.algorithms import GraphAlgorithm
from penstock.gelly.graph import Graph
from penstock.gelly.settings import in_order

__all__ = ["Simplify"]


class Simplify(GraphAlgorithm):
    """Adds the reverse of every edge, and removes loops and all but one of parallel edges."""

    def __init__(self, clip_and_flip: bool) -> None:
        """Create the algorithm. With `clip_and_flip` only edges from a greater id to a lesser one are used."""
        check_type("Simplify", "clip_and_flip", clip_and_flip, bool)
        self.clip_and_flip = clip_and_flip

    def run(self, graph: Graph) -> Graph:
        """Return the graph."""
        edges = graph.get_edges()
        if self.clip_and_flip:
            edges = edges.filter(lambda edge: in_order(edge[1], edge[0]))
        else:
            edges = edges.filter(lambda edge: edge[0] != edge[1])
        both = graph.with_data(edges=edges).get_undirected()
        return both.with_data(edges=both.get_edges().distinct(0, 1))
