"""Expressions: operators by their precedence, functions, and functions with a syntax of their own."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from penstock.errors import SqlParserException
from penstock.table.sql.parse import literals
from penstock.table.sql.parse.special_syntax import OWN_SYNTAX, SPECIAL, between_moments
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
from penstock.table.sql.parse.type_parser import TypeParser
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


class ExpressionParser(TypeParser):
    """Parses expressions. Each method handles one level of precedence, the lowest first."""

    def query(self) -> Query:
        """Parse a query. The parser of queries, a subclass, implements it."""
        raise NotImplementedError

    def expression(self) -> Node:
        """Parse an expression."""
        left = self._conjunction()
        while True:
            at = self.at
            if not self.accept("OR"):
                return left
            left = Invoke(at, "OR", (left, self._conjunction()))

    def _conjunction(self) -> Node:
        left = self._negation()
        while True:
            at = self.at
            if not self.accept("AND"):
                return left
            left = Invoke(at, "AND", (left, self._negation()))

    def _negation(self) -> Node:
        at = self.at
        if self.accept("NOT"):
            return Invoke(at, "NOT", (self._negation(),))
        return self._test_chain()

    # --- IS ... ---
    def _test_chain(self) -> Node:
        value = self._comparison()
        while True:
            at = self.at
            if not self.accept("IS"):
                return value
            value = self._test(value, at)

    def _test(self, value: Node, at: Position) -> Node:
        negated = "NOT " if self.accept("NOT") else ""
        if self.accept("DISTINCT", "FROM"):
            return Invoke(at, f"IS {negated}DISTINCT FROM", (value, self._sum()))
        if self.accept("JSON"):
            kind = self.accept_any("VALUE", "OBJECT", "ARRAY", "SCALAR")
            test: Node = Invoke(at, "IS JSON", (value, Word(at, kind)) if kind else (value,))
            return Invoke(at, "NOT", (test,)) if negated else test
        word = self.expect_any("NULL", "TRUE", "FALSE", "UNKNOWN")
        return Invoke(at, f"IS {negated}{word}", (value,))

    # --- comparisons ---
    def _comparison(self) -> Node:
        left = self._pattern()
        while self.token.kind == SYMBOL and self.token.text in _COMPARISONS:
            at, sign = self.at, _COMPARISONS[self.advance().text]
            quantifier = self.accept_any("ANY", "SOME", "ALL") if self.ahead().text == "(" else None
            left = (
                self._compare_with_query(left, sign, quantifier, at)
                if quantifier
                else Invoke(at, sign, (left, self._pattern()))
            )
        return left

    def _compare_with_query(self, left: Node, sign: str, quantifier: str, at: Position) -> Node:
        """Parse a comparison with a query.

        `= ANY` is IN, `<> ALL` is NOT IN; others compare with the least or greatest value.
        """
        self.expect_symbol("(")
        query = self.query()
        self.expect_symbol(")")
        every = quantifier == "ALL"
        if sign == ("<>" if every else "="):
            inside = Nested(at, "IN", query, _values(left))
            return Invoke(at, "NOT", (inside,)) if every else inside
        return Nested(at, f"{sign} {'ALL' if every else 'SOME'}", query, _values(left))

    def _pattern(self) -> Node:
        """Parse LIKE, BETWEEN and IN, which bind more tightly than = and <."""
        left = self._sum()
        while True:
            at, negated = self.at, self.sees("NOT") and self.ahead().upper in _PATTERNS
            if negated:
                self.advance()
            word = self.accept_any(*_PATTERNS)
            if word is None:
                return left
            left = self._pattern_test(left, word, at)
            if negated:
                left = Invoke(at, "NOT", (left,))

    def _pattern_test(self, left: Node, word: str, at: Position) -> Node:
        if word == "IN":
            return self._membership(left, at)
        if word == "BETWEEN":
            return self._between(left, at)
        if word == "OVERLAPS":
            return Invoke(at, "OVERLAPS", (*_values(left), *_values(self._sum())))
        if word == "SIMILAR":
            self.expect("TO")
        args = [left, self._sum()]
        if self.accept("ESCAPE"):
            args.append(self._sum())
        return Invoke(at, "SIMILAR TO" if word == "SIMILAR" else word, tuple(args))

    def _between(self, left: Node, at: Position) -> Node:
        symmetric = self.accept("SYMMETRIC")
        self.accept("ASYMMETRIC")
        low = self._sum()
        self.expect("AND")
        high = self._sum()
        ordered: Node = Invoke(at, "BETWEEN", (left, low, high))
        return Invoke(at, "OR", (ordered, Invoke(at, "BETWEEN", (left, high, low)))) if symmetric else ordered

    def _membership(self, left: Node, at: Position) -> Node:
        self.expect_symbol("(")
        query = self.inner_query()
        if query is not None:
            return Nested(at, "IN", query, _values(left))
        values = self.expressions()
        self.expect_symbol(")")
        return Invoke(at, "IN", (left, *values))

    def sees_query(self) -> bool:
        """Return True if a query starts here, perhaps in brackets."""
        index = 0
        while self.ahead(index).text == "(" and self.ahead(index).kind == SYMBOL:
            index += 1
        return self.ahead(index).upper in {"SELECT", "WITH", "VALUES"}

    def inner_query(self) -> Query | None:
        """Parse a query after an opening bracket, up to its closing bracket, or return None.

        After a second bracket it may be the first part of an expression, as in ((SELECT 1) + 1).
        """
        if not self.sees_query():
            return None
        start = self.index
        try:
            query = self.query()
            self.expect_symbol(")")
        except SqlParserException:
            if self.tokens[start].text != "(":
                raise
            self.index = start
            return None
        return query

    # --- arithmetic ---
    def summand(self) -> Node:
        """Parse an expression in which IN and BETWEEN are not operators."""
        return self._sum()

    def _sum(self) -> Node:
        left = self._product()
        while self.token.kind == SYMBOL and self.token.text in _SUMS:
            at, sign = self.at, self.advance().text
            left = Invoke(at, sign, (left, self._product()))
        return left

    def _product(self) -> Node:
        left = self._sign()
        while self.token.kind == SYMBOL and self.token.text in _PRODUCTS:
            at, sign = self.at, self.advance().text
            left = Invoke(at, sign, (left, self._sign()))
        return left

    def _sign(self) -> Node:
        at = self.at
        if self.accept_symbol("-"):
            return _negate(at, self._sign())
        if self.accept_symbol("+"):
            return Invoke(at, "POSITIVE", (self._sign(),))
        return self._access()

    def _access(self) -> Node:
        """Parse elements in square brackets, and fields after a dot."""
        value = self._primary()
        while True:
            at = self.at
            if self.accept_symbol("["):
                value = Invoke(at, "ITEM", (value, self.expression()))
                self.expect_symbol("]")
            elif not isinstance(value, Name | Star) and self.accept_symbol("."):
                value = FieldOf(at, value, self.name())
            else:
                return value

    # --- operands ---
    def _primary(self) -> Node:
        token, at = self.token, self.at
        if token.kind == STRING:
            return self._text()
        if token.kind == NUMBER:
            return self._number(self.advance().text, at)
        if token.kind == HEX:
            kind, value = literals.binary(self.advance().text, at)
            return Constant(at, kind, value, f"X'{token.text}'")
        if token.kind == SYMBOL:
            return self._in_brackets(at)
        if token.kind in {WORD, QUOTED}:
            return self._word(at)
        return self.fail("an expression")

    def _text(self) -> Node:
        """Parse a string. Strings on consecutive lines are one."""
        at, text, line = self.at, self.advance().text, self.at.line
        while self.token.kind == STRING and self.at.line > line:
            line, text = self.at.line, text + self.advance().text
        kind, value = literals.string(text)
        return Constant(at, kind, value, _quote(text))

    def _number(self, text: str, at: Position) -> Node:
        kind, value = literals.number(text, at)
        return Constant(at, kind, value, text)

    def _in_brackets(self, at: Position) -> Node:
        if self.token.text == "." and self.ahead().kind == NUMBER:
            self.advance()
            return self._number("." + self.advance().text, at)
        if self.token.text != "(":
            return self.fail("an expression")
        self.advance()
        query = self.inner_query()
        if query is not None:
            return Nested(at, "SCALAR", query)
        values = self.expressions()
        self.expect_symbol(")")
        if len(values) > 1:
            return Invoke(at, "ROW", values)
        return between_moments(self, values[0]) or values[0]

    def expressions(self) -> tuple[Node, ...]:
        """Parse expressions with commas between them."""
        found = [self.expression()]
        while self.accept_symbol(","):
            found.append(self.expression())
        return tuple(found)

    def _word(self, at: Position) -> Node:
        special = SPECIAL.get(self.token.upper)
        if special is not None:
            found = special(self, at)
            if found is not None:
                return found
        opens = self.ahead().kind == SYMBOL and self.ahead().text == "("
        if opens and self.token.upper not in _NO_FUNCTIONS:
            return self.function(at)
        if self.token.upper in _WITHOUT_BRACKETS:
            return Invoke(at, self.advance().upper, ())
        if self.token.upper in _VARIABLES:
            return Name(at, (self.advance().text,))
        return self._name(at)

    def _name(self, at: Position) -> Node:
        if not self.sees_name():
            self.fail("an expression" if self.token.kind != WORD else "")
        parts = [self.name()]
        while self.sees_symbol(".") and (self.ahead().kind in {WORD, QUOTED} or self.ahead().text == "*"):
            self.advance()
            if self.accept_symbol("*"):
                return Star(at, tuple(parts))
            parts.append(self.advance().text)
            if self.sees_symbol("("):
                return self._call(at, parts[-1], tuple(parts[:-1]))
        return Name(at, tuple(parts))

    # --- functions ---
    def function(self, at: Position) -> Node:
        """Parse the call of a function."""
        name = self.advance().text
        own = OWN_SYNTAX.get(name.upper())
        if own is not None:
            self.expect_symbol("(")
            found = own(self, at)
            self.expect_symbol(")")
            return self._clauses(found) if isinstance(found, Invoke) else found
        return self._call(at, name, ())

    def _call(self, at: Position, name: str, path: tuple[str, ...]) -> Node:
        self.expect_symbol("(")
        distinct = self.accept("DISTINCT")
        if not distinct:
            self.accept("ALL")
        if distinct and (self.sees_symbol("*") or self.sees_symbol(")")):
            self.fail("an expression")
        if self.accept_symbol("*"):
            self.expect_symbol(")")
            return self._clauses(Invoke(at, name, (), path, star=True))
        args, names = self._arguments()
        order = self.orderings() if name.upper() == "ARRAY_AGG" and self.sees("ORDER", "BY") else ()
        call = Invoke(at, name, args, path, names, distinct, order=order)
        call = self._null_treatment(call)
        self.expect_symbol(")")
        return self._clauses(call)

    def _arguments(self) -> tuple[tuple[Node, ...], tuple[str | None, ...]]:
        args: list[Node] = []
        names: list[str | None] = []
        while not self.sees_symbol(")") and (not args or self.accept_symbol(",")):
            named = self.ahead().kind == SYMBOL and self.ahead().text == "=>"
            names.append(self.advance().text if named else None)
            if named:
                self.expect_symbol("=>")
            args.append(self.argument())
            if self.sees("ORDER", "BY"):
                break
        return tuple(args), tuple(names) if any(names) else ()

    def argument(self) -> Node:
        """Parse an argument of a function. The parser of queries also accepts tables and descriptors."""
        return self.expression()

    def _null_treatment(self, call: Invoke) -> Invoke:
        if self.accept("IGNORE", "NULLS"):
            return replace(call, ignore_nulls=True)
        return replace(call, ignore_nulls=False) if self.accept("RESPECT", "NULLS") else call

    def _clauses(self, call: Invoke) -> Node:
        """Parse WITHIN GROUP, FILTER and OVER after a call."""
        call = self._null_treatment(call)
        if self.accept("WITHIN", "GROUP"):
            self.expect_symbol("(")
            call = replace(call, order=self.orderings())
            self.expect_symbol(")")
        if self.sees("FILTER") and self.ahead().text == "(":
            self.advance()
            self.expect_symbol("(")
            self.expect("WHERE")
            call = replace(call, filter=self.expression())
            self.expect_symbol(")")
        if self.accept("OVER"):
            call = replace(call, over=self.window() if self.sees_symbol("(") else self.name())
        return call

    # --- windows and orders ---
    def orderings(self) -> tuple[Ordering, ...]:
        """Parse ORDER BY."""
        self.expect("ORDER", "BY")
        found = [self._ordering()]
        while self.accept_symbol(","):
            found.append(self._ordering())
        return tuple(found)

    def _ordering(self) -> Ordering:
        at, value = self.at, self.expression()
        descending = self.accept("DESC")
        if not descending:
            self.accept("ASC")
        nulls = self.expect_any("FIRST", "LAST") if self.accept("NULLS") else None
        return Ordering(at, value, descending, None if nulls is None else nulls == "FIRST")

    def window(self) -> Window:
        """Parse a window in brackets."""
        at = self.at
        self.expect_symbol("(")
        based = self.sees_name() and not self.sees_any("PARTITION", "ORDER", "ROWS", "RANGE")
        base = self.name() if based else None
        partition: tuple[Node, ...] = ()
        if self.accept("PARTITION", "BY"):
            partition = self.expressions()
        order = self.orderings() if self.sees("ORDER", "BY") else ()
        unit = self.accept_any("ROWS", "RANGE")
        start, end = self._frame() if unit else (None, None)
        self.expect_symbol(")")
        return Window(at, base, partition, order, None if unit is None else unit == "ROWS", start, end)

    def _frame(self) -> tuple[Bound, Bound]:
        if not self.accept("BETWEEN"):
            return self._frame_bound(), Bound("CURRENT ROW")
        start = self._frame_bound()
        self.expect("AND")
        return start, self._frame_bound()

    def _frame_bound(self) -> Bound:
        if self.accept("CURRENT", "ROW"):
            return Bound("CURRENT ROW")
        offset = None if self.accept("UNBOUNDED") else self._sum()
        return Bound(self.expect_any("PRECEDING", "FOLLOWING"), offset)


_PATTERNS = ("LIKE", "SIMILAR", "BETWEEN", "IN", "OVERLAPS")


def _values(node: Node) -> tuple[Node, ...]:
    return node.args if isinstance(node, Invoke) and node.name == "ROW" else (node,)


def _quote(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def _negate(at: Position, value: Node) -> Node:
    if isinstance(value, Constant) and isinstance(value.type, NumericType) and not value.text.startswith("-"):
        return Constant(at, value.type, -value.value, f"-{value.text}")
    return Invoke(at, "NEGATE", (value,))
