"""CREATE and DROP of tables, views, functions, databases and catalogs."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from penstock.table.sql.parse import statements as st
from penstock.table.sql.parse.problems import SqlValidateException
from penstock.table.sql.parse.query_parser import QueryParser

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


class TableParser(QueryParser):
    """Parses CREATE and DROP."""

    # --- CREATE ---
    def create(self) -> st.Statement:
        """Parse a CREATE statement."""
        replaces = self.accept("REPLACE")
        if not replaces:
            self.expect("CREATE")
            replaces = self.accept("OR", "REPLACE")
        temporary = self.accept("TEMPORARY")
        system = temporary and self.accept("SYSTEM")
        if self.token.upper in _NOT_OFFERED:
            self.refuse(f"{_NOT_OFFERED[self.token.upper]} are")
        kind = self.expect_any("TABLE", "VIEW", "FUNCTION", "DATABASE", "CATALOG")
        exists = self.accept("IF", "NOT", "EXISTS")
        if kind == "TABLE":
            return self._create_table(temporary, exists, replaces)
        if kind == "VIEW":
            return self._create_view(temporary, exists)
        if kind == "FUNCTION":
            return self._create_function(temporary, system, exists)
        return self._create_database(exists) if kind == "DATABASE" else self._create_catalog(exists)

    def _create_table(self, temporary: bool, exists: bool, replaces: bool) -> st.Statement:
        path = self.path()
        elements = self.elements() if self.sees_symbol("(") else Elements()
        table = st.CreateTable(
            path,
            tuple(placed.column for placed in elements.columns),
            elements.watermark,
            elements.primary_key,
            temporary=temporary,
            if_not_exists=exists,
        )
        table = self._table_clauses(table)
        if self.accept("AS"):
            return st.CreateTableAs(table, self.query(), tuple(elements.names), replaces)
        if elements.names or replaces:
            self.fail("AS and a query")
        return replace(table, like=self._like_clause()) if self.accept("LIKE") else table

    def _table_clauses(self, table: st.CreateTable) -> st.CreateTable:
        if self.accept("COMMENT"):
            table = replace(table, comment=self.string())
        if self.sees_any("DISTRIBUTED"):
            table = replace(table, distribution=self._distribution())
        if self.accept("PARTITIONED", "BY"):
            table = replace(table, partitioned=self.names())
        if self.accept("WITH"):
            table = replace(table, options=self.options())
        return table

    def _distribution(self) -> str:
        """Parse DISTRIBUTED, and return its text as it was written."""
        start = self.index
        self.expect("DISTRIBUTED")
        if self.accept("BY"):
            self.accept_any("HASH", "RANGE")
            self.names()
        if self.accept("INTO"):
            self.whole_number()
            self.expect("BUCKETS")
        return self.text_since(start)

    def _like_clause(self) -> st.Like:
        path, choices = self.path(), []
        if self.accept_symbol("("):
            while not self.accept_symbol(")"):
                mode = self.expect_any("INCLUDING", "EXCLUDING", "OVERWRITING")
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
                choices.append((mode, self.expect_any(*kinds)))
        return st.Like(path, tuple(choices))

    def options(self) -> st.Options:
        """Parse ('key' = 'value', ...)."""
        self.expect_symbol("(")
        found: list[tuple[str, str]] = []
        while not self.sees_symbol(")") and (not found or self.accept_symbol(",")):
            key = self.string()
            self.expect_symbol("=")
            found.append((key, self.string()))
        self.expect_symbol(")")
        return tuple(found)

    # --- columns, watermark, key ---
    def elements(self) -> Elements:
        """Parse columns, watermark and primary key in brackets."""
        found = Elements()
        self.expect_symbol("(")
        first = True
        while first or self.accept_symbol(","):
            first = False
            self.element(found)
        self.expect_symbol(")")
        return found

    def element(self, found: Elements) -> None:
        """Parse a column, a watermark or a primary key, and add it."""
        if self.accept("WATERMARK", "FOR"):
            if found.watermark:
                self.fail("a column, as a table has one watermark only")
            found.watermark = self.watermark()
        elif self.sees_any("PRIMARY", "CONSTRAINT", "UNIQUE"):
            found.primary_key = self.primary_key()
        else:
            self._column(found)

    def watermark(self) -> st.WatermarkSpec:
        """Parse the column and the expression of a watermark."""
        column = self.path()
        self.expect("AS")
        return st.WatermarkSpec(column, self.expression_with_text())

    def primary_key(self) -> st.PrimaryKey:
        """Parse a primary key."""
        name = self.name() if self.accept("CONSTRAINT") else None
        if self.sees("UNIQUE"):
            self.fail("PRIMARY KEY, as unique columns are not supported otherwise")
        self.expect("PRIMARY", "KEY")
        columns = self.names()
        self._not_enforced()
        return st.PrimaryKey(columns, name)

    def _not_enforced(self) -> None:
        if not self.accept("NOT", "ENFORCED"):
            found = self.token.describe()
            raise SqlValidateException(f"{self.at}: found {found}; expected NOT ENFORCED, as keys are not checked")

    def expression_with_text(self) -> st.Expression:
        """Parse an expression, and keep its text."""
        start = self.index
        tree = self.expression()
        return st.Expression(self.text_since(start), tree)

    def _column(self, found: Elements) -> None:
        name = self.name()
        if not found.columns and (self.sees_symbol(",") or self.sees_symbol(")")):
            found.names.append(name)
            return
        column = self.column(name)
        if self.accept("PRIMARY", "KEY"):
            self._not_enforced()
            found.primary_key = st.PrimaryKey((name,))
            column = replace(column, comment=self._comment() or column.comment)
        where, after = "", None
        if self.accept("FIRST"):
            where = "FIRST"
        elif self.accept("AFTER"):
            where, after = "AFTER", self.name()
        found.columns.append(st.Placed(column, where, after))

    def column(self, name: str) -> st.ColumnSpec:
        """Parse the definition of a column after its name."""
        if self.accept("AS"):
            expression = self.expression_with_text()
            return st.ColumnSpec(name, None, st.COMPUTED, expression, comment=self._comment())
        kind = self.data_type()
        if not self.accept("METADATA"):
            return st.ColumnSpec(name, kind, comment=self._comment())
        key = self.string() if self.accept("FROM") else None
        virtual = self.accept("VIRTUAL")
        return st.ColumnSpec(name, kind, st.METADATA, None, key, virtual, self._comment())

    def _comment(self) -> str | None:
        return self.string() if self.accept("COMMENT") else None

    # --- views, functions, databases, catalogs ---
    def _create_view(self, temporary: bool, exists: bool) -> st.Statement:
        path = self.path()
        columns = self.names() if self.sees_symbol("(") else ()
        comment = self._comment()
        self.expect("AS")
        start = self.index
        query = self.query()
        return st.CreateView(path, query, self.text_since(start), columns, comment, temporary, exists)

    def _create_function(self, temporary: bool, system: bool, exists: bool) -> st.Statement:
        path = self.path()
        self.expect("AS")
        target, language = self.target()
        resources: list[str] = []
        if self.accept("USING"):
            while not resources or self.accept_symbol(","):
                kind = self.expect_any("JAR", "FILE", "ARCHIVE")
                resources.append(f"ResourceUri{{resourceType={kind}, uri='{self.string()}'}}")
        return st.CreateFunction(path, target, language, temporary, system, exists, tuple(resources))

    def target(self) -> tuple[str, str]:
        """Parse the class of a function, and its language."""
        target = self.string()
        language = self.expect_any("JAVA", "SCALA", "PYTHON", "SQL") if self.accept("LANGUAGE") else "JAVA"
        return target, language

    def _create_database(self, exists: bool) -> st.Statement:
        path, comment = self.path(), self._comment()
        return st.CreateDatabase(path, comment, self.options() if self.accept("WITH") else (), exists)

    def _create_catalog(self, exists: bool) -> st.Statement:
        name, comment = self.name(), self._comment()
        return st.CreateCatalog(name, self.options() if self.accept("WITH") else (), comment, exists)

    # --- DROP ---
    def drop(self) -> st.Statement:
        """Parse a DROP statement."""
        self.expect("DROP")
        temporary = self.accept("TEMPORARY")
        system = temporary and self.accept("SYSTEM")
        if self.token.upper in _NOT_OFFERED:
            self.refuse(f"{_NOT_OFFERED[self.token.upper]} are")
        kind = self.expect_any("TABLE", "VIEW", "FUNCTION", "DATABASE", "CATALOG")
        exists = self.accept("IF", "EXISTS")
        path = self.path()
        word = self.accept_any("RESTRICT", "CASCADE") if kind == "DATABASE" else None
        return st.Drop(kind, path, exists, temporary, system, word == "CASCADE")
