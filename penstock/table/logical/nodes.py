"""Relations: the logical plan of a query. Trees of plain data that can be compared, printed and pickled."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any

from penstock.table.logical.kinds import JoinKind, SetKind, WindowKind
from penstock.table.logical.rex import AggregateCall, InputRef, Literal, OverSpec, Rex, SortKey
from penstock.table.logical.row_patterns import RowPattern
from penstock.table.types.data_types import DataType

ROWTIME, PROCTIME = "ROWTIME", "PROCTIME"


@dataclass(frozen=True)
class Column:
    """A column of a relation."""

    name: str
    type: DataType
    time: str | None = None
    """ROWTIME or PROCTIME if it is a time attribute, which windows and temporal operators can use."""

    def __str__(self) -> str:
        return f"{self.name} {self.type.as_sql()}" + (f" *{self.time}*" if self.time else "")


Columns = tuple[Column, ...]


@dataclass(frozen=True)
class Relation:
    """A node of the plan. `columns` are the columns of its output."""

    columns: Columns

    def inputs(self) -> tuple[Relation, ...]:
        """Return the relations that this one reads."""
        return tuple(value for part in fields(self) if isinstance(value := getattr(self, part.name), Relation))

    def with_inputs(self, inputs: Sequence[Relation]) -> Relation:
        """Return the same relation with other inputs, in the order of `inputs()`."""
        names = [part.name for part in fields(self) if isinstance(getattr(self, part.name), Relation)]
        changes: dict[str, Any] = dict(zip(names, inputs, strict=True))
        return replace(self, **changes)

    def names(self) -> list[str]:
        """Return the names of the columns."""
        return [column.name for column in self.columns]

    def types(self) -> list[DataType]:
        """Return the types of the columns."""
        return [column.type for column in self.columns]

    def ref(self, index: int) -> InputRef:
        """Return a reference to a column of this relation, for relations above it."""
        return InputRef(self.columns[index].type, index)

    def details(self) -> str:
        """Return the text in brackets in an explanation."""
        return ""


# --- leaves ---
@dataclass(frozen=True)
class Scan(Relation):
    """A table of a catalog with a connector. Computed columns and the watermark are nodes above it."""

    path: tuple[str, ...]
    """Catalog, database and table."""
    table: Any = field(compare=False)
    """The resolved table: an entry of penstock.table.catalogs.memory_catalog with schema and options."""
    changelog: bool = False
    """True if it can send more than inserts."""
    upsert_key: tuple[int, ...] | None = None
    """The columns of the key of a source of upserts. It sends no -U, and a -D may have only the key."""
    metadata: tuple[tuple[int, str], ...] = ()
    """Columns that come from the connector and not from the record, with the key of the metadata."""
    every_version: bool = False
    """For a changelog, True if all versions of a row are sent, even those replaced in the same epoch, and no -U."""
    dated_deletions: bool = False
    """For upserts, True if the time column of a -D is the time of the deletion, and not that of the deleted row."""
    pruning: Rex | None = None
    """A condition over the partition columns. The source may skip other partitions, but need not."""

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
    """Columns and keys of metadata. The key "rowtime" is the timestamp of the record."""
    primary_key: tuple[int, ...] = ()
    """The columns of the key that the schema declares."""
    every_version: bool = False
    """For a changelog, True if all versions of a row are sent, even those replaced in the same epoch, and no -U."""
    dated_deletions: bool = False
    """For upserts, True if the time column of a -D is the time of the deletion, and not that of the deleted row."""

    def details(self) -> str:
        return f"stream=[{self.name}], fields=[{', '.join(self.names())}]"


@dataclass(frozen=True)
class Values(Relation):
    """Rows of the query itself, or rows that were given as Python values."""

    rows: tuple[tuple[Literal | Any, ...], ...]
    """Python values in the form of Literal.value."""

    def details(self) -> str:
        return f"{len(self.rows)} rows"


# --- one input ---
@dataclass(frozen=True)
class Project(Relation):
    """Computes expressions over the columns of the input."""

    input: Relation
    exprs: tuple[Rex, ...]

    def details(self) -> str:
        return ", ".join(f"{expr} AS {name}" for expr, name in zip(self.exprs, self.names(), strict=True))


@dataclass(frozen=True)
class Filter(Relation):
    """Keeps the rows for which a condition is TRUE."""

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
    """The watermark that a row allows, as a TIMESTAMP over the input's columns.

    None for the watermarks of the source.
    """

    def details(self) -> str:
        return f"rowtime=[{self.columns[self.rowtime].name}], watermark=[{self.expr}]"


@dataclass(frozen=True)
class Aggregate(Relation):
    """GROUP BY. The output has the keys, then the calls.

    Without keys there is one group, which exists in BATCH mode even without rows. If the input is a WindowTable and the
    keys have its window_start and window_end, the planner makes a window aggregate.
    """

    input: Relation
    keys: tuple[int, ...]
    calls: tuple[AggregateCall, ...]
    ttl: int | None = None
    """The time to live of a group, in milliseconds, or None for the option's."""

    def details(self) -> str:
        return f"by={list(self.keys)}, {', '.join(map(str, self.calls))}"


