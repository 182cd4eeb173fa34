"""Statements as plain data, with types resolved and expressions as they were written."""

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
    """A statement that execute_sql can execute."""

    text: str = field(default="", kw_only=True)
    """The statement as it was written."""
    at: Position = field(default=Position(), kw_only=True, compare=False)


@dataclass(frozen=True)
class Expression:
    """An expression of a table's definition."""

    text: str
    tree: syntax.Node

    def __str__(self) -> str:
        """Return the text in Flink's form, with names in backquotes."""
        from penstock.table.sql.parse.expression_printing import print_expression

        return print_expression(self.tree)


# --- queries and writing ---
@dataclass(frozen=True)
class Query(Statement):
    """A statement that is only a query."""

    query: syntax.Query


@dataclass(frozen=True)
class InsertInto(Statement):
    """INSERT INTO or INSERT OVERWRITE."""

    path: Path
    query: syntax.Query
    columns: tuple[str, ...] = ()
    """The columns that are written. Empty for all columns."""
    partition: tuple[tuple[str, Any], ...] = ()
    """Values of PARTITION (a = 1)."""
    overwrite: bool = False
    options: Options = ()
    """The options in a hint after the table."""
    conflict: str = ""
    """The action of ON CONFLICT DO: NOTHING, ERROR or DEDUPLICATE. Empty without the clause."""


@dataclass(frozen=True)
class StatementSetBlock(Statement):
    """EXECUTE STATEMENT SET with its INSERTs."""

    inserts: tuple[InsertInto, ...]


@dataclass(frozen=True)
class BeginStatementSet(Statement):
    """BEGIN STATEMENT SET of a client. INSERTs follow as separate statements."""


@dataclass(frozen=True)
class EndStatementSet(Statement):
    """END of a statement set."""


@dataclass(frozen=True)
class Explain(Statement):
    """EXPLAIN of a statement."""

    statement: Statement
    details: tuple[str, ...] = ()
    """ESTIMATED_COST, CHANGELOG_MODE, JSON_EXECUTION_PLAN, PLAN_ADVICE."""


# --- tables ---
PHYSICAL, COMPUTED, METADATA = "physical", "computed", "metadata"


@dataclass(frozen=True)
class ColumnSpec:
    """A column of a table's definition."""

    name: str
    type: DataType | None
    """The type, or None for computed columns, whose expression has the type."""
    kind: str = PHYSICAL
    expression: Expression | None = None
    metadata_key: str | None = None
    """The key of METADATA FROM 'key', or None if it is the column's name."""
    virtual: bool = False
    comment: str | None = None


@dataclass(frozen=True)
class WatermarkSpec:
    """WATERMARK FOR a column."""

    column: Path
    """The column, or a field inside of it."""
    expression: Expression


@dataclass(frozen=True)
class PrimaryKey:
    """A primary key of a table's definition."""

    columns: tuple[str, ...]
    name: str | None = None


@dataclass(frozen=True)
class Like:
    """LIKE another table, with its options."""

    path: Path
    choices: tuple[tuple[str, str], ...] = ()
    """Pairs such as ("INCLUDING", "ALL") and ("OVERWRITING", "OPTIONS")."""


@dataclass(frozen=True)
class CreateTable(Statement):
    """CREATE TABLE."""

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
    """CREATE TABLE AS a query."""

    table: CreateTable
    query: syntax.Query
    names: tuple[str, ...] = ()
    """The names before AS, which give the order of the query's columns."""
    replace: bool = False


@dataclass(frozen=True)
class CreateView(Statement):
    """CREATE VIEW."""

    path: Path
    query: syntax.Query
    query_text: str
    columns: tuple[str, ...] = ()
    comment: str | None = None
    temporary: bool = False
    if_not_exists: bool = False


@dataclass(frozen=True)
class CreateFunction(Statement):
    """CREATE FUNCTION."""

    path: Path
    target: str
    """The Python object after AS, as module.name."""
    language: str = "JAVA"
    temporary: bool = False
    system: bool = False
    if_not_exists: bool = False
    resources: tuple[str, ...] = ()


