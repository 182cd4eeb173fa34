"""Physical nodes of joins and set operations."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from penstock.table.logical.nodes import Join as JoinRelation
from penstock.table.logical.nodes import SetOperation as SetOperationRelation
from penstock.table.logical.rex import Rex
from penstock.table.operators.join.interval_join_operator import Interval
from penstock.table.operators.join.lookup_join import LookedUp
from penstock.table.operators.join.regular_join import JoinSpec
from penstock.table.operators.window.window_assignment import WindowTime
from penstock.table.physical.physical_node import PhysicalNode


@dataclass(frozen=True, eq=False)
class JoinNode(PhysicalNode):
    """A join of two inputs by key."""

    relation: JoinRelation
    spec: JoinSpec


class AppendJoin(JoinNode):
    """An inner join of inputs that only grow, whose state does not expire."""


@dataclass(frozen=True, eq=False)
class Join(JoinNode):
    """A regular join."""

    ttl: tuple[int, int]
    """The time to live of the rows of each side, in milliseconds."""


@dataclass(frozen=True, eq=False)
class IntervalJoin(JoinNode):
    """A join whose condition bounds the distance of two times."""

    interval: Interval


@dataclass(frozen=True, eq=False)
class WindowJoin(JoinNode):
    """A join of rows of the same window."""

    bounds: tuple[tuple[int, int], tuple[int, int]]
    """The columns of start and end on both sides."""
    time: WindowTime


@dataclass(frozen=True, eq=False)
class TemporalJoin(JoinNode):
    """A join with the version of a row at a time."""

    times: tuple[int, int]
    """The columns of the time on both sides."""
    ttl: int


@dataclass(frozen=True, eq=False)
class LookupJoin(PhysicalNode):
    """A join with rows that are looked up by key."""

    relation: JoinRelation
    lookup: Any
    """The connector's lookup."""
    keys: tuple[int, ...]
    right: LookedUp
    condition: Rex | None


@dataclass(frozen=True, eq=False)
class MaterializedLookupJoin(LookupJoin):
    """A lookup join that retracts its own output, even if the table has changed since."""

    kept_by: tuple[int, ...]
    """The columns by which results are kept."""
    ttl: int


@dataclass(frozen=True, eq=False)
class SetOperation(PhysicalNode):
    """INTERSECT or EXCEPT of two inputs."""

    relation: SetOperationRelation
    ttl: int
