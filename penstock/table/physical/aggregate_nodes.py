"""Physical nodes of aggregates over groups and over windows."""

from __future__ import annotations

from dataclasses import dataclass

from penstock.table.logical.nodes import Aggregate, GroupWindow, TableAggregate, WindowTable
from penstock.table.logical.optimised_nodes import SliceTable as SliceTableRelation
from penstock.table.logical.optimised_nodes import WindowTableAggregate as WindowTableAggregateRelation
from penstock.table.operators.aggregate.functions import Fold, VectorFold
from penstock.table.operators.window.slices import Slicing
from penstock.table.operators.window.window_aggregate import WindowKeys
from penstock.table.physical.physical_node import PassingNode, PhysicalNode


# --- groups ---
@dataclass(frozen=True, eq=False)
class LocalGroupAggregate(PassingNode):
    """The first phase of an aggregate, before the exchange by key."""

    relation: Aggregate
    folds: tuple[Fold, ...]
    signed: bool
    """True if rows can be retracted."""

    def details(self) -> str:
        return self.relation.details()


@dataclass(frozen=True, eq=False)
class LocalSliceAggregate(LocalGroupAggregate):
    """The first phase of an aggregate in slices."""

    windows: WindowKeys


@dataclass(frozen=True, eq=False)
class GroupAggregate(PhysicalNode):
    """GROUP BY without windows."""

    relation: Aggregate
    folds: tuple[Fold, ...]
    signed: bool
    parts_come: bool
    """True if the first phase runs before the exchange."""
    ttl: int


@dataclass(frozen=True, eq=False)
class GroupTableAggregate(PhysicalNode):
    """A table aggregate function over groups."""

    relation: TableAggregate
    ttl: int


# --- window tables ---
@dataclass(frozen=True, eq=False)
class WindowTableFunction(PhysicalNode):
    """TUMBLE, HOP or CUMULATE: each row with each of its windows."""

    relation: WindowTable
    time: int | None
    """The column of the time, or None for processing time."""


class SessionTableFunction(WindowTableFunction):
    """SESSION: each row with its window, when that is over."""


@dataclass(frozen=True, eq=False)
class SliceTable(PhysicalNode):
    """Each row with the end of its slice, or with its own time for sessions."""

    relation: SliceTableRelation
    time: int | None


# --- windows ---
@dataclass(frozen=True, eq=False)
class WindowNode(PhysicalNode):
    """An aggregate over windows."""

    relation: Aggregate
    windows: WindowKeys
    folds: tuple[Fold, ...]
    signed: bool


@dataclass(frozen=True, eq=False)
class WindowAggregate(WindowNode):
    """Each window by itself: for functions that see rows, and for keys that Arrow does not group."""

    parts_come: bool


@dataclass(frozen=True, eq=False)
class SliceAggregate(WindowNode):
    """Slices in columns, which windows share."""

    folds: tuple[VectorFold, ...]
    slicing: Slicing
    parts_come: bool


@dataclass(frozen=True, eq=False)
class SharedSliceAggregate(WindowNode):
    """Slices whose accumulators are merged: for functions that see rows."""

    slicing: Slicing


@dataclass(frozen=True, eq=False)
class SessionAggregate(WindowNode):
    """Sessions, into which rows are merged."""

    folds: tuple[VectorFold, ...]
    gap: int
    """The gap between sessions, in milliseconds."""


@dataclass(frozen=True, eq=False)
class CountWindowAggregate(PhysicalNode):
    """Windows of a number of rows."""

    relation: GroupWindow
    folds: tuple[Fold, ...]


@dataclass(frozen=True, eq=False)
class WindowTableAggregate(PhysicalNode):
    """A table aggregate function over windows."""

    relation: WindowTableAggregateRelation
    windows: WindowKeys
