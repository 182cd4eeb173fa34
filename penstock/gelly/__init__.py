"""Gelly: graphs on data sets, with iterations over their vertices and a library of algorithms.

env = ExecutionEnvironment.get_execution_environment()
graph = Graph.from_collection([Edge("ann", "bob", None), Edge("bob", "eve", None)], env)
graph.get_undirected().get_degrees().print()
"""

from penstock.gelly.algorithms import GraphAlgorithm, GraphAnalytic
from penstock.gelly.elements import Edge, EdgeDirection, Triplet, Vertex
from penstock.gelly.functions import (
    EdgeJoinFunction,
    EdgesFunction,
    EdgesFunctionWithVertexValue,
    NeighborsFunction,
    NeighborsFunctionWithVertexValue,
    ReduceEdgesFunction,
    ReduceNeighborsFunction,
    TranslateFunction,
    VertexJoinFunction,
)
from penstock.gelly.graph import Graph
from penstock.gelly.graph_csv_reader import GraphCsvReader

__all__ = [
    "Edge",
    "EdgeDirection",
    "EdgeJoinFunction",
    "EdgesFunction",
    "EdgesFunctionWithVertexValue",
    "Graph",
    "GraphAlgorithm",
    "GraphAnalytic",
    "GraphCsvReader",
    "NeighborsFunction",
    "NeighborsFunctionWithVertexValue",
    "ReduceEdgesFunction",
    "ReduceNeighborsFunction",
    "TranslateFunction",
    "Triplet",
    "Vertex",
    "VertexJoinFunction",
]
