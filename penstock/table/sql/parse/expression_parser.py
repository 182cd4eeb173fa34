"""Expressions: operators by their precedence, functions, and functions with a syntax of their own."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from penstock.errors import SqlParserException
from penstock.table.sql.parse import literals
from penstock.table.sql.parse.cursor import Cursor
from penstock.table.sql.parse.syntax import (
    Bound,
    Constant,
    FieldOf,
    Invoke,
    Name,
    Nested,
    Node,
    Ordering,
    Star,
    Window,
    Word,
)
from penstock.table.sql.parse.tokens import HEX, NUMBER, QUOTED, STRING, SYMBOL, WORD, Position
from penstock.table.types.data_types import NumericType

if TYPE_CHECKING:
    from penstock.table.sql.parse.syntax import Query

_COMPARISONS = {"=": "=", "<>": "<>", "!=": "<>", "<": "<", "<=": "<=", ">": ">", ">=": ">="}
_SUMS = {"+", "-"}
_PRODUCTS = {"*", "/", "%", "||"}
_WITHOUT_BRACKETS = {"CURRENT_DATE", "CURRENT_TIME", "CURRENT_TIMESTAMP", "LOCALTIME", "LOCALTIMESTAMP"}
_VARIABLES = {
    "CURRENT_CATALOG",
    "CURRENT_DEFAULT_TRANSFORM_GROUP",
    "CURRENT_PATH",
    "CURRENT_ROLE",
    "CURRENT_SCHEMA",
    "CURRENT_USER",
    "SESSION_USER",
    "SYSTEM_USER",
    "USER",
}
"""Reserved words that name a column in an expression, because Flink has no such functions."""
_STRUCTURE = """
ALL AND ANY AS BETWEEN BY CREATE CROSS DISTINCT DROP ELSE END EXCEPT FETCH FOR FROM FULL GROUP HAVING IN INNER INTERSECT
INTO IS JOIN LIKE LIMIT NATURAL NOT OFFSET ON OR ORDER OVER SELECT SET SIMILAR SOME TABLE THEN UNION USING VALUES WHEN
WHERE WINDOW WITH
"""
_NO_FUNCTIONS = frozenset(_STRUCTURE.split())


def read_expression(cursor: Cursor) -> Node:
    """Parse an expression."""
    left = _read_conjunction(cursor)
    while True:
        at = cursor.at
        if not cursor.accept("OR"):
            return left
        left = Invoke(at, "OR", (left, _read_conjunction(cursor)))


def _read_conjunction(cursor: Cursor) -> Node:
    left = _read_negation(cursor)
    while True:
        at = cursor.at
        if not cursor.accept("AND"):
            return left
        left = Invoke(at, "AND", (left, _read_negation(cursor)))


def _read_negation(cursor: Cursor) -> Node:
    at = cursor.at
    if cursor.accept("NOT"):
        return Invoke(at, "NOT", (_read_negation(cursor),))
    return _read_test_chain(cursor)


# --- IS ... ---
def _read_test_chain(cursor: Cursor) -> Node:
    value = _read_comparison(cursor)
    while True:
        at = cursor.at
        if not cursor.accept("IS"):
            return value
        value = _read_test(cursor, value, at)


def _read_test(cursor: Cursor, value: Node, at: Position) -> Node:
    negated = "NOT " if cursor.accept("NOT") else ""
    if cursor.accept("DISTINCT", "FROM"):
        return Invoke(at, f"IS {negated}DISTINCT FROM", (value, _read_sum(cursor)))
    if cursor.accept("JSON"):
        kind = cursor.accept_any("VALUE", "OBJECT", "ARRAY", "SCALAR")
        test: Node = Invoke(at, "IS JSON", (value, Word(at, kind)) if kind else (value,))
        return Invoke(at, "NOT", (test,)) if negated else test
    word = cursor.expect_any("NULL", "TRUE", "FALSE", "UNKNOWN")
    return Invoke(at, f"IS {negated}{word}", (value,))


# --- comparisons ---
def _read_comparison(cursor: Cursor) -> Node:
    left = _read_pattern(cursor)
    while cursor.token.kind == SYMBOL and cursor.token.text in _COMPARISONS:
        at, sign = cursor.at, _COMPARISONS[cursor.advance().text]
        quantifier = cursor.accept_any("ANY", "SOME", "ALL") if cursor.ahead().text == "(" else None
        left = (
            _read_compare_with_query(cursor, left, sign, quantifier, at)
            if quantifier
            else Invoke(at, sign, (left, _read_pattern(cursor)))
        )
    return left


def _read_compare_with_query(cursor: Cursor, left: Node, sign: str, quantifier: str, at: Position) -> Node:
    """Parse a comparison with a query.

    `= ANY` is IN, `<> ALL` is NOT IN; others compare with the least or greatest value.
    """
    cursor.expect_symbol("(")
    query = cursor.grammar.query(cursor)
    cursor.expect_symbol(")")
    every = quantifier == "ALL"
    if sign == ("<>" if every else "="):
        inside = Nested(at, "IN", query, _values(left))
        return Invoke(at, "NOT", (inside,)) if every else inside
    return Nested(at, f"{sign} {'ALL' if every else 'SOME'}", query, _values(left))


def _read_pattern(cursor: Cursor) -> Node:
    """Parse LIKE, BETWEEN and IN, which bind more tightly than = and <."""
    left = _read_sum(cursor)
    while True:
        at, negated = cursor.at, cursor.sees("NOT") and cursor.ahead().upper in _PATTERNS
        if negated:
            cursor.advance()
        word = cursor.accept_any(*_PATTERNS)
        if word is None:
            return left
        left = _read_pattern_test(cursor, left, word, at)
        if negated:
            left = Invoke(at, "NOT", (left,))


def _read_pattern_test(cursor: Cursor, left: Node, word: str, at: Position) -> Node:
    if word == "IN":
        return _read_membership(cursor, left, at)
    if word == "BETWEEN":
        return _read_between(cursor, left, at)
    if word == "OVERLAPS":
        return Invoke(at, "OVERLAPS", (*_values(left), *_values(_read_sum(cursor))))
    if word == "SIMILAR":
        cursor.expect("TO")
    args = [left, _read_sum(cursor)]
    if cursor.accept("ESCAPE"):
        args.append(_read_sum(cursor))
    return Invoke(at, "SIMILAR TO" if word == "SIMILAR" else word, tuple(args))


def _read_between(cursor: Cursor, left: Node, at: Position) -> Node:
    symmetric = cursor.accept("SYMMETRIC")
    cursor.accept("ASYMMETRIC")
    low = _read_sum(cursor)
    cursor.expect("AND")
    high = _read_sum(cursor)
    ordered: Node = Invoke(at, "BETWEEN", (left, low, high))
    return Invoke(at, "OR", (ordered, Invoke(at, "BETWEEN", (left, high, low)))) if symmetric else ordered


def _read_membership(cursor: Cursor, left: Node, at: Position) -> Node:
    cursor.expect_symbol("(")
    query = read_inner_query(cursor)
    if query is not None:
        return Nested(at, "IN", query, _values(left))
    values = read_expressions(cursor)
    cursor.expect_symbol(")")
    return Invoke(at, "IN", (left, *values))


def sees_query(cursor: Cursor) -> bool:
    """Return True if a query starts here, perhaps in brackets."""
    index = 0
    while cursor.ahead(index).text == "(" and cursor.ahead(index).kind == SYMBOL:
        index += 1
    return cursor.ahead(index).upper in {"SELECT", "WITH", "VALUES"}


def read_inner_query(cursor: Cursor) -> Query | None:
    """Parse a query after an opening bracket, up to its closing bracket, or return None.

    After a second bracket it may be the first part of an expression, as in ((SELECT 1) + 1).
    """
    if not sees_query(cursor):
        return None
    start = cursor.index
    try:
        query = cursor.grammar.query(cursor)
        cursor.expect_symbol(")")
    except SqlParserException:
        if cursor.tokens[start].text != "(":
            raise
        cursor.index = start
        return None
    return query


# --- arithmetic ---
def read_summand(cursor: Cursor) -> Node:
    """Parse an expression in which IN and BETWEEN are not operators."""
    return _read_sum(cursor)


def _read_sum(cursor: Cursor) -> Node:
    left = _read_product(cursor)
    while cursor.token.kind == SYMBOL and cursor.token.text in _SUMS:
        at, sign = cursor.at, cursor.advance().text
        left = Invoke(at, sign, (left, _read_product(cursor)))
    return left


def _read_product(cursor: Cursor) -> Node:
    left = _read_sign(cursor)
    while cursor.token.kind == SYMBOL and cursor.token.text in _PRODUCTS:
        at, sign = cursor.at, cursor.advance().text
        left = Invoke(at, sign, (left, _read_sign(cursor)))
    return left


def _read_sign(cursor: Cursor) -> Node:
    at = cursor.at
    if cursor.accept_symbol("-"):
        return _negate(at, _read_sign(cursor))
    if cursor.accept_symbol("+"):
        return Invoke(at, "POSITIVE", (_read_sign(cursor),))
    return _read_access(cursor)


def _read_access(cursor: Cursor) -> Node:
    """Parse elements in square brackets, and fields after a dot."""
    value = _read_primary(cursor)
    while True:
        at = cursor.at
        if cursor.accept_symbol("["):
            value = Invoke(at, "ITEM", (value, read_expression(cursor)))
            cursor.expect_symbol("]")
        elif not isinstance(value, Name | Star) and cursor.accept_symbol("."):
            value = FieldOf(at, value, cursor.name())
        else:
            return value


# --- operands ---
def _read_primary(cursor: Cursor) -> Node:
    token, at = cursor.token, cursor.at
    if token.kind == STRING:
        return _read_text(cursor)
    if token.kind == NUMBER:
        return _read_number(cursor, cursor.advance().text, at)
    if token.kind == HEX:
        kind, value = literals.binary(cursor.advance().text, at)
        return Constant(at, kind, value, f"X'{token.text}'")
    if token.kind == SYMBOL:
        return _read_in_brackets(cursor, at)
    if token.kind in {WORD, QUOTED}:
        return _read_word(cursor, at)
    return cursor.fail("an expression")


def _read_text(cursor: Cursor) -> Node:
    """Parse a string. Strings on consecutive lines are one."""
    at, text, line = cursor.at, cursor.advance().text, cursor.at.line
    while cursor.token.kind == STRING and cursor.at.line > line:
        line, text = cursor.at.line, text + cursor.advance().text
    kind, value = literals.string(text)
    return Constant(at, kind, value, _quote(text))


def _read_number(cursor: Cursor, text: str, at: Position) -> Node:
    kind, value = literals.number(text, at)
    return Constant(at, kind, value, text)


def _read_in_brackets(cursor: Cursor, at: Position) -> Node:
    if cursor.token.text == "." and cursor.ahead().kind == NUMBER:
        cursor.advance()
        return _read_number(cursor, "." + cursor.advance().text, at)
    if cursor.token.text != "(":
        return cursor.fail("an expression")
    cursor.advance()
    query = read_inner_query(cursor)
    if query is not None:
        return Nested(at, "SCALAR", query)
    values = read_expressions(cursor)
    cursor.expect_symbol(")")
    if len(values) > 1:
        return Invoke(at, "ROW", values)
    return cursor.grammar.between_moments(cursor, values[0]) or values[0]


def read_expressions(cursor: Cursor) -> tuple[Node, ...]:
    """Parse expressions with commas between them."""
    found = [read_expression(cursor)]
    while cursor.accept_symbol(","):
        found.append(read_expression(cursor))
    return tuple(found)


def _read_word(cursor: Cursor, at: Position) -> Node:
    special = cursor.grammar.special.get(cursor.token.upper)
    if special is not None:
        found = special(cursor, at)
        if found is not None:
            return found
    opens = cursor.ahead().kind == SYMBOL and cursor.ahead().text == "("
    if opens and cursor.token.upper not in _NO_FUNCTIONS:
        return read_function(cursor, at)
    if cursor.token.upper in _WITHOUT_BRACKETS:
        return Invoke(at, cursor.advance().upper, ())
    if cursor.token.upper in _VARIABLES:
        return Name(at, (cursor.advance().text,))
    return _read_name(cursor, at)


def _read_name(cursor: Cursor, at: Position) -> Node:
    if not cursor.sees_name():
        cursor.fail("an expression" if cursor.token.kind != WORD else "")
    parts = [cursor.name()]
    while cursor.sees_symbol(".") and (cursor.ahead().kind in {WORD, QUOTED} or cursor.ahead().text == "*"):
        cursor.advance()
        if cursor.accept_symbol("*"):
            return Star(at, tuple(parts))
        parts.append(cursor.advance().text)
        if cursor.sees_symbol("("):
            return _read_call(cursor, at, parts[-1], tuple(parts[:-1]))
    return Name(at, tuple(parts))


# --- functions ---
def read_function(cursor: Cursor, at: Position) -> Node:
    """Parse the call of a function."""
    name = cursor.advance().text
    own = cursor.grammar.own_syntax.get(name.upper())
    if own is not None:
        cursor.expect_symbol("(")
        found = own(cursor, at)
        cursor.expect_symbol(")")
        return _read_clauses(cursor, found) if isinstance(found, Invoke) else found
    return _read_call(cursor, at, name, ())


def _read_call(cursor: Cursor, at: Position, name: str, path: tuple[str, ...]) -> Node:
    cursor.expect_symbol("(")
    distinct = cursor.accept("DISTINCT")
    if not distinct:
        cursor.accept("ALL")
    if distinct and (cursor.sees_symbol("*") or cursor.sees_symbol(")")):
        cursor.fail("an expression")
    if cursor.accept_symbol("*"):
        cursor.expect_symbol(")")
        return _read_clauses(cursor, Invoke(at, name, (), path, star=True))
    args, names = read_arguments(cursor)
    order = read_orderings(cursor) if name.upper() == "ARRAY_AGG" and cursor.sees("ORDER", "BY") else ()
    call = Invoke(at, name, args, path, names, distinct, order=order)
    call = _read_null_treatment(cursor, call)
    cursor.expect_symbol(")")
    return _read_clauses(cursor, call)


def read_arguments(cursor: Cursor) -> tuple[tuple[Node, ...], tuple[str | None, ...]]:
    """Parse the arguments of a call, and the names of those that have one."""
    args: list[Node] = []
    names: list[str | None] = []
    while not cursor.sees_symbol(")") and (not args or cursor.accept_symbol(",")):
        named = cursor.ahead().kind == SYMBOL and cursor.ahead().text == "=>"
        names.append(cursor.advance().text if named else None)
        if named:
            cursor.expect_symbol("=>")
        args.append(cursor.grammar.argument(cursor))
        if cursor.sees("ORDER", "BY"):
            break
    return tuple(args), tuple(names) if any(names) else ()


def _read_null_treatment(cursor: Cursor, call: Invoke) -> Invoke:
    if cursor.accept("IGNORE", "NULLS"):
        return replace(call, ignore_nulls=True)
    return replace(call, ignore_nulls=False) if cursor.accept("RESPECT", "NULLS") else call


def _read_clauses(cursor: Cursor, call: Invoke) -> Node:
    """Parse WITHIN GROUP, FILTER and OVER after a call."""
    call = _read_null_treatment(cursor, call)
    if cursor.accept("WITHIN", "GROUP"):
        cursor.expect_symbol("(")
        call = replace(call, order=read_orderings(cursor))
        cursor.expect_symbol(")")
    if cursor.sees("FILTER") and cursor.ahead().text == "(":
        cursor.advance()
        cursor.expect_symbol("(")
        cursor.expect("WHERE")
        call = replace(call, filter=read_expression(cursor))
        cursor.expect_symbol(")")
    if cursor.accept("OVER"):
        call = replace(call, over=read_window(cursor) if cursor.sees_symbol("(") else cursor.name())
    return call


# --- windows and orders ---
def read_orderings(cursor: Cursor) -> tuple[Ordering, ...]:
    """Parse ORDER BY."""
    cursor.expect("ORDER", "BY")
    found = [_read_ordering(cursor)]
    while cursor.accept_symbol(","):
        found.append(_read_ordering(cursor))
    return tuple(found)


def _read_ordering(cursor: Cursor) -> Ordering:
    at, value = cursor.at, read_expression(cursor)
    descending = cursor.accept("DESC")
    if not descending:
        cursor.accept("ASC")
    nulls = cursor.expect_any("FIRST", "LAST") if cursor.accept("NULLS") else None
    return Ordering(at, value, descending, None if nulls is None else nulls == "FIRST")


def read_window(cursor: Cursor) -> Window:
    """Parse a window in brackets."""
    at = cursor.at
    cursor.expect_symbol("(")
    based = cursor.sees_name() and not cursor.sees_any("PARTITION", "ORDER", "ROWS", "RANGE")
    base = cursor.name() if based else None
    partition: tuple[Node, ...] = ()
    if cursor.accept("PARTITION", "BY"):
        partition = read_expressions(cursor)
    order = read_orderings(cursor) if cursor.sees("ORDER", "BY") else ()
    unit = cursor.accept_any("ROWS", "RANGE")
    start, end = _read_frame(cursor) if unit else (None, None)
    cursor.expect_symbol(")")
    return Window(at, base, partition, order, None if unit is None else unit == "ROWS", start, end)


def _read_frame(cursor: Cursor) -> tuple[Bound, Bound]:
    if not cursor.accept("BETWEEN"):
        return _read_frame_bound(cursor), Bound("CURRENT ROW")
    start = _read_frame_bound(cursor)
    cursor.expect("AND")
    return start, _read_frame_bound(cursor)


def _read_frame_bound(cursor: Cursor) -> Bound:
    if cursor.accept("CURRENT", "ROW"):
        return Bound("CURRENT ROW")
    offset = None if cursor.accept("UNBOUNDED") else _read_sum(cursor)
    return Bound(cursor.expect_any("PRECEDING", "FOLLOWING"), offset)


_PATTERNS = ("LIKE", "SIMILAR", "BETWEEN", "IN", "OVERLAPS")


def _values(node: Node) -> tuple[Node, ...]:
    return node.args if isinstance(node, Invoke) and node.name == "ROW" else (node,)


def _quote(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def _negate(at: Position, value: Node) -> Node:
    if isinstance(value, Constant) and isinstance(value.type, NumericType) and not value.text.startswith("-"):
        return Constant(at, value.type, -value.value, f"-{value.text}")
    return Invoke(at, "NEGATE", (value,))