@dataclass(frozen=True)
class CreateDatabase(Statement):
    """CREATE DATABASE."""

    path: Path
    comment: str | None = None
    options: Options = ()
    if_not_exists: bool = False


@dataclass(frozen=True)
class CreateCatalog(Statement):
    """CREATE CATALOG."""

    name: str
    options: Options = ()
    comment: str | None = None
    if_not_exists: bool = False


@dataclass(frozen=True)
class Drop(Statement):
    """DROP of an object."""

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
    """A column and its place in ALTER TABLE: "FIRST", "AFTER" with a column, or "" for the end."""

    column: ColumnSpec
    where: str = ""
    after: str | None = None


@dataclass(frozen=True)
class RenameTo:
    """RENAME TO another path."""

    path: Path


@dataclass(frozen=True)
class SetOptions:
    """SET of options."""

    options: Options


@dataclass(frozen=True)
class ResetOptions:
    """RESET of options."""

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
    """RENAME of a column."""

    column: str
    name: str


@dataclass(frozen=True)
class DropParts:
    """DROP of columns, or of WATERMARK, PRIMARY KEY or CONSTRAINT, as `what` says."""

    what: str
    names: tuple[str, ...] = ()


@dataclass(frozen=True)
class SetComment:
    """COMMENT of a catalog."""

    comment: str


@dataclass(frozen=True)
class SetQuery:
    """AS another query, of a view."""

    query: syntax.Query
    text: str


@dataclass(frozen=True)
class SetTarget:
    """AS another class, of a function."""

    target: str
    language: str


Change = (
    RenameTo | SetOptions | ResetOptions | ChangeSchema | RenameColumn | DropParts | SetComment | SetQuery | SetTarget
)


@dataclass(frozen=True)
class Alter(Statement):
    """ALTER of an object."""

    kind: str
    """TABLE, VIEW, FUNCTION, DATABASE or CATALOG."""
    path: Path
    change: Change
    if_exists: bool = False
    temporary: bool = False
    system: bool = False


@dataclass(frozen=True)
class Truncate(Statement):
    """TRUNCATE TABLE."""

    path: Path


# --- looking and settings ---
@dataclass(frozen=True)
class Show(Statement):
    """SHOW of objects or of a definition."""

    what: str
    """TABLES, VIEWS, COLUMNS, FUNCTIONS, USER FUNCTIONS, DATABASES, CATALOGS, CURRENT CATALOG, CREATE TABLE, ..."""
    path: Path = ()
    """The path of FROM or IN, or the name after CREATE TABLE."""
    pattern: str | None = None
    negated: bool = False
    ignore_case: bool = False


@dataclass(frozen=True)
class Describe(Statement):
    """DESCRIBE of an object."""

    path: Path
    kind: str = "TABLE"
    """TABLE, DATABASE, CATALOG, FUNCTION, MODEL or JOB."""
    extended: bool = False


@dataclass(frozen=True)
class Use(Statement):
    """USE of a catalog, a database or modules."""

    kind: str
    """CATALOG, DATABASE or MODULES."""
    path: Path


@dataclass(frozen=True)
class Set(Statement):
    """SET of an option."""

    key: str | None = None
    """The key of the option. Without a key, the statement shows all settings."""
    value: str | None = None


@dataclass(frozen=True)
class Reset(Statement):
    """RESET of an option, or of all."""

    key: str | None = None


@dataclass(frozen=True)
class LoadModule(Statement):
    """LOAD MODULE."""

    name: str
    options: Options = ()


@dataclass(frozen=True)
class UnloadModule(Statement):
    """UNLOAD MODULE."""

    name: str


@dataclass(frozen=True)
class Jar(Statement):
    """ADD JAR or REMOVE JAR."""

    verb: str
    path: str


@dataclass(frozen=True)
class StopJob(Statement):
    """STOP JOB."""

    job: str
    savepoint: bool = False
    drain: bool = False


@dataclass(frozen=True)
class Client(Statement):
    """QUIT, EXIT, CLEAR or HELP."""

    word: str