@dataclass(frozen=True)
class Expand(Relation):
    """Grouping sets: every row occurs once for each set, with NULL in the keys outside of the set.

    The last column is the id of the set. The id has a bit for each of `keys`, the first one highest, that is 1 if the
    key is not in the set.
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
    kind: WindowKind
    time: int
    """The time attribute, or any TIMESTAMP in BATCH mode."""
    size: int
    """The size in milliseconds, or the gap of SESSION."""
    slide: int = 0
    """The slide of HOP or the step of CUMULATE, in milliseconds."""
    offset: int = 0
    partition: tuple[int, ...] = ()
    """The keys of SESSION."""

    def details(self) -> str:
        return f"{self.kind}(time={self.columns[self.time].name}, size={self.size} ms, slide={self.slide} ms)"


@dataclass(frozen=True)
class ToChangelog(Relation):
    """TO_CHANGELOG: each change of the input is a row, with the code of its kind in the first column."""

    input: Relation
    codes: tuple[tuple[int, str], ...]
    """Values of RowKind with their codes. Changes of other kinds are left out."""

    def details(self) -> str:
        return f"op={self.columns[0].name}, codes={dict(self.codes)}"


@dataclass(frozen=True)
class FromChangelog(Relation):
    """FROM_CHANGELOG: each row of the input is a change, whose kind is in a column that the output lacks."""

    input: Relation
    op: int
    """The column of the codes."""
    kinds: tuple[tuple[str, int], ...]
    """Codes with the values of RowKind that they mean."""

    def details(self) -> str:
        return f"op={self.input.columns[self.op].name}, codes={dict(self.kinds)}"


@dataclass(frozen=True)
class GroupWindow(Relation):
    """The older group windows: TUMBLE(ts, ...) in GROUP BY, and Table.window().

    The output has keys, calls, then `properties`: "start", "end", "rowtime", "proctime", in this order of output.
    """

    input: Relation
    kind: WindowKind
    """TUMBLE, HOP or SESSION."""
    time: int
    size: int
    slide: int
    keys: tuple[int, ...]
    calls: tuple[AggregateCall, ...]
    properties: tuple[str, ...]
    by_rows: bool = False
    """True if size and slide are numbers of rows."""

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
    """ORDER BY, OFFSET and LIMIT."""

    input: Relation
    keys: tuple[SortKey, ...]
    offset: int = 0
    limit: int | None = None

    def details(self) -> str:
        return f"by=[{', '.join(map(str, self.keys))}], offset={self.offset}, limit={self.limit}"


@dataclass(frozen=True)
class Correlate(Relation):
    """Every row of the input with each row of a table function. With `outer`, also rows without any."""

    input: Relation
    call: Rex
    """A Call of a table function, or of UNNEST with an array, map or multiset.

    Its type is the RowType of the new rows.
    """
    outer: bool = False
    condition: Rex | None = None
    """A condition over both sides, or None for TRUE."""
    ordinality: bool = False
    """True for UNNEST WITH ORDINALITY: the last column counts from 1."""

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
    """The clauses of MATCH_RECOGNIZE.

    `defines` and `measures` access rows by Calls: LAST(var, column, n), FIRST(var,
    column, n), and "MATCH_AGG" for aggregates over a variable; see penstock.table.sql.bind.bind_match.
    """

    partition: tuple[int, ...]
    order: tuple[SortKey, ...]
    pattern: RowPattern
    defines: tuple[tuple[str, Rex], ...]
    measures: tuple[tuple[str, Rex], ...]
    skip: tuple[str, str | None]
    """("PAST LAST ROW" | "TO NEXT ROW" | "TO FIRST" | "TO LAST", variable)."""
    within: int | None = None
    all_rows: bool = False
    subsets: tuple[tuple[str, tuple[str, ...]], ...] = ()


@dataclass(frozen=True)
class Match(Relation):
    """MATCH_RECOGNIZE: the columns of PARTITION BY, then the measures of each match."""

    input: Relation
    spec: MatchSpec

    def details(self) -> str:
        defines = ", ".join(f"{name} AS {rex}" for name, rex in self.spec.defines)
        measures = ", ".join(f"{rex} AS {name}" for name, rex in self.spec.measures)
        return f"by={list(self.spec.partition)}, pattern={self.spec.pattern}, define=[{defines}], measures=[{measures}]"


# --- several inputs ---
@dataclass(frozen=True)
class Join(Relation):
    """A join. SEMI and ANTI have only the columns of the left.

    The planner makes an interval, window or regular join of it. `temporal` is the column of a left time attribute in
    FOR SYSTEM_TIME AS OF: each row meets the right version at that time. With a PROCTIME and a Scan of a connector that
    supports lookups, it is a lookup join.
    """

    left: Relation
    right: Relation
    kind: JoinKind
    condition: Rex | None
    temporal: int | None = None
    version_key: int | None = None
    """The key of a temporal table function on the right side. A filter above the join may compare it with the left.

    The optimiser moves the comparison into the condition, and removes the key.
    """
    null_aware: bool = False
    """True for an ANTI join that stands for NOT IN: a NULL on either side excludes rows."""
    ttl: tuple[int | None, int | None] = (None, None)
    """The time to live of the rows of each side, in milliseconds, or None for the option's."""

    def details(self) -> str:
        temporal = [] if self.temporal is None else [f"AS OF {self.left.columns[self.temporal].name}"]
        aware = ["NULL-aware"] if self.null_aware else []
        return ", ".join([self.kind, str(self.condition), *temporal, *aware])


