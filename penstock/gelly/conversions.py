"""Graphs from and to networkx and igraph."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from penstock.errors import InvalidArgument, MissingDependency
from penstock.gelly.elements import Edge, Vertex

if TYPE_CHECKING:
    from penstock.gelly.graph_base import GraphBase


def import_installed(library: str, method: str) -> Any:
    """Import a library that is not part of any extra."""
    try:
        return import_module(library)
    except ImportError as error:
        raise MissingDependency(f"{method} needs {library}: pip install {library}") from error


def value_of(fields: dict[str, Any]) -> Any:
    """Return the value for the columns beside the ids: None, the one value, or a dict of several."""
    if not fields:
        return None
    return fields if len(fields) > 1 else next(iter(fields.values()))


def attributes_of(value: Any) -> dict[str, Any]:
    """Return the attributes of a vertex or an edge for a value."""
    if isinstance(value, dict):
        return value
    return {} if value is None else {"value": value}


def elements_of_networkx(graph: Any) -> tuple[list[Vertex], list[Edge]]:
    """Return the vertices and edges of a graph of networkx. Edges of an undirected one come in both directions."""
    networkx = import_installed("networkx", "from_networkx")
    if not isinstance(graph, networkx.Graph):
        raise InvalidArgument(f"from_networkx takes a graph of networkx, not {graph!r}")
    vertices = [Vertex(vertex_id, value_of(data)) for vertex_id, data in graph.nodes(data=True)]
    edges = [Edge(source, target, value_of(data)) for source, target, data in graph.edges(data=True)]
    if not graph.is_directed():
        edges += [edge.reverse() for edge in edges if edge[0] != edge[1]]
    return vertices, edges


def to_networkx(graph: GraphBase) -> Any:
    """Return the graph as a MultiDiGraph of networkx. See Graph.to_networkx."""
    made = import_installed("networkx", "to_networkx").MultiDiGraph()
    for vertex_id, value in graph.get_vertices().collect():
        made.add_node(vertex_id, **attributes_of(value))
    for source, target, value in graph.get_edges().collect():
        made.add_edge(source, target, **attributes_of(value))
    return made


def elements_of_igraph(graph: Any) -> tuple[list[Vertex], list[Edge]]:
    """Return the vertices and edges of a graph of igraph. Ids are the names of vertices, or else their numbers."""
    igraph = import_installed("igraph", "from_igraph")
    if not isinstance(graph, igraph.Graph):
        raise InvalidArgument(f"from_igraph takes a graph of igraph, not {graph!r}")
    ids = graph.vs["name"] if "name" in graph.vs.attributes() else list(range(graph.vcount()))
    others = [{name: value for name, value in each.attributes().items() if name != "name"} for each in graph.vs]
    vertices = [Vertex(vertex_id, value_of(fields)) for vertex_id, fields in zip(ids, others, strict=True)]
    edges = [Edge(ids[each.source], ids[each.target], value_of(each.attributes())) for each in graph.es]
    if not graph.is_directed():
        edges += [edge.reverse() for edge in edges if edge[0] != edge[1]]
    return vertices, edges


def to_igraph(graph: GraphBase) -> Any:
    """Return the graph as a directed graph of igraph. See Graph.to_igraph."""
    igraph = import_installed("igraph", "to_igraph")
    vertices, edges = graph.get_vertices().collect(), graph.get_edges().collect()
    numbers = {vertex[0]: number for number, vertex in enumerate(vertices)}
    made = igraph.Graph(len(vertices), [(numbers[edge[0]], numbers[edge[1]]) for edge in edges], directed=True)
    made.vs["name"] = [vertex[0] for vertex in vertices]
    made.vs["value"] = [vertex[1] for vertex in vertices]
    made.es["value"] = [edge[2] for edge in edges]
    return made
