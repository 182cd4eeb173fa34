"""Components, distances and labels, which spread along edges."""

from __future__ import annotations

from typing import Any

from penstock.dataset import DataSet
from penstock.gelly.algorithms import GraphAlgorithm
from penstock.gelly.columns.kernels import check_rounds, run_kernel
from penstock.gelly.columns.packing import Packing
from penstock.gelly.columns.propagation import CommonLabel, Distances, LeastValue
from penstock.gelly.graph import Graph


class ConnectedComponents(GraphAlgorithm):
    """Finds the components of a graph: each vertex gets the least value of a vertex that it is connected with."""

    def __init__(self, max_iterations: int) -> None:
        """Create the algorithm. A value gets one edge further in each iteration, whatever the direction of edges."""
        self.max_iterations = check_rounds(type(self).__name__, max_iterations)

    def run(self, graph: Graph) -> DataSet:
        """Return the vertices, with the least values of their components."""
        packing = Packing(graph.get_context().get_parallelism(), undirected=True)
        return run_kernel(graph, LeastValue(), packing, self.max_iterations)


class GSAConnectedComponents(ConnectedComponents):
    """Finds components as ConnectedComponents does. In Gelly the two differ in their models of iterations."""


class SingleSourceShortestPaths(GraphAlgorithm):
    """Computes the distances of all vertices from one of them. The values of edges are their lengths."""

    def __init__(self, source_vertex_id: Any, max_iterations: int) -> None:
        """Create the algorithm. Paths have at most `max_iterations` edges."""
        self.source_vertex_id = source_vertex_id
        self.max_iterations = check_rounds(type(self).__name__, max_iterations)

    def run(self, graph: Graph) -> DataSet:
        """Return the vertices with their distances. That of an unreachable one is the greatest finite float."""
        packing = Packing(graph.get_context().get_parallelism(), with_values=True)
        return run_kernel(graph, Distances(self.source_vertex_id), packing, self.max_iterations)


class GSASingleSourceShortestPaths(SingleSourceShortestPaths):
    """Computes distances as SingleSourceShortestPaths does. In Gelly the two differ in the model of iterations."""


class LabelPropagation(GraphAlgorithm):
    """Finds communities: each vertex takes the label that most of its neighbours have, and of several the greatest."""

    def __init__(self, max_iterations: int) -> None:
        """Create the algorithm. Labels go along the directions of edges."""
        self.max_iterations = check_rounds("LabelPropagation", max_iterations)

    def run(self, graph: Graph) -> DataSet:
        """Return the vertices, with their labels. The first labels are the values of the vertices."""
        packing = Packing(graph.get_context().get_parallelism())
        return run_kernel(graph, CommonLabel(), packing, self.max_iterations)
