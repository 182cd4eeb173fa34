"""Relations: the logical plan of a query. Trees of plain data that can be compared, printed and pickled."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any

from penstock.table.logical.rex import AggregateCall, InputRef, Literal, OverSpec, Rex, SortKey
from penstock.table.types.data_types import DataType

ROWTIME, PROCTIME = "ROWTIME", "PROCTIME"


@dataclass(frozen=True)
class Column:
    """A column of a relation."""

    name: str
    type: DataType
    time: str | None = None
    """ROWTIME or PROCTIME if it is a time attribute: windows and temporal operators can use it."""

    def __str__(self) -> str:
        return f"{self.name} {self.type.as_sql()}" + (f" *{self.time}*" if self.time else "")


Columns = tuple[Column, ...]


@dataclass(frozen=True)
class Relation:
    """A node of the plan. `columns` is what comes out of it."""

    columns: Columns

    def inputs(self) -> tuple[Relation, ...]:
        return tuple(value for part in fields(self) if isinstance(value := getattr(self, part.name), Relation))

    def with_inputs(self, inputs: Sequence[Relation]) -> Relation:
        """The same with other inputs, in the order of `inputs()`."""
        names = [part.name for part in fields(self) if isinstance(getattr(self, part.name), Relation)]
        changes: dict[str, Any] = dict(zip(names, inputs, strict=True))
        return replace(self, **changes)

    def names(self) -> list[str]:
        return [column.name for column in self.columns]

    def types(self) -> list[DataType]:
        return [column.type for column in self.columns]

    def ref(self, index: int) -> InputRef:
        """A reference to a column of this relation, for what is built upon it."""
        return InputRef(self.columns[index].type, index)

    def details(self) -> str:
        """What an explanation shows in brackets."""
        return ""


# --- leaves ---
@dataclass(frozen=True)
class Scan(Relation):
    """A table of a catalog that has a connector. Computed columns and the watermark are nodes above it."""

    path: tuple[str, ...]
    """Catalog, database, table."""
    table: Any = field(compare=False)
    """The resolved table: a penstock.table.catalogs.memory_catalog entry with schema and options."""
    changelog: bool = False
    """Whether it can bring more than inserts."""
    upsert_key: tuple[int, ...] | None = None
    """For a source of upserts: the columns of its key. No UPDATE_BEFORE comes, and a DELETE may hold the key alone."""
    metadata: tuple[tuple[int, str], ...] = ()
    """Columns that come from the connector and not from the record, with the key of the metadata."""
    every_version: bool = False
    """Of changes: whether each row of a key comes out, even if others of the same epoch replace it, and no -U."""
    pruning: Rex | None = None
    """A condition over the columns by which the table is partitioned: others need not be read, but may be."""

    def details(self) -> str:
        wanted = "" if self.pruning is None else f", partitions=[{self.pruning}]"
        return f"table=[{'.'.join(self.path)}], fields=[{', '.join(self.names())}]{wanted}"


@dataclass(frozen=True)
class StreamScan(Relation):
    """A DataStream of the same program."""

    stream: Any = field(compare=False)
    name: str = ""
    changelog: bool = False
    upsert_key: tuple[int, ...] | None = None
    metadata: tuple[tuple[int, str], ...] = ()
    """Column and key; the key "rowtime" is the timestamp of the record."""
    primary_key: tuple[int, ...] = ()
    """The columns of the key that the schema declares."""
    every_version: bool = False
    """Of changes: whether each row of a key comes out, even if others of the same epoch replace it, and no -U."""

    def details(self) -> str:
        return f"stream=[{self.name}], fields=[{', '.join(self.names())}]"


@dataclass(frozen=True)
class Values(Relation):
    """Rows that the query itself contains, or that were given as Python values."""

    rows: tuple[tuple[Literal | Any, ...], ...]
    """Python values in the form that Literal.value has."""

    def details(self) -> str:
        return f"{len(self.rows)} rows"


# --- one input ---
@dataclass(frozen=True)
class Project(Relation):
    input: Relation
    exprs: tuple[Rex, ...]

    def details(self) -> str:
        return ", ".join(f"{expr} AS {name}" for expr, name in zip(self.exprs, self.names(), strict=True))


@dataclass(frozen=True)
class Filter(Relation):
    input: Relation
    condition: Rex

    def details(self) -> str:
        return str(self.condition)


@dataclass(frozen=True)
class Watermark(Relation):
    """Makes a column the event time of the rows, and sends watermarks."""

    input: Relation
    rowtime: int
    expr: Rex | None
    """The watermark that a row allows for, a TIMESTAMP over the columns of the input. None: as the source sends it."""

    def details(self) -> str:
        return f"rowtime=[{self.columns[self.rowtime].name}], watermark=[{self.expr}]"


@dataclass(frozen=True)
class Aggregate(Relation):
    """GROUP BY. Out come the keys, then the calls. No keys: one group, which exists even without rows in batch mode.

    With a WindowTable below and its window_start and window_end among the keys the planner makes a window aggregate.
    """

    input: Relation
    keys: tuple[int, ...]
    calls: tuple[AggregateCall, ...]
    ttl: int | None = None
    """How many milliseconds a group is kept; None for as long as the option says."""

    def details(self) -> str:
        return f"by={list(self.keys)}, {', '.join(map(str, self.calls))}"


@dataclass(frozen=True)
class Expand(Relation):
    """Grouping sets: every row once for each set, with the keys outside the set NULL, and the set's id as last column.

    The id has a bit for each of `keys`, the first one highest, that is 1 if the key is not in the set.
    """

    input: Relation
    keys: tuple[int, ...]
    sets: tuple[tuple[int, ...], ...]

    def details(self) -> str:
        return f"sets={[list(one) for one in self.sets]}"


@dataclass(frozen=True)
class WindowTable(Relation):
    """A window table-valued function: the columns of the input, then window_start, window_end, window_time."""

    input: Relation
    kind: str
    """TUMBLE, HOP, CUMULATE or SESSION."""
    time: int
    """The time attribute; any TIMESTAMP in batch mode."""
    size: int
    """Milliseconds; for SESSION the gap."""
    slide: int = 0
    """HOP: the slide; CUMULATE: the step."""
    offset: int = 0
    partition: tuple[int, ...] = ()
    """SESSION only."""

    def details(self) -> str:
        return f"{self.kind}(time={self.columns[self.time].name}, size={self.size} ms, slide={self.slide} ms)"


@dataclass(frozen=True)
class GroupWindow(Relation):
    """The older group windows: TUMBLE(ts, ...) in GROUP BY, and Table.window(). Out: keys, calls, then properties.

    `properties` are "start", "end", "rowtime", "proctime", in the order in which they come out.
    """

    input: Relation
    kind: str
    """TUMBLE, HOP or SESSION."""
    time: int
    size: int
    slide: int
    keys: tuple[int, ...]
    calls: tuple[AggregateCall, ...]
    properties: tuple[str, ...]
    by_rows: bool = False
    """Whether size and slide are numbers of rows."""

    def details(self) -> str:
        unit = "rows" if self.by_rows else "ms"
        time = self.input.columns[self.time].name
        window = f"{self.kind}(time={time}, size={self.size} {unit}, slide={self.slide} {unit})"
        return f"{window}, by={list(self.keys)}, {', '.join([*map(str, self.calls), *self.properties])}"


@dataclass(frozen=True)
class Over(Relation):
    """The columns of the input, then the calls of every OVER window."""

    input: Relation
    windows: tuple[OverSpec, ...]

    def details(self) -> str:
        return "; ".join(map(str, self.windows))


@dataclass(frozen=True)
class Sort(Relation):
    input: Relation
    keys: tuple[SortKey, ...]
    offset: int = 0
    limit: int | None = None

    def details(self) -> str:
        return f"by=[{', '.join(map(str, self.keys))}], offset={self.offset}, limit={self.limit}"


@dataclass(frozen=True)
class Correlate(Relation):
    """Every row of the input with each row that a table function makes of it; with `outer` also without any."""

    input: Relation
    call: Rex
    """A Call of a table function, or of UNNEST with an array, map or multiset; its type is the RowType that comes."""
    outer: bool = False
    condition: Rex | None = None
    """Over both sides; None for TRUE."""
    ordinality: bool = False
    """UNNEST WITH ORDINALITY: the last column counts from 1."""

    def details(self) -> str:
        extras = [word for word, said in (("LEFT", self.outer), ("WITH ORDINALITY", self.ordinality)) if said]
        return ", ".join([str(self.call), *extras, *([] if self.condition is None else [str(self.condition)])])


@dataclass(frozen=True)
class TableAggregate(Relation):
    """flat_aggregate: keys, then the columns of the rows that a table aggregate function emits for each group."""

    input: Relation
    keys: tuple[int, ...]
    call: AggregateCall
    window: GroupWindow | None = None


@dataclass(frozen=True)
class MatchSpec:
    """What MATCH_RECOGNIZE says.

    `pattern` is a tree of tuples: ("var", name, low, high, greedy), ("seq", part, ...), ("group", tree, low, high,
    greedy); high is None without a limit. In `defines` and `measures` a row is seen through Calls: LAST(var, column,
    n), FIRST(var, column, n), "MATCH_AGG" for aggregates over a variable; see penstock.table.sql.bind.bind_match.
    """

    partition: tuple[int, ...]
    order: tuple[SortKey, ...]
    pattern: Any
    defines: tuple[tuple[str, Rex], ...]
    measures: tuple[tuple[str, Rex], ...]
    skip: tuple[str, str | None]
    """("PAST LAST ROW" | "TO NEXT ROW" | "TO FIRST" | "TO LAST", variable)."""
    within: int | None = None
    all_rows: bool = False
    subsets: tuple[tuple[str, tuple[str, ...]], ...] = ()


@dataclass(frozen=True)
class Match(Relation):
    input: Relation
    spec: MatchSpec

    def details(self) -> str:
        defines = ", ".join(f"{name} AS {rex}" for name, rex in self.spec.defines)
        measures = ", ".join(f"{rex} AS {name}" for name, rex in self.spec.measures)
        return f"by={list(self.spec.partition)}, pattern={self.spec.pattern}, define=[{defines}], measures=[{measures}]"


# --- several inputs ---
@dataclass(frozen=True)
class Join(Relation):
    """A join; SEMI and ANTI bring only the columns of the left.

    The planner makes an interval join, a window join, or a regular one of it. `temporal`: FOR SYSTEM_TIME AS OF a
    time attribute of the left (its column): the version of the right row at that time; a lookup join if that is a
    PROCTIME and the right side is a Scan of a connector that can be looked up in.
    """

    left: Relation
    right: Relation
    kind: str
    """INNER, LEFT, RIGHT, FULL, SEMI or ANTI."""
    condition: Rex | None
    temporal: int | None = None
    version_key: int | None = None
    """The key, on the right side, of a temporal table function: a filter above the join may compare it with the left.
    The optimiser moves that into the condition, and forgets the key."""
    null_aware: bool = False
    """For an ANTI join that stands for NOT IN: a NULL on either side keeps rows out."""
    ttl: tuple[int | None, int | None] = (None, None)
    """How many milliseconds the rows of either side are kept; None for as long as the option says."""

    def details(self) -> str:
        temporal = [] if self.temporal is None else [f"AS OF {self.left.columns[self.temporal].name}"]
        aware = ["NULL-aware"] if self.null_aware else []
        return ", ".join([self.kind, str(self.condition), *temporal, *aware])


@dataclass(frozen=True)
class SetOperation(Relation):
    """UNION, INTERSECT, EXCEPT, with or without ALL."""

    parts: tuple[Relation, ...]
    kind: str
    all: bool

    def inputs(self) -> tuple[Relation, ...]:
        return self.parts

    def with_inputs(self, inputs: Sequence[Relation]) -> Relation:
        return replace(self, parts=tuple(inputs))

    def details(self) -> str:
        return f"{self.kind}{' ALL' if self.all else ''}"


@dataclass(frozen=True)
class Insert(Relation):
    """INSERT INTO a table of a catalog. Its columns are those of the table that are written."""

    input: Relation
    path: tuple[str, ...]
    table: Any = field(compare=False)
    overwrite: bool = False
    static_partition: tuple[tuple[str, Any], ...] = ()
    conflict: str = ""
    """Of ON CONFLICT DO …: NOTHING, ERROR or DEDUPLICATE."""

    def details(self) -> str:
        return ".".join(self.path)


# --- walking ---
def walk_plan(relation: Relation) -> Iterator[Relation]:
    """A relation and everything below it."""
    yield relation
    for part in relation.inputs():
        yield from walk_plan(part)


def rewritten_plan(relation: Relation, change: Callable[[Relation], Relation]) -> Relation:
    """The plan with every relation replaced by what `change` makes of it, from the leaves up."""
    inputs = relation.inputs()
    new = tuple(rewritten_plan(part, change) for part in inputs)
    same = all(one is other for one, other in zip(new, inputs, strict=True))
    return change(relation if same else relation.with_inputs(new))


def explain(relation: Relation, depth: int = 0) -> str:
    """A tree as text, one relation a line."""
    line = f"{'   ' * depth}{'+- ' if depth else ''}{type(relation).__name__}({relation.details()})"
    return "\n".join([line, *(explain(part, depth + 1) for part in relation.inputs())])
