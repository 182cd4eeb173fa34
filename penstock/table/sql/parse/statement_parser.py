"""Statements with semicolons between them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from penstock.table.sql.parse import statements as st
from penstock.table.sql.parse.alter_parser import AlterParser
from penstock.table.sql.parse.syntax import Constant
from penstock.table.sql.parse.tokens import END, STRING, SYMBOL
from penstock.table.sql.parse.type_parser import TypeParser

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


class StatementParser(AlterParser):
    """Parses whole statements."""

    def statements(self) -> list[st.Statement]:
        """Parse all statements of the text."""
        found: list[st.Statement] = []
        while True:
            while self.accept_symbol(";"):
                pass
            if self.token.kind == END:
                return found
            found.append(self.statement())
            if self.token.kind != END and not self.sees_symbol(";"):
                self.fail()

    def statement(self) -> st.Statement:
        """Parse a statement."""
        start, at = self.index, self.at
        for word, read in _VERBS.items():
            if self.sees(word):
                made = read(self)
                break
        else:
            if self.token.upper in _REFUSED:
                self.refuse(_REFUSED[self.token.upper])
            made = self._query_statement()
        return replace(made, text=self.text_since(start), at=at)

    def _query_statement(self) -> st.Statement:
        return st.Query(self.query())

    # --- writing ---
    def _insert(self) -> st.InsertInto:
        self.expect("INSERT")
        overwrite = self.accept("OVERWRITE")
        if not overwrite:
            self.expect("INTO")
        self.accept("TABLE")
        start, at = self.index, self.at
        path, options = self.path(), self.table_options()
        partition = self._static_partition() if self.accept("PARTITION") else ()
        columns: tuple[str, ...] = ()
        if self.sees_symbol("(") and not self.sees_query():
            columns = tuple(name[-1] for name in self._paths())
        query = self.query()
        conflict = self._on_conflict() if self.sees("ON") else ""
        made = st.InsertInto(path, query, columns, partition, overwrite, options, conflict, at=at)
        return replace(made, text=self.text_since(start))

    def _on_conflict(self) -> str:
        """Parse ON CONFLICT: the action for rows of different keys of the query with the same key of the table."""
        self.expect("ON", "CONFLICT", "DO")
        found = next((word for word in ("NOTHING", "ERROR", "DEDUPLICATE") if self.accept(word)), None)
        return found or self.fail("NOTHING, ERROR or DEDUPLICATE")

    def _paths(self) -> list[st.Path]:
        self.expect_symbol("(")
        found = [self.path()]
        while self.accept_symbol(","):
            found.append(self.path())
        self.expect_symbol(")")
        return found

    def _static_partition(self) -> tuple[tuple[str, Any], ...]:
        self.expect_symbol("(")
        found: list[tuple[str, Any]] = []
        while not found or self.accept_symbol(","):
            name = self.name()
            self.expect_symbol("=")
            value = self.expression()
            if not isinstance(value, Constant):
                self.fail("a constant as value of the partition")
            found.append((name, value))
        self.expect_symbol(")")
        return tuple(found)

    def _execute(self) -> st.Statement:
        self.expect("EXECUTE")
        if self.sees("PLAN"):
            self.refuse(_REFUSED["COMPILE"])
        if not self.accept("STATEMENT", "SET"):
            return self.statement()
        self.expect("BEGIN")
        inserts = self._inserts()
        self.expect("END")
        return st.StatementSetBlock(inserts)

    def _inserts(self) -> tuple[st.InsertInto, ...]:
        found: list[st.InsertInto] = []
        while not found or self.sees("INSERT"):
            found.append(self._insert())
            self.expect_symbol(";")
        return tuple(found)

    def _begin(self) -> st.Statement:
        self.expect("BEGIN", "STATEMENT", "SET")
        return st.BeginStatementSet()

    def _end(self) -> st.Statement:
        self.expect("END")
        return st.EndStatementSet()

    def _explain(self) -> st.Statement:
        self.expect("EXPLAIN")
        details: list[str] = []
        if not self.accept("PLAN", "FOR"):
            while word := self.accept_any(*_DETAILS):
                details.append(word)
                if not self.accept_symbol(","):
                    break
        if self.accept("STATEMENT", "SET"):
            self.expect("BEGIN")
            inserts = self._inserts()
            self.expect("END")
            return st.Explain(st.StatementSetBlock(inserts), tuple(details))
        return st.Explain(self.statement(), tuple(details))

    # --- looking ---
    def _show(self) -> st.Statement:
        self.expect("SHOW")
        if self.accept("CREATE"):
            kind = self.expect_any("TABLE", "VIEW", "CATALOG", "MODEL", "MATERIALIZED")
            return st.Show(f"CREATE {kind}", self.path())
        if self.accept("CURRENT"):
            return st.Show(f"CURRENT {self.expect_any('CATALOG', 'DATABASE')}")
        prefix = self.accept_any("USER", "FULL", "PARTITIONS")
        if prefix == "PARTITIONS":
            return st.Show(prefix, self.path())
        words = ("TABLES", "VIEWS", "COLUMNS", "FUNCTIONS", "DATABASES", "CATALOGS", "MODULES", "JARS", "JOBS")
        what = self.expect_any(*words, "PROCEDURES", "MODELS")
        path = self.path() if self.accept_any("FROM", "IN") else ()
        return self._like(st.Show(f"{prefix} {what}" if prefix else what, path))

    def _like(self, show: st.Show) -> st.Statement:
        negated = self.accept("NOT")
        word = self.expect_any("LIKE", "ILIKE") if negated else self.accept_any("LIKE", "ILIKE")
        if word is None:
            return show
        return replace(show, pattern=self.string(), negated=negated, ignore_case=word == "ILIKE")

    def _describe(self) -> st.Statement:
        self.expect_any("DESCRIBE", "DESC")
        kind = "TABLE"
        if self.ahead().kind not in {END, SYMBOL}:
            kind = self.accept_any("DATABASE", "CATALOG", "FUNCTION", "MODEL", "JOB") or "TABLE"
        if kind == "JOB":
            return st.Describe((self.string(),), kind)
        extended = self.accept("EXTENDED")
        return st.Describe(self.path(), kind, extended)

    def _use(self) -> st.Statement:
        self.expect("USE")
        if self.accept("CATALOG"):
            return st.Use("CATALOG", (self.name(),))
        if self.accept("MODULES"):
            names = [self.name()]
            while self.accept_symbol(","):
                names.append(self.name())
            return st.Use("MODULES", tuple(names))
        return st.Use("DATABASE", self.path())

    # --- settings ---
    def _set(self) -> st.Statement:
        self.expect("SET")
        if self.token.kind == END or self.sees_symbol(";"):
            return st.Set()
        key = self._setting()
        self.expect_symbol("=")
        return st.Set(key, self._setting())

    def _reset(self) -> st.Statement:
        self.expect("RESET")
        return st.Reset(None if self.token.kind == END or self.sees_symbol(";") else self._setting())

    def _setting(self) -> str:
        """Parse a string, or any tokens up to = or ;."""
        if self.token.kind == STRING:
            return self.advance().text
        start = self.index
        while self.token.kind != END and self.token.text not in {"=", ";"}:
            self.advance()
        if self.index == start:
            self.fail("a key or value in quotes")
        return self.text_since(start)

    # --- the rest ---
    def _load(self) -> st.Statement:
        self.expect("LOAD", "MODULE")
        name = self.name()
        return st.LoadModule(name, self.options() if self.accept("WITH") else ())

    def _unload(self) -> st.Statement:
        self.expect("UNLOAD", "MODULE")
        return st.UnloadModule(self.name())

    def _jar(self) -> st.Statement:
        verb = self.expect_any("ADD", "REMOVE")
        self.expect("JAR")
        return st.Jar(verb, self.string())

    def _stop(self) -> st.Statement:
        self.expect("STOP", "JOB")
        job = self.string()
        self.accept("WITH")
        savepoint = self.accept("SAVEPOINT")
        self.accept("WITH")
        return st.StopJob(job, savepoint, self.accept("DRAIN"))

    def _truncate(self) -> st.Statement:
        self.expect("TRUNCATE", "TABLE")
        return st.Truncate(self.path())

    def _client(self) -> st.Statement:
        return st.Client(self.expect_any("QUIT", "EXIT", "CLEAR", "HELP"))


_VERBS: dict[str, Callable[[StatementParser], st.Statement]] = {
    "SELECT": StatementParser._query_statement,
    "INSERT": StatementParser._insert,
    "EXECUTE": StatementParser._execute,
    "CREATE": StatementParser.create,
    "REPLACE": StatementParser.create,
    "DROP": StatementParser.drop,
    "ALTER": StatementParser.alter,
    "SHOW": StatementParser._show,
    "DESCRIBE": StatementParser._describe,
    "DESC": StatementParser._describe,
    "EXPLAIN": StatementParser._explain,
    "USE": StatementParser._use,
    "SET": StatementParser._set,
    "RESET": StatementParser._reset,
    "BEGIN": StatementParser._begin,
    "END": StatementParser._end,
    "LOAD": StatementParser._load,
    "UNLOAD": StatementParser._unload,
    "ADD": StatementParser._jar,
    "REMOVE": StatementParser._jar,
    "STOP": StatementParser._stop,
    "TRUNCATE": StatementParser._truncate,
    "QUIT": StatementParser._client,
    "EXIT": StatementParser._client,
    "CLEAR": StatementParser._client,
    "HELP": StatementParser._client,
}


def parse(text: str) -> list[st.Statement]:
    """Return the statements of a text. SqlParserException has line and column if it is not SQL."""
    return StatementParser(text).statements()


def parse_expression(text: str) -> st.Expression:
    """Return an expression that stands alone, such as that of a computed column."""
    parser = StatementParser(text)
    tree = parser.expression()
    if parser.token.kind != END:
        parser.fail()
    return st.Expression(text, tree)


__all__ = ["StatementParser", "TypeParser", "parse", "parse_expression"]
