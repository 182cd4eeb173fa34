"""CREATE and DROP of tables, views, functions, databases and catalogs."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from penstock.table.sql.parse import statements as st
from penstock.table.sql.parse.cursor import Cursor
from penstock.table.sql.parse.expression_parser import read_expression
from penstock.table.sql.parse.problems import SqlValidateException
from penstock.table.sql.parse.query_parser import read_query
from penstock.table.sql.parse.type_parser import read_data_type

_LIKE = ("ALL", "CONSTRAINTS", "DISTRIBUTION", "GENERATED", "METADATA", "OPTIONS", "PARTITIONS", "WATERMARKS")


@dataclass
class Elements:
    """The contents of the brackets of CREATE TABLE or ALTER TABLE ADD."""

    columns: list[st.Placed] = field(default_factory=list)
    names: list[str] = field(default_factory=list)
    """Names without a type, which CREATE TABLE AS allows."""
    watermark: st.WatermarkSpec | None = None
    primary_key: st.PrimaryKey | None = None


_NOT_OFFERED = {
    "MATERIALIZED": "materialized tables",
    "MODEL": "models",
    "CONNECTION": "connections",
    "INDEX": "indexes",
}


# --- CREATE ---
def read_create(cursor: Cursor) -> st.Statement:
    """Parse a CREATE statement."""
    replaces = cursor.accept("REPLACE")
    if not replaces:
        cursor.expect("CREATE")
        replaces = cursor.accept("OR", "REPLACE")
    temporary = cursor.accept("TEMPORARY")
    system = temporary and cursor.accept("SYSTEM")
    if cursor.token.upper in _NOT_OFFERED:
        cursor.refuse(f"{_NOT_OFFERED[cursor.token.upper]} are")
    kind = cursor.expect_any("TABLE", "VIEW", "FUNCTION", "DATABASE", "CATALOG")
    exists = cursor.accept("IF", "NOT", "EXISTS")
    if kind == "TABLE":
        return _read_create_table(cursor, temporary, exists, replaces)
    if kind == "VIEW":
        return _read_create_view(cursor, temporary, exists)
    if kind == "FUNCTION":
        return _read_create_function(cursor, temporary, system, exists)
    return _read_create_database(cursor, exists) if kind == "DATABASE" else _read_create_catalog(cursor, exists)


def _read_create_table(cursor: Cursor, temporary: bool, exists: bool, replaces: bool) -> st.Statement:
    path = cursor.path()
    elements = read_elements(cursor) if cursor.sees_symbol("(") else Elements()
    table = st.CreateTable(
        path,
        tuple(placed.column for placed in elements.columns),
        elements.watermark,
        elements.primary_key,
        temporary=temporary,
        if_not_exists=exists,
    )
    table = _read_table_clauses(cursor, table)
    if cursor.accept("AS"):
        return st.CreateTableAs(table, read_query(cursor), tuple(elements.names), replaces)
    if elements.names or replaces:
        cursor.fail("AS and a query")
    return replace(table, like=_read_like_clause(cursor)) if cursor.accept("LIKE") else table


def _read_table_clauses(cursor: Cursor, table: st.CreateTable) -> st.CreateTable:
    if cursor.accept("COMMENT"):
        table = replace(table, comment=cursor.string())
    if cursor.sees_any("DISTRIBUTED"):
        table = replace(table, distribution=_read_distribution(cursor))
    if cursor.accept("PARTITIONED", "BY"):
        table = replace(table, partitioned=cursor.names())
    if cursor.accept("WITH"):
        table = replace(table, options=read_options(cursor))
    return table


def _read_distribution(cursor: Cursor) -> str:
    """Parse DISTRIBUTED, and return its text as it was written."""
    start = cursor.index
    cursor.expect("DISTRIBUTED")
    if cursor.accept("BY"):
        cursor.accept_any("HASH", "RANGE")
        cursor.names()
    if cursor.accept("INTO"):
        cursor.whole_number()
        cursor.expect("BUCKETS")
    return cursor.text_since(start)


def _read_like_clause(cursor: Cursor) -> st.Like:
    path, choices = cursor.path(), []
    if cursor.accept_symbol("("):
        while not cursor.accept_symbol(")"):
            mode = cursor.expect_any("INCLUDING", "EXCLUDING", "OVERWRITING")
            kinds = (
                "ALL",
                "CONSTRAINTS",
                "DISTRIBUTION",
                "GENERATED",
                "METADATA",
                "OPTIONS",
                "PARTITIONS",
                "WATERMARKS",
            )
            choices.append((mode, cursor.expect_any(*kinds)))
    return st.Like(path, tuple(choices))


def read_options(cursor: Cursor) -> st.Options:
    """Parse ('key' = 'value', ...)."""
    cursor.expect_symbol("(")
    found: list[tuple[str, str]] = []
    while not cursor.sees_symbol(")") and (not found or cursor.accept_symbol(",")):
        key = cursor.string()
        cursor.expect_symbol("=")
        found.append((key, cursor.string()))
    cursor.expect_symbol(")")
    return tuple(found)


# --- columns, watermark, key ---
def read_elements(cursor: Cursor) -> Elements:
    """Parse columns, watermark and primary key in brackets."""
    found = Elements()
    cursor.expect_symbol("(")
    first = True
    while first or cursor.accept_symbol(","):
        first = False
        read_element(cursor, found)
    cursor.expect_symbol(")")
    return found


def read_element(cursor: Cursor, found: Elements) -> None:
    """Parse a column, a watermark or a primary key, and add it."""
    if cursor.accept("WATERMARK", "FOR"):
        if found.watermark:
            cursor.fail("a column, as a table has one watermark only")
        found.watermark = read_watermark(cursor)
    elif cursor.sees_any("PRIMARY", "CONSTRAINT", "UNIQUE"):
        found.primary_key = read_primary_key(cursor)
    else:
        _read_column(cursor, found)


def read_watermark(cursor: Cursor) -> st.WatermarkSpec:
    """Parse the column and the expression of a watermark."""
    column = cursor.path()
    cursor.expect("AS")
    return st.WatermarkSpec(column, read_expression_with_text(cursor))


def read_primary_key(cursor: Cursor) -> st.PrimaryKey:
    """Parse a primary key."""
    name = cursor.name() if cursor.accept("CONSTRAINT") else None
    if cursor.sees("UNIQUE"):
        cursor.fail("PRIMARY KEY, as unique columns are not supported otherwise")
    cursor.expect("PRIMARY", "KEY")
    columns = cursor.names()
    _read_not_enforced(cursor)
    return st.PrimaryKey(columns, name)


def _read_not_enforced(cursor: Cursor) -> None:
    if not cursor.accept("NOT", "ENFORCED"):
        found = cursor.token.describe()
        raise SqlValidateException(f"{cursor.at}: found {found}; expected NOT ENFORCED, as keys are not checked")


def read_expression_with_text(cursor: Cursor) -> st.Expression:
    """Parse an expression, and keep its text."""
    start = cursor.index
    tree = read_expression(cursor)
    return st.Expression(cursor.text_since(start), tree)


def _read_column(cursor: Cursor, found: Elements) -> None:
    name = cursor.name()
    if not found.columns and (cursor.sees_symbol(",") or cursor.sees_symbol(")")):
        found.names.append(name)
        return
    column = read_column(cursor, name)
    if cursor.accept("PRIMARY", "KEY"):
        _read_not_enforced(cursor)
        found.primary_key = st.PrimaryKey((name,))
        column = replace(column, comment=_read_comment(cursor) or column.comment)
    where, after = "", None
    if cursor.accept("FIRST"):
        where = "FIRST"
    elif cursor.accept("AFTER"):
        where, after = "AFTER", cursor.name()
    found.columns.append(st.Placed(column, where, after))


def read_column(cursor: Cursor, name: str) -> st.ColumnSpec:
    """Parse the definition of a column after its name."""
    if cursor.accept("AS"):
        expression = read_expression_with_text(cursor)
        return st.ColumnSpec(name, None, st.COMPUTED, expression, comment=_read_comment(cursor))
    kind = read_data_type(cursor)
    if not cursor.accept("METADATA"):
        return st.ColumnSpec(name, kind, comment=_read_comment(cursor))
    key = cursor.string() if cursor.accept("FROM") else None
    virtual = cursor.accept("VIRTUAL")
    return st.ColumnSpec(name, kind, st.METADATA, None, key, virtual, _read_comment(cursor))


def _read_comment(cursor: Cursor) -> str | None:
    return cursor.string() if cursor.accept("COMMENT") else None


# --- views, functions, databases, catalogs ---
def _read_create_view(cursor: Cursor, temporary: bool, exists: bool) -> st.Statement:
    path = cursor.path()
    columns = cursor.names() if cursor.sees_symbol("(") else ()
    comment = _read_comment(cursor)
    cursor.expect("AS")
    start = cursor.index
    query = read_query(cursor)
    return st.CreateView(path, query, cursor.text_since(start), columns, comment, temporary, exists)


def _read_create_function(cursor: Cursor, temporary: bool, system: bool, exists: bool) -> st.Statement:
    path = cursor.path()
    cursor.expect("AS")
    target, language = read_target(cursor)
    resources: list[str] = []
    if cursor.accept("USING"):
        while not resources or cursor.accept_symbol(","):
            kind = cursor.expect_any("JAR", "FILE", "ARCHIVE")
            resources.append(f"ResourceUri{{resourceType={kind}, uri='{cursor.string()}'}}")
    return st.CreateFunction(path, target, language, temporary, system, exists, tuple(resources))


def read_target(cursor: Cursor) -> tuple[str, str]:
    """Parse the class of a function, and its language."""
    target = cursor.string()
    language = cursor.expect_any("JAVA", "SCALA", "PYTHON", "SQL") if cursor.accept("LANGUAGE") else "JAVA"
    return target, language


def _read_create_database(cursor: Cursor, exists: bool) -> st.Statement:
    path, comment = cursor.path(), _read_comment(cursor)
    return st.CreateDatabase(path, comment, read_options(cursor) if cursor.accept("WITH") else (), exists)


def _read_create_catalog(cursor: Cursor, exists: bool) -> st.Statement:
    name, comment = cursor.name(), _read_comment(cursor)
    return st.CreateCatalog(name, read_options(cursor) if cursor.accept("WITH") else (), comment, exists)


# --- DROP ---
def read_drop(cursor: Cursor) -> st.Statement:
    """Parse a DROP statement."""
    cursor.expect("DROP")
    temporary = cursor.accept("TEMPORARY")
    system = temporary and cursor.accept("SYSTEM")
    if cursor.token.upper in _NOT_OFFERED:
        cursor.refuse(f"{_NOT_OFFERED[cursor.token.upper]} are")
    kind = cursor.expect_any("TABLE", "VIEW", "FUNCTION", "DATABASE", "CATALOG")
    exists = cursor.accept("IF", "EXISTS")
    path = cursor.path()
    word = cursor.accept_any("RESTRICT", "CASCADE") if kind == "DATABASE" else None
    return st.Drop(kind, path, exists, temporary, system, word == "CASCADE")
