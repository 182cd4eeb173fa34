"""Statements with semicolons between them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from penstock.table.sql.parse import statements as st
from penstock.table.sql.parse.alter_parser import read_alter
from penstock.table.sql.parse.cursor import Cursor
from penstock.table.sql.parse.expression_parser import read_expression, sees_query
from penstock.table.sql.parse.grammar import Grammar
from penstock.table.sql.parse.query_parser import read_argument, read_query, read_table_options
from penstock.table.sql.parse.special_syntax import OWN_SYNTAX, SPECIAL, between_moments
from penstock.table.sql.parse.syntax import Constant
from penstock.table.sql.parse.table_parser import read_create, read_drop, read_options
from penstock.table.sql.parse.tokens import END, STRING, SYMBOL

_DETAILS = ("ESTIMATED_COST", "CHANGELOG_MODE", "JSON_EXECUTION_PLAN", "PLAN_ADVICE")
_REFUSED = {
    "MERGE": "MERGE (write INSERT INTO a table with a primary key) is",
    "DELETE": "DELETE (write a changelog into a table with a primary key) is",
    "UPDATE": "UPDATE (write INSERT INTO a table with a primary key) is",
    "CALL": "procedures are",
    "COMPILE": "compiled plans (savepoints restore under the same query) are",
    "ANALYZE": "statistics of tables are",
    "GRANT": "rights on tables are",
    "REVOKE": "rights on tables are",
}


def _read_statements(cursor: Cursor) -> list[st.Statement]:
    """Parse all statements of the text."""
    found: list[st.Statement] = []
    while True:
        while cursor.accept_symbol(";"):
            pass
        if cursor.token.kind == END:
            return found
        found.append(_read_statement(cursor))
        if cursor.token.kind != END and not cursor.sees_symbol(";"):
            cursor.fail()


def _read_statement(cursor: Cursor) -> st.Statement:
    """Parse a statement."""
    start, at = cursor.index, cursor.at
    for word, read in _VERBS.items():
        if cursor.sees(word):
            made = read(cursor)
            break
    else:
        if cursor.token.upper in _REFUSED:
            cursor.refuse(_REFUSED[cursor.token.upper])
        made = _read_query_statement(cursor)
    return replace(made, text=cursor.text_since(start), at=at)


def _read_query_statement(cursor: Cursor) -> st.Statement:
    return st.Query(read_query(cursor))


# --- writing ---
def _read_insert(cursor: Cursor) -> st.InsertInto:
    cursor.expect("INSERT")
    overwrite = cursor.accept("OVERWRITE")
    if not overwrite:
        cursor.expect("INTO")
    cursor.accept("TABLE")
    start, at = cursor.index, cursor.at
    path, options = cursor.path(), read_table_options(cursor)
    partition = _read_static_partition(cursor) if cursor.accept("PARTITION") else ()
    columns: tuple[str, ...] = ()
    if cursor.sees_symbol("(") and not sees_query(cursor):
        columns = tuple(name[-1] for name in _read_paths(cursor))
    query = read_query(cursor)
    conflict = _read_on_conflict(cursor) if cursor.sees("ON") else ""
    made = st.InsertInto(path, query, columns, partition, overwrite, options, conflict, at=at)
    return replace(made, text=cursor.text_since(start))


def _read_on_conflict(cursor: Cursor) -> str:
    """Parse ON CONFLICT: the action for rows of different keys of the query with the same key of the table."""
    cursor.expect("ON", "CONFLICT", "DO")
    found = next((word for word in ("NOTHING", "ERROR", "DEDUPLICATE") if cursor.accept(word)), None)
    return found or cursor.fail("NOTHING, ERROR or DEDUPLICATE")


def _read_paths(cursor: Cursor) -> list[st.Path]:
    cursor.expect_symbol("(")
    found = [cursor.path()]
    while cursor.accept_symbol(","):
        found.append(cursor.path())
    cursor.expect_symbol(")")
    return found


def _read_static_partition(cursor: Cursor) -> tuple[tuple[str, Any], ...]:
    cursor.expect_symbol("(")
    found: list[tuple[str, Any]] = []
    while not found or cursor.accept_symbol(","):
        name = cursor.name()
        cursor.expect_symbol("=")
        value = read_expression(cursor)
        if not isinstance(value, Constant):
            cursor.fail("a constant as value of the partition")
        found.append((name, value))
    cursor.expect_symbol(")")
    return tuple(found)


def _read_execute(cursor: Cursor) -> st.Statement:
    cursor.expect("EXECUTE")
    if cursor.sees("PLAN"):
        cursor.refuse(_REFUSED["COMPILE"])
    if not cursor.accept("STATEMENT", "SET"):
        return _read_statement(cursor)
    cursor.expect("BEGIN")
    inserts = _read_inserts(cursor)
    cursor.expect("END")
    return st.StatementSetBlock(inserts)


def _read_inserts(cursor: Cursor) -> tuple[st.InsertInto, ...]:
    found: list[st.InsertInto] = []
    while not found or cursor.sees("INSERT"):
        found.append(_read_insert(cursor))
        cursor.expect_symbol(";")
    return tuple(found)


def _read_begin(cursor: Cursor) -> st.Statement:
    cursor.expect("BEGIN", "STATEMENT", "SET")
    return st.BeginStatementSet()


def _read_end(cursor: Cursor) -> st.Statement:
    cursor.expect("END")
    return st.EndStatementSet()


def _read_explain(cursor: Cursor) -> st.Statement:
    cursor.expect("EXPLAIN")
    details: list[str] = []
    if not cursor.accept("PLAN", "FOR"):
        while word := cursor.accept_any(*_DETAILS):
            details.append(word)
            if not cursor.accept_symbol(","):
                break
    if cursor.accept("STATEMENT", "SET"):
        cursor.expect("BEGIN")
        inserts = _read_inserts(cursor)
        cursor.expect("END")
        return st.Explain(st.StatementSetBlock(inserts), tuple(details))
    return st.Explain(_read_statement(cursor), tuple(details))


# --- looking ---
def _read_show(cursor: Cursor) -> st.Statement:
    cursor.expect("SHOW")
    if cursor.accept("CREATE"):
        kind = cursor.expect_any("TABLE", "VIEW", "CATALOG", "MODEL", "MATERIALIZED")
        return st.Show(f"CREATE {kind}", cursor.path())
    if cursor.accept("CURRENT"):
        return st.Show(f"CURRENT {cursor.expect_any('CATALOG', 'DATABASE')}")
    prefix = cursor.accept_any("USER", "FULL", "PARTITIONS")
    if prefix == "PARTITIONS":
        return st.Show(prefix, cursor.path())
    words = ("TABLES", "VIEWS", "COLUMNS", "FUNCTIONS", "DATABASES", "CATALOGS", "MODULES", "JARS", "JOBS")
    what = cursor.expect_any(*words, "PROCEDURES", "MODELS")
    path = cursor.path() if cursor.accept_any("FROM", "IN") else ()
    return _read_like(cursor, st.Show(f"{prefix} {what}" if prefix else what, path))


def _read_like(cursor: Cursor, show: st.Show) -> st.Statement:
    negated = cursor.accept("NOT")
    word = cursor.expect_any("LIKE", "ILIKE") if negated else cursor.accept_any("LIKE", "ILIKE")
    if word is None:
        return show
    return replace(show, pattern=cursor.string(), negated=negated, ignore_case=word == "ILIKE")


def _read_describe(cursor: Cursor) -> st.Statement:
    cursor.expect_any("DESCRIBE", "DESC")
    kind = "TABLE"
    if cursor.ahead().kind not in {END, SYMBOL}:
        kind = cursor.accept_any("DATABASE", "CATALOG", "FUNCTION", "MODEL", "JOB") or "TABLE"
    if kind == "JOB":
        return st.Describe((cursor.string(),), kind)
    extended = cursor.accept("EXTENDED")
    return st.Describe(cursor.path(), kind, extended)


def _read_use(cursor: Cursor) -> st.Statement:
    cursor.expect("USE")
    if cursor.accept("CATALOG"):
        return st.Use("CATALOG", (cursor.name(),))
    if cursor.accept("MODULES"):
        names = [cursor.name()]
        while cursor.accept_symbol(","):
            names.append(cursor.name())
        return st.Use("MODULES", tuple(names))
    return st.Use("DATABASE", cursor.path())


# --- settings ---
def _read_set(cursor: Cursor) -> st.Statement:
    cursor.expect("SET")
    if cursor.token.kind == END or cursor.sees_symbol(";"):
        return st.Set()
    key = _read_setting(cursor)
    cursor.expect_symbol("=")
    return st.Set(key, _read_setting(cursor))


def _read_reset(cursor: Cursor) -> st.Statement:
    cursor.expect("RESET")
    return st.Reset(None if cursor.token.kind == END or cursor.sees_symbol(";") else _read_setting(cursor))


def _read_setting(cursor: Cursor) -> str:
    """Parse a string, or any tokens up to = or ;."""
    if cursor.token.kind == STRING:
        return cursor.advance().text
    start = cursor.index
    while cursor.token.kind != END and cursor.token.text not in {"=", ";"}:
        cursor.advance()
    if cursor.index == start:
        cursor.fail("a key or value in quotes")
    return cursor.text_since(start)


# --- the rest ---
def _read_load(cursor: Cursor) -> st.Statement:
    cursor.expect("LOAD", "MODULE")
    name = cursor.name()
    return st.LoadModule(name, read_options(cursor) if cursor.accept("WITH") else ())


def _read_unload(cursor: Cursor) -> st.Statement:
    cursor.expect("UNLOAD", "MODULE")
    return st.UnloadModule(cursor.name())


def _read_jar(cursor: Cursor) -> st.Statement:
    verb = cursor.expect_any("ADD", "REMOVE")
    cursor.expect("JAR")
    return st.Jar(verb, cursor.string())


def _read_stop(cursor: Cursor) -> st.Statement:
    cursor.expect("STOP", "JOB")
    job = cursor.string()
    cursor.accept("WITH")
    savepoint = cursor.accept("SAVEPOINT")
    cursor.accept("WITH")
    return st.StopJob(job, savepoint, cursor.accept("DRAIN"))


def _read_truncate(cursor: Cursor) -> st.Statement:
    cursor.expect("TRUNCATE", "TABLE")
    return st.Truncate(cursor.path())


def _read_client(cursor: Cursor) -> st.Statement:
    return st.Client(cursor.expect_any("QUIT", "EXIT", "CLEAR", "HELP"))


_VERBS: dict[str, Callable[[Cursor], st.Statement]] = {
    "SELECT": _read_query_statement,
    "INSERT": _read_insert,
    "EXECUTE": _read_execute,
    "CREATE": read_create,
    "REPLACE": read_create,
    "DROP": read_drop,
    "ALTER": read_alter,
    "SHOW": _read_show,
    "DESCRIBE": _read_describe,
    "DESC": _read_describe,
    "EXPLAIN": _read_explain,
    "USE": _read_use,
    "SET": _read_set,
    "RESET": _read_reset,
    "BEGIN": _read_begin,
    "END": _read_end,
    "LOAD": _read_load,
    "UNLOAD": _read_unload,
    "ADD": _read_jar,
    "REMOVE": _read_jar,
    "STOP": _read_stop,
    "TRUNCATE": _read_truncate,
    "QUIT": _read_client,
    "EXIT": _read_client,
    "CLEAR": _read_client,
    "HELP": _read_client,
}


GRAMMAR = Grammar(read_query, read_argument, SPECIAL, OWN_SYNTAX, between_moments)
"""The syntax inside of expressions."""


def parse(text: str) -> list[st.Statement]:
    """Return the statements of a text. SqlParserException has line and column if it is not SQL."""
    return _read_statements(Cursor(text, GRAMMAR))


def parse_expression(text: str) -> st.Expression:
    """Return an expression that stands alone, such as that of a computed column."""
    cursor = Cursor(text, GRAMMAR)
    tree = read_expression(cursor)
    if cursor.token.kind != END:
        cursor.fail()
    return st.Expression(text, tree)
