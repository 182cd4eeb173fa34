"""Queries and expressions as they were written, without resolved names and types."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from penstock.table.logical.row_patterns import RowPattern
from penstock.table.sql.parse.tokens import Position
from penstock.table.types.data_types import DataType

HERE = Position()


@dataclass(frozen=True)
class Node:
    """A part of a text. Comparisons ignore its position."""

    at: Position = field(compare=False)


# --- expressions ---
@dataclass(frozen=True)
class Name(Node):
    """A column, perhaps with its table before it and fields after it."""

    parts: tuple[str, ...]


@dataclass(frozen=True)
class Star(Node):
    """`*`, or `t.*` with a prefix."""

    prefix: tuple[str, ...] = ()


@dataclass(frozen=True)
class Constant(Node):
    """A literal with the type of its form."""

    type: DataType
    value: Any
    text: str = field(default="", compare=False)
    """The literal as SQL writes it."""


@dataclass(frozen=True)
class Word(Node):
    """A word of a function's syntax: a unit, a side of TRIM, a behaviour of JSON_VALUE."""

    word: str


@dataclass(frozen=True)
class Invoke(Node):
    """A function or an operator with its arguments. The name of an operator is its sign."""

    name: str
    args: tuple[Node, ...]
    path: tuple[str, ...] = ()
    """Catalog and database, if they are given."""
    names: tuple[str | None, ...] = ()
    """Names of arguments that are given with =>."""
    distinct: bool = False
    star: bool = False
    """True for COUNT(*)."""
    filter: Node | None = None
    order: tuple[Ordering, ...] = ()
    over: Window | str | None = None
    """A window, or the name of one."""
    ignore_nulls: bool | None = None


@dataclass(frozen=True)
class CastTo(Node):
    """CAST or, if `safe`, TRY_CAST."""

    value: Node
    aim: DataType
    safe: bool = False


@dataclass(frozen=True)
class Nested(Node):
    """A query inside an expression.

    `kind` is SCALAR, EXISTS, IN with the values before it, or a sign and ALL or SOME.
    """

    kind: str
    query: Query
    args: tuple[Node, ...] = ()


@dataclass(frozen=True)
class FieldOf(Node):
    """`(expression).field`."""

    value: Node
    field: str


@dataclass(frozen=True)
class TableArg(Node):
    """`TABLE t PARTITION BY k` or a query as argument of a table function."""

    source: Source
    partition: tuple[Node, ...] = ()


@dataclass(frozen=True)
class Descriptor(Node):
    """DESCRIPTOR(columns)."""

    columns: tuple[str, ...]


# --- pieces of a query ---
@dataclass(frozen=True)
class Ordering(Node):
    """An expression of ORDER BY."""

    value: Node
    descending: bool = False
    nulls_first: bool | None = None


@dataclass(frozen=True)
class Bound:
    """An end of a frame."""

    kind: str
    """PRECEDING, FOLLOWING or CURRENT ROW."""
    offset: Node | None = None
    """The distance. PRECEDING or FOLLOWING without one is UNBOUNDED."""


@dataclass(frozen=True)
class Window(Node):
    """A window of OVER or WINDOW."""

    base: str | None = None
    partition: tuple[Node, ...] = ()
    order: tuple[Ordering, ...] = ()
    rows: bool | None = None
    """True for ROWS, False for RANGE, None without a frame."""
    start: Bound | None = None
    end: Bound | None = None


@dataclass(frozen=True)
class Item(Node):
    """An expression of the select list."""

    value: Node
    alias: str | None = None


@dataclass(frozen=True)
class Group(Node):
    """An element of GROUP BY. `kind` is SETS, ROLLUP, CUBE, or "" for an expression or a list in brackets."""

    kind: str
    members: tuple[Any, ...]
    """Expressions, or groups for SETS, or tuples of expressions for ROLLUP and CUBE."""


# --- FROM ---
@dataclass(frozen=True)
class Source(Node):
    """A source of rows in FROM."""


@dataclass(frozen=True)
class TableName(Source):
    """A table by its name."""

    path: tuple[str, ...]
    options: tuple[tuple[str, str], ...] = ()
    """The options of the hint OPTIONS."""
    as_of: Node | None = None
    """The time of FOR SYSTEM_TIME AS OF."""


@dataclass(frozen=True)
class Derived(Source):
    """A query in brackets."""

    query: Query
    lateral: bool = False


@dataclass(frozen=True)
class FunctionTable(Source):
    """TABLE(f(...)), with or without LATERAL: a window function or a table function."""

    call: Invoke


@dataclass(frozen=True)
class Unnest(Source):
    """UNNEST of an expression."""

    value: Node
    ordinality: bool = False


@dataclass(frozen=True)
class Aliased(Source):
    """A source with an alias."""

    source: Source
    alias: str
    columns: tuple[str, ...] = ()


@dataclass(frozen=True)
class Joined(Source):
    """A join of two sources."""

    left: Source
    right: Source
    kind: str
    """INNER, LEFT, RIGHT, FULL, CROSS."""
    condition: Node | None = None
    using: tuple[str, ...] = ()
    natural: bool = False


@dataclass(frozen=True)
class Matched(Source):
    """MATCH_RECOGNIZE."""

    source: Source
    partition: tuple[Node, ...]
    order: tuple[Ordering, ...]
    measures: tuple[Item, ...]
    all_rows: bool
    skip: tuple[str, str | None]
    pattern: RowPattern
    within: Node | None
    subsets: tuple[tuple[str, tuple[str, ...]], ...]
    defines: tuple[tuple[str, Node], ...]


# --- queries ---
@dataclass(frozen=True)
class Query(Node):
    """A query: a node with a result."""


@dataclass(frozen=True)
class Select(Query):
    """SELECT with its clauses."""

    items: tuple[Item, ...]
    source: Source | None = None
    where: Node | None = None
    groups: tuple[Group, ...] | None = None
    having: Node | None = None
    qualify: Node | None = None
    windows: tuple[tuple[str, Window], ...] = ()
    distinct: bool = False
    ttl: tuple[tuple[str, int], ...] = ()
    """Tables of the hint STATE_TTL, with the time to live of their state in milliseconds."""


@dataclass(frozen=True)
class ValueRows(Query):
    """VALUES."""

    rows: tuple[tuple[Node, ...], ...]


@dataclass(frozen=True)
class Combined(Query):
    """UNION, INTERSECT, EXCEPT."""

    left: Query
    right: Query
    kind: str
    all: bool


@dataclass(frozen=True)
class Ordered(Query):
    """A query with ORDER BY, OFFSET and LIMIT."""

    query: Query
    order: tuple[Ordering, ...] = ()
    offset: int = 0
    limit: int | None = None


@dataclass(frozen=True)
class CommonTable(Node):
    """A table of WITH."""

    name: str
    columns: tuple[str, ...]
    query: Query


@dataclass(frozen=True)
class With(Query):
    """WITH and a query."""

    tables: tuple[CommonTable, ...]
    query: Query
