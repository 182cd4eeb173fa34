"""Vertex-centric iterations: each vertex computes a new value from its messages, and sends messages to others."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Sequence
from typing import Any, Self

from penstock.dataset import DataSet
from penstock.dataset.functions import Function
from penstock.gelly.elements import Vertex
from penstock.gelly.graph_base import GraphBase
from penstock.gelly.supersteps.engine import SuperstepProgram, Supersteps
from penstock.gelly.supersteps.iteration_functions import (
    FunctionTask,
    IterationConfiguration,
    MessageIterator,
    SendingFunction,
    SettingFunction,
    check_iteration,
)
from penstock.gelly.supersteps.row_parts import Outbox, RowPart, by_vertex, row_parts, unknown_vertex, vertices_of_parts

__all__ = ["ComputeFunction", "MessageCombiner", "MessageIterator", "VertexCentricConfiguration"]


class ComputeFunction(SendingFunction, SettingFunction):
    """Computes a new value of a vertex, and sends messages."""

    kind = "compute"

    @abstractmethod
    def compute(self, vertex: Vertex, messages: MessageIterator) -> None:
        """Process the messages of a vertex. In the first superstep all vertices are active, and there are none."""


class MessageCombiner(Function):
    """Combines messages to one vertex, before they are sent and when they have come."""

    _combined: list[Any] | None = None

    @abstractmethod
    def combine_messages(self, messages: MessageIterator) -> None:
        """Combine messages, and send the result with send_combined_message."""

    def send_combined_message(self, message: Any) -> None:
        """Send a combined message to the vertex."""
        if self._combined is None:
            self._combined = []
        self._combined.append(message)

    def combine(self, messages: Iterable[Any]) -> list[Any]:
        """Return the combined messages."""
        self._combined = []
        self.combine_messages(MessageIterator(messages))
        return self._combined


class VertexCentricConfiguration(IterationConfiguration):
    """Settings of a vertex-centric iteration."""

    def add_broadcast_set(self, name: str, data: DataSet) -> Self:
        """Give the compute function all elements of a data set."""
        self.add_set("compute", name, data)
        return self


class VertexCentricProgram(SuperstepProgram):
    """Computes when it sends, and keeps messages for the next superstep when it receives."""

    def __init__(self, compute: ComputeFunction, combiner: MessageCombiner | None) -> None:
        self.compute = compute
        self.combiner = combiner
        self.functions = FunctionTask(compute)

    def open(self, task: Any) -> None:
        self.functions.open(task)

    def close(self) -> None:
        self.functions.close()

    def send(self, part: RowPart, task: Any) -> Iterable[tuple[int, Any]]:
        outbox, function = Outbox(part.parts), self.compute
        for vertex_id in part.active:
            part.check_vertex(vertex_id)
            messages = MessageIterator(part.inbox.get(vertex_id, ()))
            function.look_at(part, vertex_id, part.out_edges.get(vertex_id, []), 1, outbox)
            function.compute(Vertex(vertex_id, part.values[vertex_id]), messages)
            function.take_value(part, vertex_id)
        part.inbox = {}
        if self.combiner is None:
            return outbox.batches.items()
        return [(number, list(self._combined(batch))) for number, batch in outbox.batches.items()]

    def _combined(self, batch: Iterable[tuple[Any, Any]]) -> Iterable[tuple[Any, Any]]:
        assert self.combiner is not None
        for vertex_id, messages in by_vertex(batch).items():
            for message in self.combiner.combine(messages):
                yield vertex_id, message

    def receive(self, part: RowPart, batches: Sequence[Any], task: Any) -> float:
        messages: Iterable[tuple[Any, Any]] = [message for batch in batches for message in batch]
        if self.combiner is not None:
            messages = self._combined(messages)
        part.inbox = by_vertex(messages)
        part.active = list(part.inbox)
        return len(part.inbox)

    def refuse(self, number: int, batches: Sequence[Any]) -> None:
        raise unknown_vertex(batches[0][0][0])


def run_vertex_centric(
    graph: GraphBase,
    compute: ComputeFunction,
    combiner: MessageCombiner | None,
    max_iterations: int,
    configuration: VertexCentricConfiguration | None,
) -> DataSet:
    """Return the vertices after a vertex-centric iteration."""
    functions: dict[str, tuple[Any, type]] = {"compute": (compute, ComputeFunction)}
    if combiner is not None:
        functions["combiner"] = combiner, MessageCombiner
    method = "run_vertex_centric_iteration"
    settings = check_iteration(method, functions, max_iterations, configuration, VertexCentricConfiguration)
    parallelism = settings.parallelism or graph.get_context().get_parallelism()
    steps = Supersteps(
        settings.name or "Vertex-centric iteration",
        VertexCentricProgram(compute, combiner),
        max_iterations,
        parallelism,
        settings.aggregators,
        settings.sets_for(graph),
    )
    return vertices_of_parts(steps.run(row_parts(graph, parallelism, with_in_edges=False)))