@dataclass(frozen=True)
class SetOperation(Relation):
    """UNION, INTERSECT or EXCEPT, with or without ALL."""

    parts: tuple[Relation, ...]
    kind: SetKind
    all: bool

    def inputs(self) -> tuple[Relation, ...]:
        return self.parts

    def with_inputs(self, inputs: Sequence[Relation]) -> Relation:
        return replace(self, parts=tuple(inputs))

    def details(self) -> str:
        return f"{self.kind}{' ALL' if self.all else ''}"


@dataclass(frozen=True)
class Insert(Relation):
    """INSERT INTO a table of a catalog. Its columns are the columns of the table that are written."""

    input: Relation
    path: tuple[str, ...]
    table: Any = field(compare=False)
    overwrite: bool = False
    static_partition: tuple[tuple[str, Any], ...] = ()
    conflict: str = ""
    """The action of ON CONFLICT DO: NOTHING, ERROR or DEDUPLICATE. Empty without the clause."""

    def details(self) -> str:
        return ".".join(self.path)


# --- walking ---
def walk_plan(relation: Relation) -> Iterator[Relation]:
    """Yield a relation and everything below it."""
    yield relation
    for part in relation.inputs():
        yield from walk_plan(part)


def rewritten_plan(relation: Relation, change: Callable[[Relation], Relation]) -> Relation:
    """Return the plan with every relation replaced by the result of `change`, from the leaves up."""
    inputs = relation.inputs()
    new = tuple(rewritten_plan(part, change) for part in inputs)
    same = all(one is other for one, other in zip(new, inputs, strict=True))
    return change(relation if same else relation.with_inputs(new))


def explain(relation: Relation, depth: int = 0) -> str:
    """Return a tree as text, one relation a line."""
    line = f"{'   ' * depth}{'+- ' if depth else ''}{type(relation).__name__}({relation.details()})"
    return "\n".join([line, *(explain(part, depth + 1) for part in relation.inputs())])
