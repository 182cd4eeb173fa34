"""Statements as plain data: what a text asks for, with types resolved and expressions as they were written."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from penstock.table.sql.parse import syntax
from penstock.table.sql.parse.tokens import Position
from penstock.table.types.data_types import DataType

Path = tuple[str, ...]
Options = tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Statement:
    """Something that execute_sql can do."""

    text: str = field(default="", kw_only=True)
    """The statement as it was written."""
    at: Position = field(default=Position(), kw_only=True, compare=False)


@dataclass(frozen=True)
class Expression:
    """An expression of a table's definition."""

    text: str
    tree: syntax.Node

    def __str__(self) -> str:
        """As Flink shows it, with names in backquotes."""
        from penstock.table.sql.parse.expression_printing import print_expression

        return print_expression(self.tree)


# --- queries and writing ---
@dataclass(frozen=True)
class Query(Statement):
    query: syntax.Query


@dataclass(frozen=True)
class InsertInto(Statement):
    path: Path
    query: syntax.Query
    columns: tuple[str, ...] = ()
    """The columns that are written; all of them if none is named."""
    partition: tuple[tuple[str, Any], ...] = ()
    """Values of PARTITION (a = 1)."""
    overwrite: bool = False
    options: Options = ()
    """Of a hint behind the table."""
    conflict: str = ""
    """Of ON CONFLICT DO …: NOTHING, ERROR or DEDUPLICATE; empty without it."""


@dataclass(frozen=True)
class StatementSetBlock(Statement):
    inserts: tuple[InsertInto, ...]


@dataclass(frozen=True)
class BeginStatementSet(Statement):
    """Of a client: inserts follow as statements of their own."""


@dataclass(frozen=True)
class EndStatementSet(Statement):
    pass


@dataclass(frozen=True)
class Explain(Statement):
    statement: Statement
    details: tuple[str, ...] = ()
    """ESTIMATED_COST, CHANGELOG_MODE, JSON_EXECUTION_PLAN, PLAN_ADVICE."""


# --- tables ---
PHYSICAL, COMPUTED, METADATA = "physical", "computed", "metadata"


@dataclass(frozen=True)
class ColumnSpec:
    name: str
    type: DataType | None
    """None for computed columns: it is that of the expression."""
    kind: str = PHYSICAL
    expression: Expression | None = None
    metadata_key: str | None = None
    """METADATA FROM 'key'; None if it is the column's name."""
    virtual: bool = False
    comment: str | None = None


@dataclass(frozen=True)
class WatermarkSpec:
    column: Path
    """The column, or a field inside of it."""
    expression: Expression


@dataclass(frozen=True)
class PrimaryKey:
    columns: tuple[str, ...]
    name: str | None = None


@dataclass(frozen=True)
class Like:
    path: Path
    choices: tuple[tuple[str, str], ...] = ()
    """Such as ("INCLUDING", "ALL"), ("OVERWRITING", "OPTIONS")."""


@dataclass(frozen=True)
class CreateTable(Statement):
    path: Path
    columns: tuple[ColumnSpec, ...] = ()
    watermark: WatermarkSpec | None = None
    primary_key: PrimaryKey | None = None
    options: Options = ()
    partitioned: tuple[str, ...] = ()
    distribution: str | None = None
    comment: str | None = None
    like: Like | None = None
    temporary: bool = False
    if_not_exists: bool = False


@dataclass(frozen=True)
class CreateTableAs(Statement):
    table: CreateTable
    query: syntax.Query
    names: tuple[str, ...] = ()
    """A list of bare names before AS: the order of the query's columns."""
    replace: bool = False


@dataclass(frozen=True)
class CreateView(Statement):
    path: Path
    query: syntax.Query
    query_text: str
    columns: tuple[str, ...] = ()
    comment: str | None = None
    temporary: bool = False
    if_not_exists: bool = False


@dataclass(frozen=True)
class CreateFunction(Statement):
    path: Path
    target: str
    """What AS names: a Python object as module.name."""
    language: str = "JAVA"
    temporary: bool = False
    system: bool = False
    if_not_exists: bool = False
    resources: tuple[str, ...] = ()


