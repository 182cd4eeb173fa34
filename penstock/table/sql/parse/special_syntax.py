"""Expressions with a syntax of their own: CASE, CAST, EXTRACT, TRIM, INTERVAL, the JSON functions.

All become plain calls. Words of the syntax are arguments of their own: EXTRACT(WEEK FROM x) is EXTRACT with the word
WEEK and x. The JSON functions have their words after the usual arguments, in the order of SQL: RETURNING and a NULL of
the type; NULL, ERROR or DEFAULT and its value, then ON EMPTY or ON ERROR; and always NULL ON NULL or ABSENT ON NULL as
the last one.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from penstock.errors import ValidationException
from penstock.table.sql.parse import literals
from penstock.table.sql.parse.problems import invalid
from penstock.table.sql.parse.syntax import CastTo, Constant, Invoke, Nested, Node, Word
from penstock.table.sql.parse.tokens import NUMBER, STRING, Position
from penstock.table.types.data_types import BooleanType, NullType

if TYPE_CHECKING:
    from penstock.table.sql.parse.expression_parser import ExpressionParser

UNITS = ("YEAR", "QUARTER", "MONTH", "WEEK", "DAY", "HOUR", "MINUTE", "SECOND")
_FINER = ("MILLISECOND", "MICROSECOND", "NANOSECOND", "DOW", "DOY", "ISODOW", "ISOYEAR", "EPOCH")
_ALL_UNITS = (*UNITS, *_FINER, "DECADE", "CENTURY", "MILLENNIUM")
_PLURALS = {unit + "S": unit for unit in UNITS}

Reader = Callable[["ExpressionParser", Position], Node | None]


# --- syntax that starts with a word ---
def _case(parser: ExpressionParser, at: Position) -> Node:
    parser.expect("CASE")
    subject = None if parser.sees("WHEN") else parser.expression()
    args: list[Node] = []
    while not args or parser.sees("WHEN"):
        parser.expect("WHEN")
        args.append(_condition(parser, subject))
        parser.expect("THEN")
        args.append(parser.expression())
    args.append(parser.expression() if parser.accept("ELSE") else Constant(at, NullType(), None, "NULL"))
    parser.expect("END")
    return Invoke(at, "CASE", tuple(args))


def _condition(parser: ExpressionParser, subject: Node | None) -> Node:
    """Parse the condition of WHEN. With a subject, it is a list of values that are compared with the subject."""
    at, condition = parser.at, parser.expression()
    if subject is None:
        return condition
    condition = Invoke(at, "=", (subject, condition))
    while parser.accept_symbol(","):
        condition = Invoke(at, "OR", (condition, Invoke(at, "=", (subject, parser.expression()))))
    return condition


def _exists(parser: ExpressionParser, at: Position) -> Node:
    parser.expect("EXISTS")
    parser.expect_symbol("(")
    query = parser.query()
    parser.expect_symbol(")")
    return Nested(at, "EXISTS", query)


def _interval(parser: ExpressionParser, at: Position) -> Node | None:
    signs = 2 if parser.ahead().text in {"-", "+"} else 1
    if parser.ahead(signs).kind not in {STRING, NUMBER}:
        return None
    parser.advance()
    minus = parser.accept_symbol("-")
    parser.accept_symbol("+")
    text = ("-" if minus else "") + parser.advance().text
    first = _unit(parser)
    last = _unit(parser) if parser.accept("TO") else first
    kind, value = literals.interval(text, first, last, at)
    unit = first if first == last else f"{first} TO {last}"
    return Constant(at, kind, value, f"INTERVAL '{text}' {unit}")


def _unit(parser: ExpressionParser) -> str:
    word = parser.expect_any(*UNITS, *_PLURALS)
    if parser.accept_symbol("("):
        parser.whole_number()
        if parser.accept_symbol(","):
            parser.whole_number()
        parser.expect_symbol(")")
    return _PLURALS.get(word, word)


def between_moments(parser: ExpressionParser, value: Node) -> Node | None:
    """Parse a unit after a difference in brackets, as in (a - b) DAY. Return the interval, or None without a unit."""
    minus = isinstance(value, Invoke) and value.name == "-" and not value.path
    if not minus or not parser.sees_any(*UNITS, *_PLURALS):
        return None
    assert isinstance(value, Invoke)
    unit = _unit(parser)
    if parser.accept("TO"):
        _unit(parser)
    return Invoke(value.at, "INTERVAL BETWEEN", (Word(value.at, unit), *value.args))


def _moment(parser: ExpressionParser, at: Position) -> Node | None:
    if parser.ahead().kind != STRING:
        return None
    word, text = parser.advance().upper, parser.advance().text
    kind, value = literals.moment(word, text, at)
    return Constant(at, kind, value, f"{word} '{text}'")


def _null(parser: ExpressionParser, at: Position) -> Node:
    parser.advance()
    return Constant(at, NullType(), None, "NULL")


def _boolean(parser: ExpressionParser, at: Position) -> Node:
    word = parser.advance().upper
    unknown = word == "UNKNOWN"
    return Constant(at, BooleanType(unknown), None if unknown else word == "TRUE", word)


def _constructor(parser: ExpressionParser, at: Position) -> Node | None:
    """Parse ARRAY[...] and MAP[...]."""
    if parser.ahead().text != "[":
        return None
    word = parser.advance().upper
    parser.expect_symbol("[")
    values = () if parser.sees_symbol("]") else parser.expressions()
    parser.expect_symbol("]")
    return Invoke(at, word, values)


SPECIAL: dict[str, Reader] = {
    "CASE": _case,
    "EXISTS": _exists,
    "INTERVAL": _interval,
    "DATE": _moment,
    "TIME": _moment,
    "TIMESTAMP": _moment,
    "NULL": _null,
    "TRUE": _boolean,
    "FALSE": _boolean,
    "UNKNOWN": _boolean,
    "ARRAY": _constructor,
    "MAP": _constructor,
}


# --- inside the brackets of a function ---
def _cast(safe: bool) -> Callable[[ExpressionParser, Position], Node]:
    def read(parser: ExpressionParser, at: Position) -> Node:
        value = parser.expression()
        parser.expect("AS")
        return CastTo(at, value, parser.data_type(), safe)

    return read


def _no_unit(word: Word) -> ValidationException:
    return invalid(word.at, f"{word.word} is no unit of time; there are: {', '.join(UNITS)}")


def _extract(parser: ExpressionParser, at: Position) -> Node:
    unit = Word(parser.at, parser.advance().upper)
    if unit.word not in _ALL_UNITS:
        raise _no_unit(unit)
    parser.expect("FROM")
    return Invoke(at, "EXTRACT", (unit, parser.expression()))


def _position(parser: ExpressionParser, at: Position) -> Node:
    """Parse POSITION(a IN b). Here IN is not the operator."""
    args = [parser.summand()]
    parser.expect("IN")
    args.append(parser.summand())
    if parser.accept("FROM"):
        args.append(parser.expression())
    return Invoke(at, "POSITION", tuple(args))


def _substring(parser: ExpressionParser, at: Position) -> Node:
    args = [parser.expression()]
    for word in ("FROM", "FOR"):
        if parser.accept(word) or parser.accept_symbol(","):
            args.append(parser.expression())
    return Invoke(at, "SUBSTRING", tuple(args))


def _trim(parser: ExpressionParser, at: Position) -> Node:
    side = Word(parser.at, parser.accept_any("BOTH", "LEADING", "TRAILING") or "BOTH")
    blank: Node = Constant(at, *literals.string(" "), "' '")
    if parser.accept("FROM"):
        return Invoke(at, "TRIM", (side, blank, parser.expression()))
    first = parser.expression()
    if parser.accept("FROM"):
        return Invoke(at, "TRIM", (side, first, parser.expression()))
    return Invoke(at, "TRIM", (side, blank, first))


def _overlay(parser: ExpressionParser, at: Position) -> Node:
    args = [parser.expression()]
    for word in ("PLACING", "FROM", "FOR"):
        if parser.accept(word) or parser.accept_symbol(","):
            args.append(parser.expression())
    return Invoke(at, "OVERLAY", tuple(args))


def _rounding(name: str) -> Callable[[ExpressionParser, Position], Node]:
    def read(parser: ExpressionParser, at: Position) -> Node:
        args: list[Node] = [parser.expression()]
        if parser.accept("TO"):
            args.append(Word(parser.at, parser.expect_any(*_ALL_UNITS)))
        return Invoke(at, name, tuple(args))

    return read


def _with_unit(name: str) -> Callable[[ExpressionParser, Position], Node]:
    def read(parser: ExpressionParser, at: Position) -> Node:
        word = parser.advance().upper.removeprefix("SQL_TSI_")
        unit = Word(at, _PLURALS.get(word, word))
        if unit.word not in _ALL_UNITS:
            raise _no_unit(unit)
        parser.expect_symbol(",")
        return Invoke(at, name, (unit, *parser.expressions()))

    return read


# --- JSON ---
def _json_value(parser: ExpressionParser, at: Position) -> Node:
    args = _json_path(parser)
    args += _returning(parser)
    while True:
        behaviour = _json_value_behaviour(parser)
        if not behaviour:
            return Invoke(at, "JSON_VALUE", tuple(args))
        args += behaviour


def _json_path(parser: ExpressionParser) -> list[Node]:
    json = parser.expression()
    parser.accept("FORMAT", "JSON")
    parser.expect_symbol(",")
    return [json, parser.expression()]


def _returning(parser: ExpressionParser) -> list[Node]:
    at = parser.at
    return [Word(at, "RETURNING"), Constant(at, parser.data_type(), None)] if parser.accept("RETURNING") else []


def _json_value_behaviour(parser: ExpressionParser) -> list[Node]:
    at = parser.at
    word = parser.accept_any("NULL", "ERROR", "DEFAULT")
    if word is None:
        return []
    found: list[Node] = [Word(at, word)]
    if word == "DEFAULT":
        found.append(parser.expression())
    return [*found, _occasion(parser)]


def _occasion(parser: ExpressionParser) -> Word:
    at = parser.at
    parser.expect("ON")
    return Word(at, f"ON {parser.expect_any('EMPTY', 'ERROR')}")


def _json_query(parser: ExpressionParser, at: Position) -> Node:
    args = [*_json_path(parser), *_returning(parser)]
    if wrapper := parser.accept_any("WITHOUT", "WITH"):
        when = "" if wrapper == "WITHOUT" else parser.accept_any("CONDITIONAL", "UNCONDITIONAL") or "UNCONDITIONAL"
        parser.accept("ARRAY")
        parser.expect("WRAPPER")
        args.append(Word(at, " ".join(filter(None, [wrapper, when, "WRAPPER"]))))
    while word := parser.accept_any("NULL", "ERROR", "EMPTY"):
        kind = f" {parser.accept_any('ARRAY', 'OBJECT') or 'ARRAY'}" if word == "EMPTY" else ""
        args += [Word(at, word + kind), _occasion(parser)]
    return Invoke(at, "JSON_QUERY", tuple(args))


def _json_exists(parser: ExpressionParser, at: Position) -> Node:
    args = _json_path(parser)
    if word := parser.accept_any("TRUE", "FALSE", "UNKNOWN", "ERROR"):
        args += [Word(at, word), _occasion(parser)]
    return Invoke(at, "JSON_EXISTS", tuple(args))


def _pairs(name: str) -> Callable[[ExpressionParser, Position], Node]:
    def read(parser: ExpressionParser, at: Position) -> Node:
        args: list[Node] = []
        while not _ends_list(parser) and (not args or parser.accept_symbol(",")):
            parser.accept("KEY")
            args.append(parser.expression())
            if not parser.accept("VALUE") and not parser.accept_symbol(":"):
                parser.expect_symbol(",")
            args.append(parser.expression())
        return Invoke(at, name, (*args, _on_null(parser, "NULL")))

    return read


def _elements(name: str) -> Callable[[ExpressionParser, Position], Node]:
    def read(parser: ExpressionParser, at: Position) -> Node:
        args: list[Node] = []
        while not _ends_list(parser) and (not args or parser.accept_symbol(",")):
            args.append(parser.expression())
        return Invoke(at, name, (*args, _on_null(parser, "ABSENT")))

    return read


def _ends_list(parser: ExpressionParser) -> bool:
    return parser.sees_symbol(")") or parser.sees("NULL", "ON") or parser.sees("ABSENT", "ON")


def _on_null(parser: ExpressionParser, usual: str) -> Word:
    at = parser.at
    word = parser.accept_any("NULL", "ABSENT")
    if word:
        parser.expect("ON", "NULL")
    return Word(at, f"{word or usual} ON NULL")


OWN_SYNTAX: dict[str, Callable[[ExpressionParser, Position], Node]] = {
    "CAST": _cast(False),
    "TRY_CAST": _cast(True),
    "EXTRACT": _extract,
    "POSITION": _position,
    "SUBSTRING": _substring,
    "TRIM": _trim,
    "OVERLAY": _overlay,
    "FLOOR": _rounding("FLOOR"),
    "CEIL": _rounding("CEIL"),
    "CEILING": _rounding("CEIL"),
    "TIMESTAMPADD": _with_unit("TIMESTAMPADD"),
    "TIMESTAMPDIFF": _with_unit("TIMESTAMPDIFF"),
    "JSON_VALUE": _json_value,
    "JSON_QUERY": _json_query,
    "JSON_EXISTS": _json_exists,
    "JSON_OBJECT": _pairs("JSON_OBJECT"),
    "JSON_ARRAY": _elements("JSON_ARRAY"),
    "JSON_OBJECTAGG": _pairs("JSON_OBJECTAGG"),
    "JSON_ARRAYAGG": _elements("JSON_ARRAYAGG"),
}
