"""Transformations: the nodes of a program as the user wrote it. Unions, partitionings and side outputs are edges."""

from __future__ import annotations

import enum
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from penstock.graph.partitioning import Partitioning


class Chaining(enum.Enum):
    """Rules for chaining an operator with its neighbours."""

    ALWAYS = "always"
    HEAD = "head"
    NEVER = "never"


@dataclass(frozen=True)
class StreamRef:
    """One stream to read from: a node's output or side output, and how its records are distributed."""

    node: Transformation
    tag: str | None = None
    partitioning: Partitioning | None = None
    """Distribution of the records. None means forward if the parallelism allows it, else rebalance."""


@dataclass(eq=False)
class Transformation:
    """A node: an operator that is not open, its inputs (each a union of streams) and its settings."""

    name: str
    operator: Any
    inputs: Sequence[Sequence[StreamRef]] = ()
    kind: str = "operator"
    parallelism: int | None = None
    max_parallelism: int | None = None
    non_parallel: bool = False
    """True for a source or operator that has no parallel form. Its parallelism is 1."""
    uid: str | None = None
    uid_hash: str | None = None
    is_numbered: bool = True
    """True if automatic uids count this node.

    It is False for operators that a query has only at some parallelisms. The other operators then keep their uids when
    the parallelism changes.
    """
    description: str | None = None
    slot_sharing_group: str | None = None
    chaining: Chaining = Chaining.ALWAYS
    buffer_timeout: int | None = None
    alignment: tuple[str, int] | None = None
    """For a watermark operator, its alignment group and the allowed lead in milliseconds."""

    def upstream(self) -> list[Transformation]:
        """Return the nodes that this one reads from, in the order of its inputs."""
        return [ref.node for refs in self.inputs for ref in refs]


def reachable(roots: Sequence[Transformation]) -> list[Transformation]:
    """Return the roots and everything upstream of them, upstream first. It uses no recursion, as chains can be long."""
    ordered: dict[Transformation, None] = {}
    stack: list[tuple[Transformation, bool]] = [(root, False) for root in reversed(roots)]
    while stack:
        node, expanded = stack.pop()
        if node in ordered:
            continue
        if expanded:
            ordered[node] = None
            continue
        stack.append((node, True))
        stack.extend((above, False) for above in reversed(node.upstream()) if above not in ordered)
    return list(ordered)
