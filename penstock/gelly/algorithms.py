"""The bases of algorithms that `Graph.run` runs."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, Self

from penstock.dataset import DataSet
from penstock.errors import NothingToExecute

if TYPE_CHECKING:
    from penstock.gelly.graph import Graph


class GraphAlgorithm(ABC):
    """Computes a data set, a graph or an analytic from a graph."""

    @abstractmethod
    def run(self, graph: Graph) -> Any:
        """Return the result for a graph. Nothing is computed before it is wanted."""


class GraphAnalytic(GraphAlgorithm):
    """Computes one result for a whole graph, by a job of its own."""

    _data: DataSet | None = None
    _result: Any = None

    def run(self, graph: Graph) -> Self:
        """Bind the analytic to a graph, and return it. `execute` computes the result."""
        self._data = self.prepare(graph)
        self._result = None
        return self

    @abstractmethod
    def prepare(self, graph: Graph) -> DataSet:
        """Return the parts of the result."""

    @abstractmethod
    def summarize(self, parts: list[Any]) -> Any:
        """Return the result, given the parts that a job has computed."""

    def execute(self) -> Any:
        """Run a job, and return the result."""
        if self._data is None:
            raise NothingToExecute(f"{type(self).__name__} has no graph yet: call graph.run(analytic)")
        self._result = self.summarize(self._data.collect())
        return self._result

    def get_result(self) -> Any:
        """Return the result. A job is run if there is none yet."""
        return self.execute() if self._result is None else self._result
