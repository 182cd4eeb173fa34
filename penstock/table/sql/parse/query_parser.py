"""Queries: SELECT, VALUES, set operations, WITH and FROM."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from penstock.table.sql.parse import hints
from penstock.table.sql.parse.cursor import Cursor
from penstock.table.sql.parse.expression_parser import (
    read_arguments,
    read_expression,
    read_expressions,
    read_inner_query,
    read_orderings,
    read_summand,
    read_window,
)
from penstock.table.sql.parse.hints import Hint
from penstock.table.sql.parse.match_parser import read_match_recognize
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


def read_query(cursor: Cursor) -> Query:
    """Parse a query, with its common tables."""
    at = cursor.at
    if not cursor.accept("WITH"):
        return _read_order(cursor, _read_union(cursor))
    if cursor.sees("RECURSIVE"):
        cursor.refuse("recursive queries are")
    tables = [_read_common_table(cursor)]
    while cursor.accept_symbol(","):
        tables.append(_read_common_table(cursor))
    return With(at, tuple(tables), _read_order(cursor, _read_union(cursor)))


def _read_common_table(cursor: Cursor) -> CommonTable:
    at, name = cursor.at, cursor.name()
    columns = cursor.names() if cursor.sees_symbol("(") else ()
    cursor.expect("AS")
    cursor.expect_symbol("(")
    query = read_query(cursor)
    cursor.expect_symbol(")")
    return CommonTable(at, name, columns, query)


# --- set operations ---
def _read_union(cursor: Cursor) -> Query:
    left = _read_intersection(cursor)
    while True:
        at, kind = cursor.at, cursor.accept_any("UNION", "EXCEPT")
        if kind is None:
            return left
        left = Combined(at, left, *_read_operation(cursor, kind, _read_intersection))


def _read_intersection(cursor: Cursor) -> Query:
    left = _read_simple_query(cursor)
    while True:
        at = cursor.at
        if not cursor.accept("INTERSECT"):
            return left
        left = Combined(at, left, *_read_operation(cursor, "INTERSECT", _read_simple_query))


def _read_operation(cursor: Cursor, kind: str, operand: Callable[[Cursor], Query]) -> tuple[Query, str, bool]:
    every = cursor.accept("ALL")
    if not every:
        cursor.accept("DISTINCT")
    return operand(cursor), kind, every


def _read_simple_query(cursor: Cursor) -> Query:
    at = cursor.at
    if cursor.accept_symbol("("):
        query = read_query(cursor)
        cursor.expect_symbol(")")
        return query
    if cursor.accept("VALUES"):
        return _read_values(cursor, at)
    if cursor.sees("TABLE"):
        return _read_explicit_table(cursor, at)
    return _read_select(cursor, at)


def _read_explicit_table(cursor: Cursor, at: Position) -> Query:
    """Parse `TABLE t`, which is short for SELECT * FROM t."""
    cursor.expect("TABLE")
    return Select(at, (Item(at, Star(at)),), TableName(cursor.at, cursor.path()))


def _read_values(cursor: Cursor, at: Position) -> Query:
    rows = [_read_row_of_values(cursor)]
    while cursor.accept_symbol(","):
        rows.append(_read_row_of_values(cursor))
    return ValueRows(at, tuple(rows))


def _read_row_of_values(cursor: Cursor) -> tuple[Node, ...]:
    if cursor.sees("ROW") or cursor.sees_symbol("("):
        cursor.accept("ROW")
        cursor.expect_symbol("(")
        values = read_expressions(cursor)
        cursor.expect_symbol(")")
        return values
    return (read_expression(cursor),)


# --- after a query ---
def _read_order(cursor: Cursor, query: Query) -> Query:
    at = cursor.at
    order = read_orderings(cursor) if cursor.sees("ORDER", "BY") else ()
    offset, limit, found = 0, None, bool(order)
    while word := cursor.accept_any("LIMIT", "OFFSET", "FETCH"):
        found = True
        if word == "LIMIT":
            limit = None if cursor.accept("ALL") else cursor.whole_number()
            if cursor.sees_symbol(","):
                cursor.fail("OFFSET, as LIMIT takes one number")
        elif word == "OFFSET":
            offset = cursor.whole_number()
            cursor.accept_any("ROW", "ROWS")
        else:
            limit = _read_fetch(cursor)
    return Ordered(at, query, order, offset, limit) if found else query


def _read_fetch(cursor: Cursor) -> int:
    cursor.expect_any("FIRST", "NEXT")
    count = cursor.whole_number()
    cursor.expect_any("ROW", "ROWS")
    cursor.expect("ONLY")
    return count


# --- SELECT ---
def _read_select(cursor: Cursor, at: Position) -> Query:
    cursor.expect("SELECT")
    advice = read_hints(cursor)
    distinct = cursor.accept("DISTINCT")
    if not distinct:
        cursor.accept("ALL")
    items = _read_items(cursor)
    source = _read_from(cursor) if cursor.accept("FROM") else None
    hints.check_tables(advice, source)
    where = read_expression(cursor) if cursor.accept("WHERE") else None
    groups = _read_groups(cursor) if cursor.accept("GROUP", "BY") else None
    having = read_expression(cursor) if cursor.accept("HAVING") else None
    windows = _read_windows(cursor) if cursor.accept("WINDOW") else ()
    qualify = read_expression(cursor) if cursor.accept("QUALIFY") else None
    return Select(at, items, source, where, groups, having, qualify, windows, distinct, hints.state_ttl(advice))


def _read_items(cursor: Cursor) -> tuple[Item, ...]:
    found = [_read_item(cursor)]
    while cursor.accept_symbol(","):
        found.append(_read_item(cursor))
    return tuple(found)


def _read_item(cursor: Cursor) -> Item:
    at = cursor.at
    if cursor.accept_symbol("*"):
        return Item(at, Star(at))
    value = read_expression(cursor)
    if cursor.accept("AS"):
        return Item(at, value, cursor.name())
    return Item(at, value, cursor.name() if cursor.sees_name() else None)


def _read_windows(cursor: Cursor) -> tuple[tuple[str, Window], ...]:
    found: list[tuple[str, Window]] = []
    while not found or cursor.accept_symbol(","):
        name = cursor.name()
        cursor.expect("AS")
        found.append((name, read_window(cursor)))
    return tuple(found)


# --- GROUP BY ---
def _read_groups(cursor: Cursor) -> tuple[Group, ...]:
    cursor.accept_any("ALL", "DISTINCT")
    found = [_read_group(cursor)]
    while cursor.accept_symbol(","):
        found.append(_read_group(cursor))
    return tuple(found)


def _read_group(cursor: Cursor) -> Group:
    at = cursor.at
    if cursor.accept("GROUPING", "SETS"):
        cursor.expect_symbol("(")
        members = [_read_group(cursor)]
        while cursor.accept_symbol(","):
            members.append(_read_group(cursor))
        cursor.expect_symbol(")")
        return Group(at, "SETS", tuple(members))
    if word := cursor.accept_any("ROLLUP", "CUBE"):
        cursor.expect_symbol("(")
        lists = [_read_key_list(cursor)]
        while cursor.accept_symbol(","):
            lists.append(_read_key_list(cursor))
        cursor.expect_symbol(")")
        return Group(at, word, tuple(lists))
    return Group(at, "", _read_key_list(cursor))


def _read_key_list(cursor: Cursor) -> tuple[Node, ...]:
    """Parse an expression, or several in brackets, or an empty pair of brackets."""
    if cursor.sees_symbol("(") and cursor.ahead().text == ")":
        cursor.index += 2
        return ()
    value = read_expression(cursor)
    return value.args if isinstance(value, Invoke) and value.name == "ROW" and not value.path else (value,)


# --- FROM ---
def _read_from(cursor: Cursor) -> Source:
    source = _read_joins(cursor)
    while True:
        at = cursor.at
        if not cursor.accept_symbol(","):
            return source
        source = Joined(at, source, _read_joins(cursor), "CROSS")


def _read_joins(cursor: Cursor) -> Source:
    left = _read_table(cursor)
    while True:
        at, natural = cursor.at, cursor.accept("NATURAL")
        kind = _read_join_kind(cursor)
        if kind is None:
            if natural:
                cursor.fail()
            return left
        left = _read_join(cursor, at, left, kind, natural)


def _read_join_kind(cursor: Cursor) -> str | None:
    if cursor.accept("CROSS", "JOIN"):
        return "CROSS"
    if cursor.accept("JOIN") or cursor.accept("INNER", "JOIN"):
        return "INNER"
    for kind in ("LEFT", "RIGHT", "FULL"):
        if cursor.accept(kind, "JOIN") or cursor.accept(kind, "OUTER", "JOIN"):
            return kind
    return None


def _read_join(cursor: Cursor, at: Position, left: Source, kind: str, natural: bool) -> Source:
    right = _read_table(cursor)
    if natural or kind == "CROSS":
        return Joined(at, left, right, kind, natural=natural)
    if cursor.accept("USING"):
        return Joined(at, left, right, kind, using=cursor.names())
    return Joined(at, left, right, kind, read_expression(cursor) if cursor.accept("ON") else None)


def _read_table(cursor: Cursor) -> Source:
    source = _read_source(cursor)
    if isinstance(source, Joined):
        return source
    if cursor.sees("FOR", "SYSTEM_TIME"):
        source = _read_as_of(cursor, source)
    if cursor.token.upper in _NOT_OFFERED:
        cursor.refuse(_NOT_OFFERED[cursor.token.upper])
    source = _read_alias(cursor, source)
    if cursor.accept("MATCH_RECOGNIZE"):
        source = _read_alias(cursor, read_match_recognize(cursor, source))
    return source


def _read_as_of(cursor: Cursor, source: Source) -> Source:
    if not isinstance(source, TableName):
        cursor.fail("FOR SYSTEM_TIME AS OF only behind the name of a table")
    cursor.expect("FOR", "SYSTEM_TIME", "AS", "OF")
    return replace(source, as_of=read_summand(cursor))


def _read_alias(cursor: Cursor, source: Source) -> Source:
    at = cursor.at
    if cursor.accept("AS") or (cursor.sees_name() and not cursor.sees("MATCH_RECOGNIZE")):
        return Aliased(at, source, cursor.name(), cursor.names() if cursor.sees_symbol("(") else ())
    return source


def _read_source(cursor: Cursor) -> Source:
    at = cursor.at
    if cursor.sees_symbol("("):
        return _read_in_round_brackets(cursor, at)
    if cursor.accept("LATERAL"):
        return _read_lateral(cursor, at)
    if cursor.accept("TABLE"):
        return _read_function_table(cursor, at)
    if cursor.accept("UNNEST"):
        return _read_unnest(cursor, at)
    if cursor.accept("VALUES"):
        return Derived(at, _read_values(cursor, at))
    path = _read_table_path(cursor)
    if cursor.sees_symbol("("):
        return FunctionTable(at, _read_table_call(cursor, at, path))
    return TableName(at, path, read_table_options(cursor))


def _read_table_path(cursor: Cursor) -> tuple[str, ...]:
    """Parse a path. A function in FROM may have a reserved word as its name."""
    if cursor.ahead().text == "(" and cursor.token.upper:
        return (cursor.advance().text,)
    return cursor.path()


def _read_in_round_brackets(cursor: Cursor, at: Position) -> Source:
    cursor.expect_symbol("(")
    query = read_inner_query(cursor)
    if query is not None:
        return Derived(at, query)
    source = _read_from(cursor)
    cursor.expect_symbol(")")
    return source


def _read_lateral(cursor: Cursor, at: Position) -> Source:
    if cursor.accept("TABLE"):
        return _read_function_table(cursor, at)
    if cursor.accept("UNNEST"):
        return _read_unnest(cursor, at)
    cursor.expect_symbol("(")
    query = read_query(cursor)
    cursor.expect_symbol(")")
    return Derived(at, query, lateral=True)


def _read_unnest(cursor: Cursor, at: Position) -> Source:
    cursor.expect_symbol("(")
    value = read_expression(cursor)
    cursor.expect_symbol(")")
    return Unnest(at, value, cursor.accept("WITH", "ORDINALITY"))


def _read_function_table(cursor: Cursor, at: Position) -> Source:
    cursor.expect_symbol("(")
    call_at = cursor.at
    call = _read_table_call(cursor, call_at, _read_table_path(cursor))
    cursor.expect_symbol(")")
    return FunctionTable(at, call)


def _read_table_call(cursor: Cursor, at: Position, path: tuple[str, ...]) -> Invoke:
    cursor.expect_symbol("(")
    args, names = read_arguments(cursor)
    cursor.expect_symbol(")")
    return Invoke(at, path[-1], args, path[:-1], names)


def read_argument(cursor: Cursor) -> Node:
    """Parse an argument of a function, which may be a table or a descriptor."""
    at = cursor.at
    if cursor.accept("TABLE"):
        source: Source = TableName(cursor.at, cursor.path())
        if cursor.sees_symbol("(") or cursor.sees_hint():
            cursor.fail('"," or ")"')
        return TableArg(at, source, _read_partition(cursor))
    if cursor.sees("MODEL") and cursor.ahead().kind in {WORD, QUOTED}:
        cursor.refuse("models are")
    if cursor.sees("DESCRIPTOR") and cursor.ahead().text == "(":
        cursor.advance()
        return Descriptor(at, cursor.names())
    value = read_expression(cursor)
    if isinstance(value, Nested) and value.kind == "SCALAR" and cursor.sees("PARTITION", "BY"):
        return TableArg(at, Derived(at, value.query), _read_partition(cursor))
    return value


def _read_partition(cursor: Cursor) -> tuple[Node, ...]:
    if not cursor.accept("PARTITION", "BY"):
        return ()
    if not cursor.sees_symbol("("):
        return (read_expression(cursor),)
    cursor.expect_symbol("(")
    keys = read_expressions(cursor)
    cursor.expect_symbol(")")
    return keys


# --- hints ---
def read_hints(cursor: Cursor) -> tuple[Hint, ...]:
    """Parse hints."""
    found: list[Hint] = []
    while cursor.sees_hint():
        at = cursor.at
        found += hints.read(cursor.advance().text, at)
    return tuple(found)


def read_table_options(cursor: Cursor) -> tuple[tuple[str, str], ...]:
    """Parse hints after a table, and return the options of the hint OPTIONS."""
    return tuple(one for hint in read_hints(cursor) if hint.name == "OPTIONS" for one in hint.options)
