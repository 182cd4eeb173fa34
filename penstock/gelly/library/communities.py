"""Communities of vertices, found by labels with scores."""

from __future__ import annotations

from penstock.errors import InvalidArgument
from penstock.gelly.algorithms import GraphAlgorithm
from penstock.gelly.columns.kernels import check_rounds
from penstock.gelly.elements import Vertex
from penstock.gelly.graph import Graph
from penstock.gelly.spargel import GatherFunction, MessageIterator, ScatterFunction


class CommunityDetection(GraphAlgorithm):
    """Finds communities: each vertex takes the label with the greatest sum of scores, which fade on their way."""

    def __init__(self, max_iterations: int, delta: float) -> None:
        """Create the algorithm. A label that reaches a new vertex loses `delta`, divided by the superstep's number."""
        self.max_iterations = check_rounds("CommunityDetection", max_iterations)
        if not isinstance(delta, (int, float)) or isinstance(delta, bool):
            raise InvalidArgument(f"CommunityDetection: delta must be a number, not {delta!r}")
        self.delta = delta

    def run(self, graph: Graph) -> Graph:
        """Return the graph, undirected, with labels as values of the vertices. Labels are numbers at first."""
        scored = graph.map_vertices(lambda vertex: (vertex[1], 1.0)).get_undirected()
        labelled = scored.run_scatter_gather_iteration(SendLabel(), TakeLabel(self.delta), self.max_iterations)
        return labelled.map_vertices(lambda vertex: vertex[1][0])


class SendLabel(ScatterFunction):
    """Sends the label of a vertex, with its score times the value of the edge."""

    def send_messages(self, vertex: Vertex) -> None:
        label, score = vertex[1]
        for edge in self.get_edges():
            self.send_message_to(edge[1], (label, score * edge[2]))


class TakeLabel(GatherFunction):
    """Takes the label with the greatest sum of scores, and of several the least. Its score is the best that came."""

    def __init__(self, delta: float) -> None:
        self.delta = delta

    def update_vertex(self, vertex: Vertex, messages: MessageIterator) -> None:
        sums: dict[int, float] = {}
        best: dict[int, float] = {}
        for label, score in messages:
            sums[label] = sums.get(label, 0.0) + score
            best[label] = max(best.get(label, score), score)
        label = min(sums, key=lambda each: (-sums[each], each))
        score = best[label]
        if label != vertex[1][0]:
            score -= self.delta / self.get_superstep_number()
        self.set_new_vertex_value((label, score))