@dataclass(frozen=True)
class CreateDatabase(Statement):
    path: Path
    comment: str | None = None
    options: Options = ()
    if_not_exists: bool = False


@dataclass(frozen=True)
class CreateCatalog(Statement):
    name: str
    options: Options = ()
    comment: str | None = None
    if_not_exists: bool = False


@dataclass(frozen=True)
class Drop(Statement):
    kind: str
    """TABLE, VIEW, FUNCTION, DATABASE or CATALOG."""
    path: Path
    if_exists: bool = False
    temporary: bool = False
    system: bool = False
    cascade: bool = False


# --- changes ---
@dataclass(frozen=True)
class Placed:
    """A column with the place where ALTER TABLE puts it: "FIRST", "AFTER" and a column, or "" for the end."""

    column: ColumnSpec
    where: str = ""
    after: str | None = None


@dataclass(frozen=True)
class RenameTo:
    path: Path


@dataclass(frozen=True)
class SetOptions:
    options: Options


@dataclass(frozen=True)
class ResetOptions:
    keys: tuple[str, ...]


@dataclass(frozen=True)
class ChangeSchema:
    """ADD or MODIFY of columns, watermark and primary key."""

    verb: str
    columns: tuple[Placed, ...] = ()
    watermark: WatermarkSpec | None = None
    primary_key: PrimaryKey | None = None


@dataclass(frozen=True)
class RenameColumn:
    column: str
    name: str


@dataclass(frozen=True)
class DropParts:
    """DROP of columns, or of what `what` names: WATERMARK, PRIMARY KEY, CONSTRAINT."""

    what: str
    names: tuple[str, ...] = ()


@dataclass(frozen=True)
class SetComment:
    comment: str


@dataclass(frozen=True)
class SetQuery:
    query: syntax.Query
    text: str


@dataclass(frozen=True)
class SetTarget:
    target: str
    language: str


Change = (
    RenameTo | SetOptions | ResetOptions | ChangeSchema | RenameColumn | DropParts | SetComment | SetQuery | SetTarget
)


@dataclass(frozen=True)
class Alter(Statement):
    kind: str
    """TABLE, VIEW, FUNCTION, DATABASE or CATALOG."""
    path: Path
    change: Change
    if_exists: bool = False
    temporary: bool = False
    system: bool = False


@dataclass(frozen=True)
class Truncate(Statement):
    path: Path


# --- looking and settings ---
@dataclass(frozen=True)
class Show(Statement):
    what: str
    """TABLES, VIEWS, COLUMNS, FUNCTIONS, USER FUNCTIONS, DATABASES, CATALOGS, CURRENT CATALOG, CREATE TABLE, ..."""
    path: Path = ()
    """Of FROM or IN, or the name behind CREATE TABLE."""
    pattern: str | None = None
    negated: bool = False
    ignore_case: bool = False


@dataclass(frozen=True)
class Describe(Statement):
    path: Path
    kind: str = "TABLE"
    """TABLE, DATABASE, CATALOG, FUNCTION, MODEL or JOB."""
    extended: bool = False


@dataclass(frozen=True)
class Use(Statement):
    kind: str
    """CATALOG, DATABASE or MODULES."""
    path: Path


@dataclass(frozen=True)
class Set(Statement):
    key: str | None = None
    """Without a key all settings are shown."""
    value: str | None = None


@dataclass(frozen=True)
class Reset(Statement):
    key: str | None = None


@dataclass(frozen=True)
class LoadModule(Statement):
    name: str
    options: Options = ()


@dataclass(frozen=True)
class UnloadModule(Statement):
    name: str


@dataclass(frozen=True)
class Jar(Statement):
    """ADD JAR or REMOVE JAR."""

    verb: str
    path: str


@dataclass(frozen=True)
class StopJob(Statement):
    job: str
    savepoint: bool = False
    drain: bool = False


@dataclass(frozen=True)
class Client(Statement):
    """QUIT, EXIT, CLEAR or HELP."""

    word: str
