"""Graph: vertices and edges in data sets, with what can be done with them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from penstock.dataset import DataSet, ExecutionEnvironment
from penstock.dataset.plan.checks import check_function, check_type
from penstock.errors import InvalidArgument
from penstock.gelly.algorithms import GraphAlgorithm
from penstock.gelly.conversions import elements_of_igraph, elements_of_networkx, to_igraph, to_networkx
from penstock.gelly.elements import as_bare_edge, as_edge, as_vertex
from penstock.gelly.graph_base import edges_of, is_function, vertices_of
from penstock.gelly.graph_csv_reader import GraphCsvReader
from penstock.gelly.gsa import GSAConfiguration, run_gather_sum_apply
from penstock.gelly.mutations import Mutations
from penstock.gelly.neighborhoods import Neighborhoods
from penstock.gelly.plotting import plot
from penstock.gelly.pregel import VertexCentricConfiguration, run_vertex_centric
from penstock.gelly.spargel import ScatterGatherConfiguration, run_scatter_gather
from penstock.gelly.transforming import InitialVertex, bare_vertex, ends_of
from penstock.gelly.validation import GraphValidator


class Graph(Mutations, Neighborhoods):
    """A directed graph of vertices with an id and a value, and edges with a value.

    Loops and parallel edges are kept. Methods give new graphs and data sets; nothing runs before a result is wanted.
    """

    # --- making graphs ---
    @staticmethod
    def from_collection(*arguments: Any) -> Graph:
        """Return a graph of collections: (vertices, edges, env), (edges, env) or (edges, initializer, env)."""
        vertices, edges, initializer, env = _parts("from_collection", arguments)
        data = env.from_collection(as_edge(edge) for edge in _collection(edges))
        if vertices is None:
            return _from_edges(data, initializer, env)
        return Graph(env.from_collection(as_vertex(vertex) for vertex in _collection(vertices)), data, env)

    @staticmethod
    def from_dataset(*arguments: Any) -> Graph:
        """Return a graph of data sets: (vertices, edges, env), (edges, env) or (edges, initializer, env).

        The elements are Vertex and Edge objects, or tuples (id, value) and (source, target, value).
        """
        vertices, edges, initializer, env = _parts("from_dataset", arguments)
        check_type("from_dataset", "edges", edges, DataSet)
        if vertices is None:
            return _from_edges(edges_of(edges), initializer, env)
        check_type("from_dataset", "vertices", vertices, DataSet)
        return Graph(vertices_of(vertices), edges_of(edges), env)

    @staticmethod
    def from_tuple_dataset(*arguments: Any) -> Graph:
        """Return a graph of data sets of tuples (id, value) and (source, target, value), as from_dataset does."""
        return Graph.from_dataset(*arguments)

    @staticmethod
    def from_tuple2_dataset(*arguments: Any) -> Graph:
        """Return a graph of a data set of tuples (source, target): (edges, env) or (edges, initializer, env)."""
        vertices, edges, initializer, env = _parts("from_tuple2_dataset", arguments)
        if vertices is not None:
            raise InvalidArgument("from_tuple2_dataset takes (edges, env) or (edges, initializer, env)")
        check_type("from_tuple2_dataset", "edges", edges, DataSet)
        return _from_edges(edges.map(as_bare_edge).name("Edges"), initializer, env)

    @staticmethod
    def from_csv_reader(*arguments: Any) -> GraphCsvReader:
        """Return a reader of files: (vertices path, edges path, env), (edges path, env) or with an initializer."""
        vertices, edges, initializer, env = _parts("from_csv_reader", arguments)
        return GraphCsvReader(vertices, edges, initializer, env)

    @staticmethod
    def from_networkx(graph: Any, env: ExecutionEnvironment) -> Graph:
        """Return a graph of one of networkx. An undirected one gets its edges in both directions.

        The value is that of the one attribute, or a dict of several, or None.
        """
        return Graph.from_collection(*elements_of_networkx(graph), env)

    @staticmethod
    def from_igraph(graph: Any, env: ExecutionEnvironment) -> Graph:
        """Return a graph of one of igraph, as from_networkx does. Ids are the names of vertices, or their numbers."""
        return Graph.from_collection(*elements_of_igraph(graph), env)

    # --- for one machine ---
    def to_networkx(self) -> Any:
        """Run jobs, and return a MultiDiGraph of networkx. A value that is no dict becomes the attribute `value`."""
        return to_networkx(self)

    def to_igraph(self) -> Any:
        """Run jobs, and return a directed graph of igraph, with the attributes `name` (the id) and `value`."""
        return to_igraph(self)

    def plot(self, axes: Any = None, with_values: bool = False, seed: int = 0) -> Any:
        """Run jobs, draw the graph with matplotlib, and return the axes.

        Edges in both directions are one line. At most 500 vertices can be drawn. `seed` changes the places of vertices.
        """
        return plot(self, axes, with_values, seed)

    # --- iterations ---
    def run_vertex_centric_iteration(
        self,
        compute: Any,
        combiner: Any,
        max_iterations: int,
        configuration: VertexCentricConfiguration | None = None,
    ) -> Graph:
        """Let vertices compute and send messages, superstep by superstep, until there are no messages."""
        vertices = run_vertex_centric(self, compute, combiner, max_iterations, configuration)
        return self.with_data(vertices=vertices)

    def run_scatter_gather_iteration(
        self, scatter: Any, gather: Any, max_iterations: int, configuration: ScatterGatherConfiguration | None = None
    ) -> Graph:
        """Let vertices that changed send messages, and those with messages change, until none changes."""
        return self.with_data(vertices=run_scatter_gather(self, scatter, gather, max_iterations, configuration))

    def run_gather_sum_apply_iteration(
        self, gather: Any, sum: Any, apply: Any, max_iterations: int, configuration: GSAConfiguration | None = None
    ) -> Graph:
        """Let vertices gather values of neighbours that changed, sum them up and apply them, until none changes."""
        vertices = run_gather_sum_apply(self, gather, sum, apply, max_iterations, configuration)
        return self.with_data(vertices=vertices)

    # --- algorithms ---
    def run(self, algorithm: GraphAlgorithm) -> Any:
        """Run an algorithm, and return its result: a data set, a graph, or the analytic itself."""
        check_type("run", "algorithm", algorithm, GraphAlgorithm)
        return algorithm.run(self)

    def validate(self, validator: GraphValidator) -> bool:
        """Run a job, and return True if the graph is valid."""
        check_type("validate", "validator", validator, GraphValidator)
        return validator.validate(self)


def _parts(method: str, arguments: tuple[Any, ...]) -> tuple[Any, Any, Any, ExecutionEnvironment]:
    """Return vertices, edges, initializer and environment, of which vertices and initializer may be None."""
    *given, env = arguments or (None,)
    if not isinstance(env, ExecutionEnvironment) or not 1 <= len(given) <= 2:
        raise InvalidArgument(
            f"{method} takes (vertices, edges, env), (edges, env) or (edges, initializer, env) with an "
            f"ExecutionEnvironment, not {len(arguments)} arguments that end with {env!r}"
        )
    if len(given) == 1:
        return None, given[0], None, env
    if is_function(given[1]):
        check_function(method, given[1], "map")
        return None, given[0], given[1], env
    return given[0], given[1], None, env


def _collection(elements: Any) -> Iterable[Any]:
    if isinstance(elements, (str, bytes, DataSet)) or not isinstance(elements, Iterable):
        raise InvalidArgument(f"from_collection takes collections of vertices and edges, not {elements!r}")
    return elements


def _from_edges(edges: DataSet, initializer: Any, env: ExecutionEnvironment) -> Graph:
    ids = edges.flat_map(ends_of).distinct()
    if initializer is None:
        return Graph(ids.map(bare_vertex), edges, env)
    return Graph(ids.map(InitialVertex(initializer, "map")), edges, env)
