"""Physical nodes that depend on an order of rows: Top-N, deduplication, ORDER BY, LIMIT, OVER, MATCH_RECOGNIZE."""

from __future__ import annotations

from dataclasses import dataclass

from penstock.table.logical.nodes import Correlate as CorrelateRelation
from penstock.table.logical.nodes import Match as MatchRelation
from penstock.table.logical.nodes import Over, Sort
from penstock.table.logical.optimised_nodes import Deduplicate as DeduplicateRelation
from penstock.table.logical.optimised_nodes import TopN
from penstock.table.logical.rex import OverSpec
from penstock.table.operators.rank.top_n import TopNSpec
from penstock.table.operators.window.window_assignment import WindowTime
from penstock.table.physical.physical_node import PhysicalNode


# --- ranks ---
@dataclass(frozen=True, eq=False)
class Rank(PhysicalNode):
    """Top-N of each partition."""

    relation: TopN
    spec: TopNSpec
    ttl: int


@dataclass(frozen=True, eq=False)
class WindowRank(PhysicalNode):
    """Top-N of each window."""

    relation: TopN
    spec: TopNSpec
    keys: tuple[int, ...]
    """The columns of the partition that do not belong to the window."""
    bounds: tuple[int, ...]
    """The columns of the partition that belong to the window."""
    end: int
    """The column of the window's end."""
    time: WindowTime


@dataclass(frozen=True, eq=False)
class Deduplicate(PhysicalNode):
    """The first or the last row of each partition, by time."""

    relation: DeduplicateRelation
    time: int | None
    """The column of the time, or None for processing time."""
    ttl: int


# --- order ---
@dataclass(frozen=True, eq=False)
class SortLimit(PhysicalNode):
    """ORDER BY with LIMIT, or LIMIT over changes, in streaming mode."""

    relation: Sort
    spec: TopNSpec
    ttl: int


@dataclass(frozen=True, eq=False)
class Limit(PhysicalNode):
    """The first rows that arrive."""

    relation: Sort
    limit: int


@dataclass(frozen=True, eq=False)
class SortAtEnd(PhysicalNode):
    """ORDER BY and LIMIT over all rows, in BATCH mode."""

    relation: Sort


@dataclass(frozen=True, eq=False)
class TemporalSort(PhysicalNode):
    """ORDER BY time in streaming mode."""

    relation: Sort
    time: int | None
    """The column of the time, or None for processing time, by which rows are in order already."""


# --- OVER ---
@dataclass(frozen=True, eq=False)
class OverNode(PhysicalNode):
    """One window of OVER."""

    relation: Over

    @property
    def window(self) -> OverSpec:
        """The window."""
        return self.relation.windows[0]


class OverAtEnd(OverNode):
    """A window over all rows of a partition, in BATCH mode."""


@dataclass(frozen=True, eq=False)
class OverAggregate(OverNode):
    """A window in order of time."""

    time: int | None
    ttl: int


@dataclass(frozen=True, eq=False)
class ChangingOver(OverNode):
    """A window in another order than time: a row may change the values of rows behind it."""

    ttl: int


# --- several rows or tables ---
@dataclass(frozen=True, eq=False)
class Correlate(PhysicalNode):
    """LATERAL or UNNEST."""

    relation: CorrelateRelation


@dataclass(frozen=True, eq=False)
class Match(PhysicalNode):
    """MATCH_RECOGNIZE: rows become events, events become matches, and matches become rows."""

    relation: MatchRelation
    time: int | None
    """The column of the time, or None for processing time."""
