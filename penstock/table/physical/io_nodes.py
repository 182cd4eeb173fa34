"""Physical nodes of sources, sinks, and operators that process rows one by one."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from penstock.table.connectors import Connector, Declared
from penstock.table.logical.nodes import (
    Expand as ExpandRelation,
)
from penstock.table.logical.nodes import (
    FromChangelog as FromChangelogRelation,
)
from penstock.table.logical.nodes import (
    Insert,
    Relation,
    Scan,
    StreamScan,
    Watermark,
)
from penstock.table.logical.nodes import (
    ToChangelog as ToChangelogRelation,
)
from penstock.table.logical.nodes import (
    Values as ValuesRelation,
)
from penstock.table.logical.optimised_nodes import Calc as CalcRelation
from penstock.table.logical.rex import Rex
from penstock.table.operators.io.constraints import Rules
from penstock.table.physical.physical_node import PassingNode, PhysicalNode


# --- sources ---
@dataclass(frozen=True, eq=False)
class Values(PhysicalNode):
    """Literal rows."""

    relation: ValuesRelation


@dataclass(frozen=True, eq=False)
class SparkSQL(PhysicalNode):
    """Rows that Spark SQL computes. They come as a stream."""

    stream: Any

    def details(self) -> str:
        return ""


@dataclass(frozen=True, eq=False)
class DataStreamScan(PhysicalNode):
    """A DataStream of the same program."""

    relation: StreamScan
    versions: bool
    """True if rows are versions of a table, so that each -U is dropped."""


@dataclass(frozen=True, eq=False)
class TableSourceScan(PhysicalNode):
    """A table of a connector."""

    relation: Scan
    connector: Connector
    table: Declared
    versions: bool
    """True if rows are versions of a table, so that each -U is dropped."""


@dataclass(frozen=True, eq=False)
class ChangelogNormalize(PassingNode):
    """The conversion of upserts to a full changelog."""

    key: tuple[int, ...]
    ttl: int
    every_version: bool
    """True if each of several rows of a key in an epoch counts."""
    dated_deletions: bool
    """True if a deletion is sent with the time that it has."""

    def details(self) -> str:
        return f"key={list(self.key)}"


@dataclass(frozen=True, eq=False)
class WatermarkAssigner(PhysicalNode):
    """The source of watermarks. Without an expression, the watermarks of the input pass."""

    relation: Watermark


# --- rows ---
@dataclass(frozen=True, eq=False)
class Calc(PhysicalNode):
    """A filter and a projection."""

    relation: CalcRelation
    condition: Rex | None
    """The condition that is left: a MovingFilter below may have it."""

    def details(self) -> str:
        return replace(self.relation, condition=self.condition).details()


@dataclass(frozen=True, eq=False)
class MovingFilter(PassingNode):
    """A filter over changes that decides by key, as its condition may have another value for a retraction."""

    condition: Rex

    def details(self) -> str:
        return f"where=[{self.condition}]"


@dataclass(frozen=True, eq=False)
class Expand(PhysicalNode):
    """Grouping sets."""

    relation: ExpandRelation


class Renamed(PhysicalNode):
    """A part of a union under the column names and types of the whole."""

    def details(self) -> str:
        return f"fields=[{', '.join(self.relation.names())}]"


class WithKinds(PassingNode):
    """Inserts as a changelog."""


class Union(PhysicalNode):
    """UNION ALL. It has no operator of its own."""


@dataclass(frozen=True, eq=False)
class ToChangelog(PhysicalNode):
    """TO_CHANGELOG."""

    relation: ToChangelogRelation


@dataclass(frozen=True, eq=False)
class FromChangelog(PhysicalNode):
    """FROM_CHANGELOG."""

    relation: FromChangelogRelation


# --- sinks ---
@dataclass(frozen=True, eq=False)
class ConstraintEnforcer(PassingNode):
    """The check of NOT NULL constraints and of the lengths of values."""

    rules: Rules

    def details(self) -> str:
        return ", ".join(self.relation.names())


class WatermarkTimestamps(PassingNode):
    """The current watermark as the timestamp of each row."""


@dataclass(frozen=True, eq=False)
class SinkMaterializer(PassingNode):
    """The choice of the row of each key of a sink: the youngest one."""

    key: tuple[int, ...]
    upsert_key: tuple[int, ...] | None
    """The key of the query's rows."""
    ttl: int

    def details(self) -> str:
        return f"pk={names_of(self.relation, self.key)}"


@dataclass(frozen=True, eq=False)
class CompactingSinkMaterializer(SinkMaterializer):
    """The choice of the row of each key of a sink when the watermark advances."""

    fails: bool
    """True if a conflict is an error. Otherwise the first row stays."""


@dataclass(frozen=True, eq=False)
class SinkShuffle(PassingNode):
    """Rows partitioned by the key of a sink."""

    key: tuple[int, ...]

    def details(self) -> str:
        return f"pk={names_of(self.relation, self.key)}"


@dataclass(frozen=True, eq=False)
class Sink(PhysicalNode):
    """The table of a connector into which a query writes."""

    relation: Insert
    connector: Connector
    table: Declared
    upsert_key: tuple[int, ...]
    """The key of a sink that holds one row of each key and gets changes, or ()."""


def names_of(relation: Relation, positions: tuple[int, ...]) -> str:
    """Return the names of columns as text."""
    names = relation.names()
    return f"[{', '.join(names[position] for position in positions)}]"
