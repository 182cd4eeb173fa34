"""Queries: SELECT, VALUES, set operations, WITH and FROM."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from penstock.table.sql.parse import hints
from penstock.table.sql.parse.hints import Hint
from penstock.table.sql.parse.match_parser import MatchParser
from penstock.table.sql.parse.syntax import (
    Aliased,
    Combined,
    CommonTable,
    Derived,
    Descriptor,
    FunctionTable,
    Group,
    Invoke,
    Item,
    Joined,
    Nested,
    Node,
    Ordered,
    Query,
    Select,
    Source,
    Star,
    TableArg,
    TableName,
    Unnest,
    ValueRows,
    Window,
    With,
)
from penstock.table.sql.parse.tokens import QUOTED, WORD, Position

_NOT_OFFERED = {
    "TABLESAMPLE": "samples of a table are",
    "PIVOT": "PIVOT is",
    "UNPIVOT": "UNPIVOT is",
}


class QueryParser(MatchParser):
    """Parses queries."""

    def query(self) -> Query:
        at = self.at
        if not self.accept("WITH"):
            return self._order(self._union())
        if self.sees("RECURSIVE"):
            self.refuse("recursive queries are")
        tables = [self._common_table()]
        while self.accept_symbol(","):
            tables.append(self._common_table())
        return With(at, tuple(tables), self._order(self._union()))

    def _common_table(self) -> CommonTable:
        at, name = self.at, self.name()
        columns = self.names() if self.sees_symbol("(") else ()
        self.expect("AS")
        self.expect_symbol("(")
        query = self.query()
        self.expect_symbol(")")
        return CommonTable(at, name, columns, query)

    # --- set operations ---
    def _union(self) -> Query:
        left = self._intersection()
        while True:
            at, kind = self.at, self.accept_any("UNION", "EXCEPT")
            if kind is None:
                return left
            left = Combined(at, left, *self._operation(kind, self._intersection))

    def _intersection(self) -> Query:
        left = self._simple_query()
        while True:
            at = self.at
            if not self.accept("INTERSECT"):
                return left
            left = Combined(at, left, *self._operation("INTERSECT", self._simple_query))

    def _operation(self, kind: str, operand: Any) -> tuple[Query, str, bool]:
        every = self.accept("ALL")
        if not every:
            self.accept("DISTINCT")
        return operand(), kind, every

    def _simple_query(self) -> Query:
        at = self.at
        if self.accept_symbol("("):
            query = self.query()
            self.expect_symbol(")")
            return query
        if self.accept("VALUES"):
            return self._values(at)
        if self.sees("TABLE"):
            return self._explicit_table(at)
        return self._select(at)

    def _explicit_table(self, at: Position) -> Query:
        """Parse `TABLE t`, which is short for SELECT * FROM t."""
        self.expect("TABLE")
        return Select(at, (Item(at, Star(at)),), TableName(self.at, self.path()))

    def _values(self, at: Position) -> Query:
        rows = [self._row_of_values()]
        while self.accept_symbol(","):
            rows.append(self._row_of_values())
        return ValueRows(at, tuple(rows))

    def _row_of_values(self) -> tuple[Node, ...]:
        if self.sees("ROW") or self.sees_symbol("("):
            self.accept("ROW")
            self.expect_symbol("(")
            values = self.expressions()
            self.expect_symbol(")")
            return values
        return (self.expression(),)

    # --- after a query ---
    def _order(self, query: Query) -> Query:
        at = self.at
        order = self.orderings() if self.sees("ORDER", "BY") else ()
        offset, limit, found = 0, None, bool(order)
        while word := self.accept_any("LIMIT", "OFFSET", "FETCH"):
            found = True
            if word == "LIMIT":
                limit = None if self.accept("ALL") else self.whole_number()
                if self.sees_symbol(","):
                    self.fail("OFFSET, as LIMIT takes one number")
            elif word == "OFFSET":
                offset = self.whole_number()
                self.accept_any("ROW", "ROWS")
            else:
                limit = self._fetch()
        return Ordered(at, query, order, offset, limit) if found else query

    def _fetch(self) -> int:
        self.expect_any("FIRST", "NEXT")
        count = self.whole_number()
        self.expect_any("ROW", "ROWS")
        self.expect("ONLY")
        return count

    # --- SELECT ---
    def _select(self, at: Position) -> Query:
        self.expect("SELECT")
        advice = self.hints()
        distinct = self.accept("DISTINCT")
        if not distinct:
            self.accept("ALL")
        items = self._items()
        source = self._from() if self.accept("FROM") else None
        hints.check_tables(advice, source)
        where = self.expression() if self.accept("WHERE") else None
        groups = self._groups() if self.accept("GROUP", "BY") else None
        having = self.expression() if self.accept("HAVING") else None
        windows = self._windows() if self.accept("WINDOW") else ()
        qualify = self.expression() if self.accept("QUALIFY") else None
        return Select(at, items, source, where, groups, having, qualify, windows, distinct, hints.state_ttl(advice))

    def _items(self) -> tuple[Item, ...]:
        found = [self._item()]
        while self.accept_symbol(","):
            found.append(self._item())
        return tuple(found)

    def _item(self) -> Item:
        at = self.at
        if self.accept_symbol("*"):
            return Item(at, Star(at))
        value = self.expression()
        if self.accept("AS"):
            return Item(at, value, self.name())
        return Item(at, value, self.name() if self.sees_name() else None)

    def _windows(self) -> tuple[tuple[str, Window], ...]:
        found: list[tuple[str, Window]] = []
        while not found or self.accept_symbol(","):
            name = self.name()
            self.expect("AS")
            found.append((name, self.window()))
        return tuple(found)

    # --- GROUP BY ---
    def _groups(self) -> tuple[Group, ...]:
        self.accept_any("ALL", "DISTINCT")
        found = [self._group()]
        while self.accept_symbol(","):
            found.append(self._group())
        return tuple(found)

    def _group(self) -> Group:
        at = self.at
        if self.accept("GROUPING", "SETS"):
            self.expect_symbol("(")
            members = [self._group()]
            while self.accept_symbol(","):
                members.append(self._group())
            self.expect_symbol(")")
            return Group(at, "SETS", tuple(members))
        if word := self.accept_any("ROLLUP", "CUBE"):
            self.expect_symbol("(")
            lists = [self._key_list()]
            while self.accept_symbol(","):
                lists.append(self._key_list())
            self.expect_symbol(")")
            return Group(at, word, tuple(lists))
        return Group(at, "", self._key_list())

    def _key_list(self) -> tuple[Node, ...]:
        """Parse an expression, or several in brackets, or an empty pair of brackets."""
        if self.sees_symbol("(") and self.ahead().text == ")":
            self.index += 2
            return ()
        value = self.expression()
        return value.args if isinstance(value, Invoke) and value.name == "ROW" and not value.path else (value,)

    # --- FROM ---
    def _from(self) -> Source:
        source = self._joins()
        while True:
            at = self.at
            if not self.accept_symbol(","):
                return source
            source = Joined(at, source, self._joins(), "CROSS")

    def _joins(self) -> Source:
        left = self._table()
        while True:
            at, natural = self.at, self.accept("NATURAL")
            kind = self._join_kind()
            if kind is None:
                if natural:
                    self.fail()
                return left
            left = self._join(at, left, kind, natural)

    def _join_kind(self) -> str | None:
        if self.accept("CROSS", "JOIN"):
            return "CROSS"
        if self.accept("JOIN") or self.accept("INNER", "JOIN"):
            return "INNER"
        for kind in ("LEFT", "RIGHT", "FULL"):
            if self.accept(kind, "JOIN") or self.accept(kind, "OUTER", "JOIN"):
                return kind
        return None

    def _join(self, at: Position, left: Source, kind: str, natural: bool) -> Source:
        right = self._table()
        if natural or kind == "CROSS":
            return Joined(at, left, right, kind, natural=natural)
        if self.accept("USING"):
            return Joined(at, left, right, kind, using=self.names())
        return Joined(at, left, right, kind, self.expression() if self.accept("ON") else None)

    def _table(self) -> Source:
        source = self._source()
        if isinstance(source, Joined):
            return source
        if self.sees("FOR", "SYSTEM_TIME"):
            source = self._as_of(source)
        if self.token.upper in _NOT_OFFERED:
            self.refuse(_NOT_OFFERED[self.token.upper])
        source = self._alias(source)
        if self.accept("MATCH_RECOGNIZE"):
            source = self._alias(self.match_recognize(source))
        return source

    def _as_of(self, source: Source) -> Source:
        if not isinstance(source, TableName):
            self.fail("FOR SYSTEM_TIME AS OF only behind the name of a table")
        self.expect("FOR", "SYSTEM_TIME", "AS", "OF")
        return replace(source, as_of=self.summand())

    def _alias(self, source: Source) -> Source:
        at = self.at
        if self.accept("AS") or (self.sees_name() and not self.sees("MATCH_RECOGNIZE")):
            return Aliased(at, source, self.name(), self.names() if self.sees_symbol("(") else ())
        return source

    def _source(self) -> Source:
        at = self.at
        if self.sees_symbol("("):
            return self._in_round_brackets(at)
        if self.accept("LATERAL"):
            return self._lateral(at)
        if self.accept("TABLE"):
            return self._function_table(at)
        if self.accept("UNNEST"):
            return self._unnest(at)
        if self.accept("VALUES"):
            return Derived(at, self._values(at))
        path = self._table_path()
        if self.sees_symbol("("):
            return FunctionTable(at, self._table_call(at, path))
        return TableName(at, path, self.table_options())

    def _table_path(self) -> tuple[str, ...]:
        """Parse a path. A function in FROM may have a reserved word as its name."""
        if self.ahead().text == "(" and self.token.upper:
            return (self.advance().text,)
        return self.path()

    def _in_round_brackets(self, at: Position) -> Source:
        self.expect_symbol("(")
        query = self.inner_query()
        if query is not None:
            return Derived(at, query)
        source = self._from()
        self.expect_symbol(")")
        return source

    def _lateral(self, at: Position) -> Source:
        if self.accept("TABLE"):
            return self._function_table(at)
        if self.accept("UNNEST"):
            return self._unnest(at)
        self.expect_symbol("(")
        query = self.query()
        self.expect_symbol(")")
        return Derived(at, query, lateral=True)

    def _unnest(self, at: Position) -> Source:
        self.expect_symbol("(")
        value = self.expression()
        self.expect_symbol(")")
        return Unnest(at, value, self.accept("WITH", "ORDINALITY"))

    def _function_table(self, at: Position) -> Source:
        self.expect_symbol("(")
        call_at = self.at
        call = self._table_call(call_at, self._table_path())
        self.expect_symbol(")")
        return FunctionTable(at, call)

    def _table_call(self, at: Position, path: tuple[str, ...]) -> Invoke:
        self.expect_symbol("(")
        args, names = self._arguments()
        self.expect_symbol(")")
        return Invoke(at, path[-1], args, path[:-1], names)

    def argument(self) -> Node:
        at = self.at
        if self.accept("TABLE"):
            source: Source = TableName(self.at, self.path())
            if self.sees_symbol("(") or self.sees_hint():
                self.fail('"," or ")"')
            return TableArg(at, source, self._partition())
        if self.sees("MODEL") and self.ahead().kind in {WORD, QUOTED}:
            self.refuse("models are")
        if self.sees("DESCRIPTOR") and self.ahead().text == "(":
            self.advance()
            return Descriptor(at, self.names())
        value = self.expression()
        if isinstance(value, Nested) and value.kind == "SCALAR" and self.sees("PARTITION", "BY"):
            return TableArg(at, Derived(at, value.query), self._partition())
        return value

    def _partition(self) -> tuple[Node, ...]:
        if not self.accept("PARTITION", "BY"):
            return ()
        if not self.sees_symbol("("):
            return (self.expression(),)
        self.expect_symbol("(")
        keys = self.expressions()
        self.expect_symbol(")")
        return keys

    # --- hints ---
    def hints(self) -> tuple[Hint, ...]:
        """Parse hints."""
        found: list[Hint] = []
        while self.sees_hint():
            at = self.at
            found += hints.read(self.advance().text, at)
        return tuple(found)

    def table_options(self) -> tuple[tuple[str, str], ...]:
        """Parse hints after a table, and return the options of the hint OPTIONS."""
        return tuple(one for hint in self.hints() if hint.name == "OPTIONS" for one in hint.options)
