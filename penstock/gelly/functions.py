"""The functions of graph programs, which users subclass. Plain functions of Python do as well."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable
from typing import Any

from penstock.dataset.functions import Function, RichFunction
from penstock.dataset.operators.dataset_operator import bound
from penstock.gelly.elements import Edge, Vertex


class VertexJoinFunction(Function):
    """Combines the value of a vertex with a value from a data set."""

    @abstractmethod
    def vertex_join(self, vertex_value: Any, input_value: Any) -> Any:
        """Return the new value of the vertex."""


class EdgeJoinFunction(Function):
    """Combines the value of an edge with a value from a data set."""

    @abstractmethod
    def edge_join(self, edge_value: Any, input_value: Any) -> Any:
        """Return the new value of the edge."""


class TranslateFunction(Function):
    """Turns an id or a value into another."""

    @abstractmethod
    def translate(self, value: Any) -> Any:
        """Return the result for an id or a value."""


class ReduceEdgesFunction(Function):
    """Combines the values of two edges of a vertex into one."""

    @abstractmethod
    def reduce_edges(self, first: Any, second: Any) -> Any:
        """Return one value for two. The order in which values meet is not fixed."""


class ReduceNeighborsFunction(Function):
    """Combines the values of two neighbours of a vertex into one."""

    @abstractmethod
    def reduce_neighbors(self, first: Any, second: Any) -> Any:
        """Return one value for two. The order in which values meet is not fixed."""


class EdgesFunction(Function):
    """Turns the edges of a vertex into any number of results."""

    @abstractmethod
    def iterate_edges(self, edges: Iterable[tuple[Any, Edge]]) -> Iterable[Any] | None:
        """Yield the results for a vertex, given pairs of its id and an edge."""


class EdgesFunctionWithVertexValue(Function):
    """Turns a vertex and its edges into any number of results."""

    @abstractmethod
    def iterate_edges(self, vertex: Vertex, edges: Iterable[Edge]) -> Iterable[Any] | None:
        """Yield the results for a vertex, which may have no edges."""


class NeighborsFunction(Function):
    """Turns the neighbours of a vertex into any number of results."""

    @abstractmethod
    def iterate_neighbors(self, neighbors: Iterable[tuple[Any, Edge, Vertex]]) -> Iterable[Any] | None:
        """Yield the results for a vertex, given triples of its id, an edge and the neighbour at its other end."""


class NeighborsFunctionWithVertexValue(Function):
    """Turns a vertex and its neighbours into any number of results."""

    @abstractmethod
    def iterate_neighbors(self, vertex: Vertex, neighbors: Iterable[tuple[Edge, Vertex]]) -> Iterable[Any] | None:
        """Yield the results for a vertex, given pairs of an edge and the neighbour at its other end."""


class Wrapper(RichFunction):
    """Base of the functions around one of the program, which is opened and closed with its operator."""

    def __init__(self, function: Any, method: str) -> None:
        self.function = function
        self.method = method

    @property
    def call(self) -> Callable[..., Any]:
        """The method of the function object, or the plain function."""
        return bound(self.function, self.method)

    def open(self, runtime_context: Any) -> None:
        if isinstance(self.function, RichFunction):
            self.function.set_runtime_context(runtime_context)
            self.function.open(runtime_context)

    def close(self) -> None:
        if isinstance(self.function, RichFunction):
            self.function.close()
