"""GraphCsvReader: graphs from files whose lines have fields."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from penstock.dataset import ExecutionEnvironment
from penstock.errors import ProgramError

if TYPE_CHECKING:
    from penstock.gelly.graph import Graph

_OPTIONS = (
    "line_delimiter",
    "field_delimiter",
    "parse_quoted_strings",
    "ignore_comments",
    "include_fields",
    "ignore_first_line",
    "ignore_invalid_lines",
)


class GraphCsvReader:
    """Says how lines become vertices and edges. A method with the types of the fields ends it.

    The options are those of CsvReader, with `_vertices` or `_edges` at the end: `ignore_first_line_edges()`.
    """

    def __init__(self, vertices_path: str | None, edges_path: str, initializer: Any, env: ExecutionEnvironment) -> None:
        self._edges = env.read_csv_file(edges_path)
        self._vertices = None if vertices_path is None else env.read_csv_file(vertices_path)
        self._initializer = initializer
        self._env = env

    def __getattr__(self, name: str) -> Callable[..., GraphCsvReader]:
        option, _, side = name.rpartition("_")
        if option not in _OPTIONS or side not in ("vertices", "edges"):
            raise AttributeError(f"GraphCsvReader has no option {name!r}")
        reader = self._edges if side == "edges" else self._vertices
        if reader is None:
            raise ProgramError(f"{name}: the graph is read from edges alone")

        def set_option(*arguments: Any) -> GraphCsvReader:
            getattr(reader, option)(*arguments)
            return self

        return set_option

    def types(self, key: type, vertex_value: type, edge_value: type) -> Graph:
        """Read vertices (id, value) and edges (source, target, value).

        The values of the vertices come from a file of vertices, or from an initializer.
        """
        from penstock.gelly.graph import Graph

        edges = self._edges.types(key, key, edge_value)
        if self._vertices is not None:
            return Graph.from_tuple_dataset(self._vertices.types(key, vertex_value), edges, self._env)
        if self._initializer is None:
            raise ProgramError("types reads values of vertices: give a file of vertices or an initializer")
        return Graph.from_tuple_dataset(edges, self._initializer, self._env)

    def edge_types(self, key: type, edge_value: type) -> Graph:
        """Read edges (source, target, value). The vertices have no values."""
        from penstock.gelly.graph import Graph

        self._check_no_values("edge_types")
        return Graph.from_tuple_dataset(self._edges.types(key, key, edge_value), self._env)

    def key_type(self, key: type) -> Graph:
        """Read edges (source, target). Neither they nor the vertices have values."""
        from penstock.gelly.graph import Graph

        self._check_no_values("key_type")
        return Graph.from_tuple2_dataset(self._edges.types(key, key), self._env)

    def vertex_types(self, key: type, vertex_value: type) -> Graph:
        """Read vertices (id, value) and edges (source, target), which have no values."""
        from penstock.gelly.graph import Graph

        edges = self._edges.types(key, key)
        if self._vertices is not None:
            bare = edges.map(lambda edge: (*edge, None))
            return Graph.from_tuple_dataset(self._vertices.types(key, vertex_value), bare, self._env)
        if self._initializer is None:
            raise ProgramError("vertex_types reads values of vertices: give a file of vertices or an initializer")
        return Graph.from_tuple2_dataset(edges, self._initializer, self._env)

    def _check_no_values(self, method: str) -> None:
        if self._vertices is not None or self._initializer is not None:
            raise ProgramError(f"{method} reads no values of vertices, and the reader was given some: call types(...)")
