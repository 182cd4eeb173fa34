"""Checks of whole graphs."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

from penstock.gelly.transforming import UnknownIds

if TYPE_CHECKING:
    from penstock.gelly.graph import Graph

__all__ = ["GraphValidator", "InvalidVertexIdsValidator"]


class GraphValidator(ABC):
    """Checks a graph."""

    @abstractmethod
    def validate(self, graph: Graph) -> bool:
        """Return True if the graph is valid."""


class InvalidVertexIdsValidator(GraphValidator):
    """Checks that the vertices of all edges are in the graph."""

    def validate(self, graph: Graph) -> bool:
        """Return True if all edges begin and end at vertices of the graph."""
        ends = graph.get_edges().flat_map(lambda edge: [(edge[0],), (edge[1],)])
        unknown = graph.get_vertices().co_group(ends).where(0).equal_to(0).with_(UnknownIds())
        return not unknown.first(1).collect()
