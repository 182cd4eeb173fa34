"""The common base of the functions of all iteration models: supersteps, values and messages."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Self

from penstock.dataset import DataSet
from penstock.dataset.aggregators import Aggregator
from penstock.dataset.functions import Function
from penstock.dataset.operators.record_operators import CountElements
from penstock.dataset.plan.checks import check_count, check_type
from penstock.errors import ContextError, InvalidArgument, ProgramError
from penstock.gelly.elements import Edge, EdgeDirection
from penstock.gelly.graph_base import GraphBase
from penstock.gelly.supersteps.row_parts import Outbox, RowPart

VERTEX_COUNTS = "number of vertices"
"""Name of the broadcast set with the number of vertices. Those of functions begin with the kind of the function."""


class MessageIterator(Iterator[Any]):
    """The messages of a vertex, which can be read once."""

    def __init__(self, messages: Iterable[Any]) -> None:
        self._messages = list(messages)
        self._next = 0

    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:
        if not self.has_next():
            raise StopIteration
        self._next += 1
        return self._messages[self._next - 1]

    def has_next(self) -> bool:
        """Return True if there is another message."""
        return self._next < len(self._messages)

    def next(self) -> Any:
        """Return the next message."""
        return next(self)


class IterationFunction(Function):
    """Base of the functions of iterations."""

    kind = ""
    """The kind of the function, which its broadcast sets belong to."""
    _task: Any = None
    _part: RowPart | None = None
    _vertex: Any = None
    _counts_degrees = False

    def pre_superstep(self) -> None:
        """Prepare for a superstep. It is called in every task."""

    def post_superstep(self) -> None:
        """End a superstep. It is called in every task."""

    def get_superstep_number(self) -> int:
        """Return the number of the superstep, from 1 on."""
        return self._context().get_superstep_number()  # type: ignore[no-any-return]

    def get_iteration_aggregator(self, name: str) -> Any:
        """Return the aggregator of this superstep."""
        return self._context().get_iteration_aggregator(name)

    def get_previous_iteration_aggregate(self, name: str) -> Any:
        """Return the aggregate of the superstep before, over all tasks; None in the first superstep."""
        return self._context().get_previous_iteration_aggregate(name)

    def get_broadcast_set(self, name: str) -> list[Any]:
        """Return all elements of a broadcast set that the configuration gives to this kind of function."""
        key = f"{self.kind} {name}"
        if not self._context().has_broadcast_variable(key):
            raise ContextError(
                f"{type(self).__name__} has no broadcast set '{name}': add it to the configuration of the iteration"
            )
        return self._context().get_broadcast_variable(key)  # type: ignore[no-any-return]

    def get_number_of_vertices(self) -> int:
        """Return the number of vertices; -1 unless the configuration sets opt_num_vertices."""
        if not self._context().has_broadcast_variable(VERTEX_COUNTS):
            return -1
        return sum(count for _, count in self._context().get_broadcast_variable(VERTEX_COUNTS))

    def _context(self) -> Any:
        if self._task is None:
            raise ContextError(f"{type(self).__name__} has no context outside of an iteration")
        return self._task


class DegreeFunction(IterationFunction):
    """Base of the functions that know the degrees of their vertex."""

    def get_in_degree(self) -> int:
        """Return the number of edges that end at the vertex; -1 unless the configuration sets opt_degrees."""
        return self._degree("in_edges")

    def get_out_degree(self) -> int:
        """Return the number of edges that begin at the vertex; -1 unless the configuration sets opt_degrees."""
        return self._degree("out_edges")

    def _degree(self, edges: str) -> int:
        if not self._counts_degrees or self._part is None:
            return -1
        return len(getattr(self._part, edges).get(self._vertex, ()))


class SendingFunction(IterationFunction):
    """Base of the functions that send messages."""

    _edges: Sequence[Edge] = ()
    _other_end = 1
    _edges_used = False
    _outbox: Outbox | None = None

    def get_edges(self) -> Sequence[Edge]:
        """Return the edges of the vertex. Call either this or send_message_to_all_neighbors, and only once."""
        self._use_edges()
        return self._edges

    def send_message_to(self, target: Any, message: Any) -> None:
        """Send a message to the vertex with an id."""
        if self._outbox is None:
            raise ContextError(f"{type(self).__name__} cannot send messages outside of an iteration")
        self._outbox.add(target, message)

    def send_message_to_all_neighbors(self, message: Any) -> None:
        """Send a message to the other end of each edge of the vertex. Call either this or get_edges, and only once."""
        self._use_edges()
        for edge in self._edges:
            self.send_message_to(edge[self._other_end], message)

    def _use_edges(self) -> None:
        if self._edges_used:
            raise ProgramError("call either get_edges() or send_message_to_all_neighbors(), and only once for a vertex")
        self._edges_used = True

    def look_at(self, part: RowPart, vertex_id: Any, edges: list[Edge], other_end: int, outbox: Outbox) -> None:
        """Prepare the function for a vertex."""
        self._part, self._vertex = part, vertex_id
        self._edges, self._other_end, self._edges_used, self._outbox = edges, other_end, False, outbox


class SettingFunction(IterationFunction):
    """Base of the functions that give a vertex a new value."""

    _is_set = False
    _new_value: Any = None

    def set_new_vertex_value(self, value: Any) -> None:
        """Give the vertex a new value, at most once."""
        if self._is_set:
            raise ProgramError("set_new_vertex_value must be called at most once for a vertex")
        self._is_set, self._new_value = True, value

    def take_value(self, part: RowPart, vertex_id: Any) -> bool:
        """Store the value that the function has set. Return True if there was one."""
        was_set, self._is_set = self._is_set, False
        if was_set:
            part.values[vertex_id] = self._new_value
        self._new_value = None
        return was_set


# --- configurations ---
class IterationConfiguration:
    """Settings that all iterations have."""

    def __init__(self) -> None:
        self.name: str | None = None
        self.parallelism: int | None = None
        self.opt_num_vertices = False
        self.aggregators: dict[str, Aggregator] = {}
        self.broadcast_sets: dict[str, DataSet] = {}

    def set_name(self, name: str) -> Self:
        """Set the name of the iteration in plans and errors."""
        check_type("set_name", "name", name, str)
        self.name = name
        return self

    def set_parallelism(self, parallelism: int) -> Self:
        """Set the number of parts that the graph is cut into."""
        check_count("set_parallelism", "parallelism", parallelism)
        self.parallelism = parallelism
        return self

    def set_solution_set_unmanaged_memory(self, unmanaged: bool) -> Self:
        """Accept a setting that has no effect here: vertices are ordinary objects."""
        check_type("set_solution_set_unmanaged_memory", "unmanaged", unmanaged, bool)
        return self

    def set_opt_num_vertices(self, counts: bool) -> Self:
        """Let functions know the number of vertices."""
        check_type("set_opt_num_vertices", "counts", counts, bool)
        self.opt_num_vertices = counts
        return self

    def register_aggregator(self, name: str, aggregator: Aggregator) -> Self:
        """Add an aggregator, which functions get by its name."""
        check_type("register_aggregator", "name", name, str)
        check_type("register_aggregator", "aggregator", aggregator, Aggregator)
        self.aggregators[name] = aggregator
        return self

    def add_set(self, kind: str, name: str, data: DataSet) -> None:
        """Add a broadcast set for the functions of one kind."""
        check_type("add_broadcast_set", "name", name, str)
        check_type("add_broadcast_set", "data", data, DataSet)
        self.broadcast_sets[f"{kind} {name}"] = data

    def sets_for(self, graph: GraphBase) -> dict[str, DataSet]:
        """Return all broadcast sets of the iteration."""
        if not self.opt_num_vertices:
            return self.broadcast_sets
        return {**self.broadcast_sets, VERTEX_COUNTS: graph.get_vertices().add("Count", CountElements())}


class DirectedConfiguration(IterationConfiguration):
    """Settings of the models in which messages have a direction."""

    def __init__(self) -> None:
        super().__init__()
        self.direction = EdgeDirection.OUT

    def set_direction(self, direction: EdgeDirection) -> Self:
        """Set the edges along which values flow: OUT from source to target, IN the other way, or ALL."""
        check_type("set_direction", "direction", direction, EdgeDirection)
        self.direction = direction
        return self

    @property
    def other_ends(self) -> tuple[int, ...]:
        """Ends of an edge that values flow to: 0 is the source, 1 the target."""
        ends = {EdgeDirection.OUT: (1,), EdgeDirection.IN: (0,), EdgeDirection.ALL: (0, 1)}
        return ends[self.direction]


def check_iteration(
    method: str, functions: Mapping[str, tuple[Any, type]], max_iterations: Any, configuration: Any, kind: type
) -> Any:
    """Check the arguments of an iteration, and return its configuration."""
    for name, (function, base) in functions.items():
        if isinstance(function, type):
            raise InvalidArgument(f"{method} takes an object of {function.__name__}, and not the class")
        check_type(method, name, function, base)
    check_count(method, "max_iterations", max_iterations)
    if configuration is None:
        return kind()
    check_type(method, "configuration", configuration, kind)
    return configuration


def edges_towards(part: RowPart, vertex_id: Any, other_end: int) -> list[Edge]:
    """Return the edges of a vertex whose other end is at a position."""
    edges = part.out_edges if other_end == 1 else part.in_edges
    return edges.get(vertex_id, [])


class FunctionTask:
    """Binds functions to the task of a superstep."""

    def __init__(self, *functions: Any) -> None:
        self.functions = [function for function in functions if isinstance(function, IterationFunction)]

    def open(self, task: Any) -> None:
        """Prepare the functions for a superstep."""
        for function in self.functions:
            function._task = task
            function.pre_superstep()

    def close(self) -> None:
        """End the superstep of the functions."""
        for function in self.functions:
            function.post_superstep()
