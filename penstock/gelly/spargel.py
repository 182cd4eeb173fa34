"""Scatter-gather iterations: vertices that changed send messages, and vertices with messages change."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Sequence
from typing import Any, Self

from penstock.dataset import DataSet
from penstock.dataset.plan.checks import check_type
from penstock.gelly.elements import Vertex
from penstock.gelly.graph_base import GraphBase
from penstock.gelly.supersteps.engine import SuperstepProgram, Supersteps
from penstock.gelly.supersteps.iteration_functions import (
    DegreeFunction,
    DirectedConfiguration,
    FunctionTask,
    MessageIterator,
    SendingFunction,
    SettingFunction,
    check_iteration,
    edges_towards,
)
from penstock.gelly.supersteps.row_parts import Outbox, RowPart, by_vertex, row_parts, unknown_vertex, vertices_of_parts

__all__ = ["GatherFunction", "MessageIterator", "ScatterFunction", "ScatterGatherConfiguration"]


class ScatterFunction(SendingFunction, DegreeFunction):
    """Sends messages from a vertex that changed."""

    kind = "scatter"

    @abstractmethod
    def send_messages(self, vertex: Vertex) -> None:
        """Send the messages of a vertex. In the first superstep all vertices send."""


class GatherFunction(SettingFunction, DegreeFunction):
    """Gives a vertex a new value, by its messages."""

    kind = "gather"

    @abstractmethod
    def update_vertex(self, vertex: Vertex, messages: MessageIterator) -> None:
        """Process the messages of a vertex, and call set_new_vertex_value if it changes."""


class ScatterGatherConfiguration(DirectedConfiguration):
    """Settings of a scatter-gather iteration."""

    def __init__(self) -> None:
        super().__init__()
        self.opt_degrees = False

    def set_opt_degrees(self, counts: bool) -> Self:
        """Let functions know the degrees of their vertex."""
        check_type("set_opt_degrees", "counts", counts, bool)
        self.opt_degrees = counts
        return self

    def add_broadcast_set_for_scatter_function(self, name: str, data: DataSet) -> Self:
        """Give the scatter function all elements of a data set."""
        self.add_set("scatter", name, data)
        return self

    def add_broadcast_set_for_gather_function(self, name: str, data: DataSet) -> Self:
        """Give the gather function all elements of a data set."""
        self.add_set("gather", name, data)
        return self


class ScatterGatherProgram(SuperstepProgram):
    """Scatters when it sends, and gathers when it receives."""

    def __init__(self, scatter: ScatterFunction, gather: GatherFunction, settings: ScatterGatherConfiguration) -> None:
        self.scatter = scatter
        self.gather = gather
        self.other_ends = settings.other_ends
        self.counts_degrees = settings.opt_degrees
        self.functions = FunctionTask(scatter, gather)

    def open(self, task: Any) -> None:
        for function in (self.scatter, self.gather):
            function._counts_degrees = self.counts_degrees
        self.functions.open(task)

    def close(self) -> None:
        self.functions.close()

    def send(self, part: RowPart, task: Any) -> Iterable[tuple[int, Any]]:
        outbox, function = Outbox(part.parts), self.scatter
        for vertex_id in part.active:
            for other_end in self.other_ends:
                function.look_at(part, vertex_id, edges_towards(part, vertex_id, other_end), other_end, outbox)
                function.send_messages(Vertex(vertex_id, part.values[vertex_id]))
        return outbox.batches.items()

    def receive(self, part: RowPart, batches: Sequence[Any], task: Any) -> float:
        function, changed = self.gather, []
        for vertex_id, messages in by_vertex(message for batch in batches for message in batch).items():
            part.check_vertex(vertex_id)
            function._part, function._vertex = part, vertex_id
            function.update_vertex(Vertex(vertex_id, part.values[vertex_id]), MessageIterator(messages))
            if function.take_value(part, vertex_id):
                changed.append(vertex_id)
        part.active = changed
        return len(changed)

    def refuse(self, number: int, batches: Sequence[Any]) -> None:
        raise unknown_vertex(batches[0][0][0])


def run_scatter_gather(
    graph: GraphBase,
    scatter: ScatterFunction,
    gather: GatherFunction,
    max_iterations: int,
    configuration: ScatterGatherConfiguration | None,
) -> DataSet:
    """Return the vertices after a scatter-gather iteration."""
    functions = {"scatter": (scatter, ScatterFunction), "gather": (gather, GatherFunction)}
    method = "run_scatter_gather_iteration"
    settings = check_iteration(method, functions, max_iterations, configuration, ScatterGatherConfiguration)
    parallelism = settings.parallelism or graph.get_context().get_parallelism()
    steps = Supersteps(
        settings.name or "Scatter-gather iteration",
        ScatterGatherProgram(scatter, gather, settings),
        max_iterations,
        parallelism,
        settings.aggregators,
        settings.sets_for(graph),
    )
    with_in_edges = settings.opt_degrees or 0 in settings.other_ends
    return vertices_of_parts(steps.run(row_parts(graph, parallelism, with_in_edges)))
