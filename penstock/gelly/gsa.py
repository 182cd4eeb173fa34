"""Gather-sum-apply iterations: values of neighbours that changed are gathered, summed up, and applied to a vertex."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple, Self

from penstock.dataset import DataSet
from penstock.dataset.operators.dataset_operator import bound
from penstock.dataset.plan.checks import check_function
from penstock.gelly.graph_base import GraphBase
from penstock.gelly.supersteps.engine import SuperstepProgram, Supersteps, owner_of
from penstock.gelly.supersteps.iteration_functions import (
    DirectedConfiguration,
    FunctionTask,
    IterationFunction,
    check_iteration,
    edges_towards,
)
from penstock.gelly.supersteps.row_parts import RowPart, row_parts, unknown_vertex, vertices_of_parts

__all__ = ["ApplyFunction", "GSAConfiguration", "GatherFunction", "Neighbor", "SumFunction"]


class Neighbor(NamedTuple):
    """The value of a neighbour, and that of the edge to it."""

    neighbor_value: Any
    edge_value: Any

    def get_neighbor_value(self) -> Any:
        """Return the value of the neighbour."""
        return self[0]

    def get_edge_value(self) -> Any:
        """Return the value of the edge."""
        return self[1]


class GatherFunction(IterationFunction):
    """Computes a value from a neighbour and its edge."""

    kind = "gather"

    @abstractmethod
    def gather(self, neighbor: Neighbor) -> Any:
        """Return the value for a neighbour that changed."""


class SumFunction(IterationFunction):
    """Combines two gathered values into one."""

    kind = "sum"

    @abstractmethod
    def sum(self, first: Any, second: Any) -> Any:
        """Return one value for two. The order in which values meet is not fixed."""


class ApplyFunction(IterationFunction):
    """Gives a vertex a new value, by the sum of what was gathered for it."""

    kind = "apply"
    _result: tuple[Any, ...] = ()

    @abstractmethod
    def apply(self, new_value: Any, current_value: Any) -> None:
        """Call set_result(value) if the vertex changes."""

    def set_result(self, value: Any) -> None:
        """Give the vertex a new value. It counts as a change, even if the value is equal."""
        self._result = (value,)

    def take_result(self) -> tuple[Any, ...]:
        """Return the value that was set, or an empty tuple."""
        result, self._result = self._result, ()
        return result


class GSAConfiguration(DirectedConfiguration):
    """Settings of a gather-sum-apply iteration."""

    def add_broadcast_set_for_gather_function(self, name: str, data: DataSet) -> Self:
        """Give the gather function all elements of a data set."""
        self.add_set("gather", name, data)
        return self

    def add_broadcast_set_for_sum_function(self, name: str, data: DataSet) -> Self:
        """Give the sum function all elements of a data set."""
        self.add_set("sum", name, data)
        return self

    def add_broadcast_set_for_apply_function(self, name: str, data: DataSet) -> Self:
        """Give the apply function all elements of a data set."""
        self.add_set("apply", name, data)
        return self


class GatherSumApplyProgram(SuperstepProgram):
    """Gathers and sums up when it sends; sums up and applies when it receives."""

    def __init__(self, gather: Any, sum_up: Any, apply: ApplyFunction, other_ends: tuple[int, ...]) -> None:
        self.gather = gather
        self.sum_up = sum_up
        self.apply = apply
        self.other_ends = other_ends
        self.functions = FunctionTask(gather, sum_up, apply)

    def open(self, task: Any) -> None:
        self.functions.open(task)

    def close(self) -> None:
        self.functions.close()

    def send(self, part: RowPart, task: Any) -> Iterable[tuple[int, Any]]:
        gather, add = bound(self.gather, "gather"), bound(self.sum_up, "sum")
        sums: dict[Any, Any] = {}
        for vertex_id in part.active:
            value = part.values[vertex_id]
            for other_end in self.other_ends:
                for edge in edges_towards(part, vertex_id, other_end):
                    target, gathered = edge[other_end], gather(Neighbor(value, edge[2]))
                    sums[target] = add(sums[target], gathered) if target in sums else gathered
        batches: dict[int, list[tuple[Any, Any]]] = {}
        for target, gathered in sums.items():
            batches.setdefault(owner_of(target, part.parts), []).append((target, gathered))
        return batches.items()

    def receive(self, part: RowPart, batches: Sequence[Any], task: Any) -> float:
        add, sums, changed = bound(self.sum_up, "sum"), dict[Any, Any](), []
        for batch in batches:
            for target, gathered in batch:
                sums[target] = add(sums[target], gathered) if target in sums else gathered
        for vertex_id, new_value in sums.items():
            part.check_vertex(vertex_id)
            self.apply.apply(new_value, part.values[vertex_id])
            for value in self.apply.take_result():
                part.values[vertex_id] = value
                changed.append(vertex_id)
        part.active = changed
        return len(changed)

    def refuse(self, number: int, batches: Sequence[Any]) -> None:
        raise unknown_vertex(batches[0][0][0])


def run_gather_sum_apply(
    graph: GraphBase,
    gather: Any,
    sum_up: Any,
    apply: ApplyFunction,
    max_iterations: int,
    configuration: GSAConfiguration | None,
) -> DataSet:
    """Return the vertices after a gather-sum-apply iteration."""
    method = "run_gather_sum_apply_iteration"
    check_function(method, gather, "gather")
    check_function(method, sum_up, "sum")
    functions = {"apply": (apply, ApplyFunction)}
    settings = check_iteration(method, functions, max_iterations, configuration, GSAConfiguration)
    parallelism = settings.parallelism or graph.get_context().get_parallelism()
    steps = Supersteps(
        settings.name or "Gather-sum-apply iteration",
        GatherSumApplyProgram(gather, sum_up, apply, settings.other_ends),
        max_iterations,
        parallelism,
        settings.aggregators,
        settings.sets_for(graph),
    )
    return vertices_of_parts(steps.run(row_parts(graph, parallelism, 0 in settings.other_ends)))
