"""The base of physical nodes: plain data that describes an operator of a query."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from penstock.table.logical.nodes import Columns, Relation
from penstock.table.types.arrow_forms import arrow_schema

INSERTS, ALL_CHANGES = "I", "I,UB,UA,D"


@dataclass(frozen=True, eq=False)
class PhysicalNode:
    """An operator of a query, or a few that always stand together."""

    relation: Relation
    """The relation whose rows the node computes. The uid of the operator follows from it."""
    inputs: tuple[PhysicalNode, ...]
    changelog: bool
    """True if the node can send more than inserts. The last column of a batch then has the kinds of change."""

    @property
    def columns(self) -> Columns:
        """The columns of the output."""
        return self.relation.columns

    @property
    def schema(self) -> pa.Schema:
        """The schema of the output's batches."""
        return arrow_schema(self.columns, self.changelog)

    @property
    def mode(self) -> str:
        """The kinds of change that the node can send."""
        return ALL_CHANGES if self.changelog else INSERTS

    def details(self) -> str:
        """Return the text in brackets in an explanation."""
        return self.relation.details()


class PassingNode(PhysicalNode):
    """A node whose output has the columns of its input."""

    @property
    def columns(self) -> Columns:
        return self.inputs[0].columns

    def details(self) -> str:
        return ""


def explain(node: PhysicalNode, modes: bool, depth: int = 0) -> str:
    """Return a tree of nodes as text, one node a line."""
    details = [text for text in (node.details(), f"changelogMode=[{node.mode}]" if modes else "") if text]
    line = f"{'   ' * (depth - 1)}{'+- ' if depth else ''}{type(node).__name__}({', '.join(details)})"
    return "\n".join([line, *(explain(part, modes, depth + 1) for part in node.inputs)])
