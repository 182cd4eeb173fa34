"""Queries and expressions as they were written: names are not looked up and nothing has a type yet."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from penstock.table.sql.parse.tokens import Position
from penstock.table.types.data_types import DataType

HERE = Position()


@dataclass(frozen=True)
class Node:
    """A part of a text. Where it stands does not matter when two are compared."""

    at: Position = field(compare=False)


# --- expressions ---
@dataclass(frozen=True)
class Name(Node):
    """A column, perhaps with its table in front and fields behind."""

    parts: tuple[str, ...]


@dataclass(frozen=True)
class Star(Node):
    """`*`, or `t.*` with a prefix."""

    prefix: tuple[str, ...] = ()


@dataclass(frozen=True)
class Constant(Node):
    """A literal with the type that its form gives it."""

    type: DataType
    value: Any
    text: str = field(default="", compare=False)
    """As SQL writes it."""


@dataclass(frozen=True)
class Word(Node):
    """A word that belongs to a function's syntax: a unit, a side of TRIM, a behaviour of JSON_VALUE."""

    word: str


@dataclass(frozen=True)
class Invoke(Node):
    """A function or an operator with its arguments. Operators have their sign as name."""

    name: str
    args: tuple[Node, ...]
    path: tuple[str, ...] = ()
    """Catalog and database, if they were named."""
    names: tuple[str | None, ...] = ()
    """Names of arguments that were given with =>."""
    distinct: bool = False
    star: bool = False
    """COUNT(*)."""
    filter: Node | None = None
    order: tuple[Ordering, ...] = ()
    over: Window | str | None = None
    """A window, or the name of one."""
    ignore_nulls: bool | None = None


@dataclass(frozen=True)
class CastTo(Node):
    value: Node
    aim: DataType
    safe: bool = False


@dataclass(frozen=True)
class Nested(Node):
    """A query inside an expression: kind is SCALAR, EXISTS, or IN with the values that are looked for."""

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
    columns: tuple[str, ...]


# --- pieces of a query ---
@dataclass(frozen=True)
class Ordering(Node):
    value: Node
    descending: bool = False
    nulls_first: bool | None = None


@dataclass(frozen=True)
class Bound:
    """An end of a frame: kind is UNBOUNDED, CURRENT, or an offset that is before or behind."""

    kind: str
    """PRECEDING or FOLLOWING; CURRENT ROW."""
    offset: Node | None = None
    """None with PRECEDING or FOLLOWING is UNBOUNDED."""


@dataclass(frozen=True)
class Window(Node):
    base: str | None = None
    partition: tuple[Node, ...] = ()
    order: tuple[Ordering, ...] = ()
    rows: bool | None = None
    """None without a frame."""
    start: Bound | None = None
    end: Bound | None = None


@dataclass(frozen=True)
class Item(Node):
    """An expression of the select list."""

    value: Node
    alias: str | None = None


@dataclass(frozen=True)
class Group(Node):
    """An element of GROUP BY: kind is SETS, ROLLUP, CUBE, or "" for a plain expression or a list in brackets."""

    kind: str
    members: tuple[Any, ...]
    """Expressions; for SETS groups again; for ROLLUP and CUBE tuples of expressions."""


# --- what stands in FROM ---
@dataclass(frozen=True)
class Source(Node):
    """Something with rows."""


@dataclass(frozen=True)
class TableName(Source):
    path: tuple[str, ...]
    options: tuple[tuple[str, str], ...] = ()
    """Of the hint OPTIONS."""
    as_of: Node | None = None
    """FOR SYSTEM_TIME AS OF."""


@dataclass(frozen=True)
class Derived(Source):
    query: Query
    lateral: bool = False


@dataclass(frozen=True)
class FunctionTable(Source):
    """TABLE(f(...)), with or without LATERAL: a window function or a table function."""

    call: Invoke


@dataclass(frozen=True)
class Unnest(Source):
    value: Node
    ordinality: bool = False


@dataclass(frozen=True)
class Aliased(Source):
    source: Source
    alias: str
    columns: tuple[str, ...] = ()


@dataclass(frozen=True)
class Joined(Source):
    left: Source
    right: Source
    kind: str
    """INNER, LEFT, RIGHT, FULL, CROSS."""
    condition: Node | None = None
    using: tuple[str, ...] = ()
    natural: bool = False


@dataclass(frozen=True)
class Matched(Source):
    """MATCH_RECOGNIZE. `pattern` is the tree that plan.nodes.MatchSpec describes."""

    source: Source
    partition: tuple[Node, ...]
    order: tuple[Ordering, ...]
    measures: tuple[Item, ...]
    all_rows: bool
    skip: tuple[str, str | None]
    pattern: Any
    within: Node | None
    subsets: tuple[tuple[str, tuple[str, ...]], ...]
    defines: tuple[tuple[str, Node], ...]


# --- queries ---
@dataclass(frozen=True)
class Query(Node):
    """Something that has a result."""


@dataclass(frozen=True)
class Select(Query):
    items: tuple[Item, ...]
    source: Source | None = None
    where: Node | None = None
    groups: tuple[Group, ...] | None = None
    having: Node | None = None
    qualify: Node | None = None
    windows: tuple[tuple[str, Window], ...] = ()
    distinct: bool = False
    ttl: tuple[tuple[str, int], ...] = ()
    """Of the hint STATE_TTL: tables, and how many milliseconds their state is kept."""


@dataclass(frozen=True)
class ValueRows(Query):
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
    query: Query
    order: tuple[Ordering, ...] = ()
    offset: int = 0
    limit: int | None = None


@dataclass(frozen=True)
class CommonTable(Node):
    name: str
    columns: tuple[str, ...]
    query: Query


@dataclass(frozen=True)
class With(Query):
    tables: tuple[CommonTable, ...]
    query: Query
