"""Expressions with a syntax of their own: CASE, CAST, EXTRACT, TRIM, INTERVAL, the JSON functions.

All become plain calls. Words of the syntax are arguments of their own: EXTRACT(WEEK FROM x) is EXTRACT with the word
WEEK and x. The JSON functions have their words after the usual arguments, in the order of SQL: RETURNING and a NULL of
the type; NULL, ERROR or DEFAULT and its value, then ON EMPTY or ON ERROR; and always NULL ON NULL or ABSENT ON NULL as
the last one.
"""

from __future__ import annotations

from collections.abc import Callable

from penstock.errors import ValidationException
from penstock.table.sql.parse import literals
from penstock.table.sql.parse.cursor import Cursor
from penstock.table.sql.parse.expression_parser import read_expression, read_expressions, read_summand
from penstock.table.sql.parse.problems import invalid
from penstock.table.sql.parse.syntax import CastTo, Constant, Invoke, Nested, Node, Word
from penstock.table.sql.parse.tokens import NUMBER, STRING, Position
from penstock.table.sql.parse.type_parser import read_data_type
from penstock.table.types.data_types import BooleanType, NullType

UNITS = ("YEAR", "QUARTER", "MONTH", "WEEK", "DAY", "HOUR", "MINUTE", "SECOND")
_FINER = ("MILLISECOND", "MICROSECOND", "NANOSECOND", "DOW", "DOY", "ISODOW", "ISOYEAR", "EPOCH")
_ALL_UNITS = (*UNITS, *_FINER, "DECADE", "CENTURY", "MILLENNIUM")
_PLURALS = {unit + "S": unit for unit in UNITS}

Reader = Callable[[Cursor, Position], Node | None]


# --- syntax that starts with a word ---
def _case(cursor: Cursor, at: Position) -> Node:
    cursor.expect("CASE")
    subject = None if cursor.sees("WHEN") else read_expression(cursor)
    args: list[Node] = []
    while not args or cursor.sees("WHEN"):
        cursor.expect("WHEN")
        args.append(_condition(cursor, subject))
        cursor.expect("THEN")
        args.append(read_expression(cursor))
    args.append(read_expression(cursor) if cursor.accept("ELSE") else Constant(at, NullType(), None, "NULL"))
    cursor.expect("END")
    return Invoke(at, "CASE", tuple(args))


def _condition(cursor: Cursor, subject: Node | None) -> Node:
    """Parse the condition of WHEN. With a subject, it is a list of values that are compared with the subject."""
    at, condition = cursor.at, read_expression(cursor)
    if subject is None:
        return condition
    condition = Invoke(at, "=", (subject, condition))
    while cursor.accept_symbol(","):
        condition = Invoke(at, "OR", (condition, Invoke(at, "=", (subject, read_expression(cursor)))))
    return condition


def _exists(cursor: Cursor, at: Position) -> Node:
    cursor.expect("EXISTS")
    cursor.expect_symbol("(")
    query = cursor.grammar.query(cursor)
    cursor.expect_symbol(")")
    return Nested(at, "EXISTS", query)


def _interval(cursor: Cursor, at: Position) -> Node | None:
    signs = 2 if cursor.ahead().text in {"-", "+"} else 1
    if cursor.ahead(signs).kind not in {STRING, NUMBER}:
        return None
    cursor.advance()
    minus = cursor.accept_symbol("-")
    cursor.accept_symbol("+")
    text = ("-" if minus else "") + cursor.advance().text
    first = _unit(cursor)
    last = _unit(cursor) if cursor.accept("TO") else first
    kind, value = literals.interval(text, first, last, at)
    unit = first if first == last else f"{first} TO {last}"
    return Constant(at, kind, value, f"INTERVAL '{text}' {unit}")


def _unit(cursor: Cursor) -> str:
    word = cursor.expect_any(*UNITS, *_PLURALS)
    if cursor.accept_symbol("("):
        cursor.whole_number()
        if cursor.accept_symbol(","):
            cursor.whole_number()
        cursor.expect_symbol(")")
    return _PLURALS.get(word, word)


def between_moments(cursor: Cursor, value: Node) -> Node | None:
    """Parse a unit after a difference in brackets, as in (a - b) DAY. Return the interval, or None without a unit."""
    minus = isinstance(value, Invoke) and value.name == "-" and not value.path
    if not minus or not cursor.sees_any(*UNITS, *_PLURALS):
        return None
    assert isinstance(value, Invoke)
    unit = _unit(cursor)
    if cursor.accept("TO"):
        _unit(cursor)
    return Invoke(value.at, "INTERVAL BETWEEN", (Word(value.at, unit), *value.args))


def _moment(cursor: Cursor, at: Position) -> Node | None:
    if cursor.ahead().kind != STRING:
        return None
    word, text = cursor.advance().upper, cursor.advance().text
    kind, value = literals.moment(word, text, at)
    return Constant(at, kind, value, f"{word} '{text}'")


def _null(cursor: Cursor, at: Position) -> Node:
    cursor.advance()
    return Constant(at, NullType(), None, "NULL")


def _boolean(cursor: Cursor, at: Position) -> Node:
    word = cursor.advance().upper
    unknown = word == "UNKNOWN"
    return Constant(at, BooleanType(unknown), None if unknown else word == "TRUE", word)


def _constructor(cursor: Cursor, at: Position) -> Node | None:
    """Parse ARRAY[...] and MAP[...]."""
    if cursor.ahead().text != "[":
        return None
    word = cursor.advance().upper
    cursor.expect_symbol("[")
    values = () if cursor.sees_symbol("]") else read_expressions(cursor)
    cursor.expect_symbol("]")
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
def _cast(safe: bool) -> Callable[[Cursor, Position], Node]:
    def read(cursor: Cursor, at: Position) -> Node:
        value = read_expression(cursor)
        cursor.expect("AS")
        return CastTo(at, value, read_data_type(cursor), safe)

    return read


def _no_unit(word: Word) -> ValidationException:
    return invalid(word.at, f"{word.word} is no unit of time; there are: {', '.join(UNITS)}")


def _extract(cursor: Cursor, at: Position) -> Node:
    unit = Word(cursor.at, cursor.advance().upper)
    if unit.word not in _ALL_UNITS:
        raise _no_unit(unit)
    cursor.expect("FROM")
    return Invoke(at, "EXTRACT", (unit, read_expression(cursor)))


def _position(cursor: Cursor, at: Position) -> Node:
    """Parse POSITION(a IN b). Here IN is not the operator."""
    args = [read_summand(cursor)]
    cursor.expect("IN")
    args.append(read_summand(cursor))
    if cursor.accept("FROM"):
        args.append(read_expression(cursor))
    return Invoke(at, "POSITION", tuple(args))


def _substring(cursor: Cursor, at: Position) -> Node:
    args = [read_expression(cursor)]
    for word in ("FROM", "FOR"):
        if cursor.accept(word) or cursor.accept_symbol(","):
            args.append(read_expression(cursor))
    return Invoke(at, "SUBSTRING", tuple(args))


def _trim(cursor: Cursor, at: Position) -> Node:
    side = Word(cursor.at, cursor.accept_any("BOTH", "LEADING", "TRAILING") or "BOTH")
    blank: Node = Constant(at, *literals.string(" "), "' '")
    if cursor.accept("FROM"):
        return Invoke(at, "TRIM", (side, blank, read_expression(cursor)))
    first = read_expression(cursor)
    if cursor.accept("FROM"):
        return Invoke(at, "TRIM", (side, first, read_expression(cursor)))
    return Invoke(at, "TRIM", (side, blank, first))


def _overlay(cursor: Cursor, at: Position) -> Node:
    args = [read_expression(cursor)]
    for word in ("PLACING", "FROM", "FOR"):
        if cursor.accept(word) or cursor.accept_symbol(","):
            args.append(read_expression(cursor))
    return Invoke(at, "OVERLAY", tuple(args))


def _rounding(name: str) -> Callable[[Cursor, Position], Node]:
    def read(cursor: Cursor, at: Position) -> Node:
        args: list[Node] = [read_expression(cursor)]
        if cursor.accept("TO"):
            args.append(Word(cursor.at, cursor.expect_any(*_ALL_UNITS)))
        return Invoke(at, name, tuple(args))

    return read


def _with_unit(name: str) -> Callable[[Cursor, Position], Node]:
    def read(cursor: Cursor, at: Position) -> Node:
        word = cursor.advance().upper.removeprefix("SQL_TSI_")
        unit = Word(at, _PLURALS.get(word, word))
        if unit.word not in _ALL_UNITS:
            raise _no_unit(unit)
        cursor.expect_symbol(",")
        return Invoke(at, name, (unit, *read_expressions(cursor)))

    return read


# --- JSON ---
def _json_value(cursor: Cursor, at: Position) -> Node:
    args = _json_path(cursor)
    args += _returning(cursor)
    while True:
        behaviour = _json_value_behaviour(cursor)
        if not behaviour:
            return Invoke(at, "JSON_VALUE", tuple(args))
        args += behaviour


def _json_path(cursor: Cursor) -> list[Node]:
    json = read_expression(cursor)
    cursor.accept("FORMAT", "JSON")
    cursor.expect_symbol(",")
    return [json, read_expression(cursor)]


def _returning(cursor: Cursor) -> list[Node]:
    at = cursor.at
    return [Word(at, "RETURNING"), Constant(at, read_data_type(cursor), None)] if cursor.accept("RETURNING") else []


def _json_value_behaviour(cursor: Cursor) -> list[Node]:
    at = cursor.at
    word = cursor.accept_any("NULL", "ERROR", "DEFAULT")
    if word is None:
        return []
    found: list[Node] = [Word(at, word)]
    if word == "DEFAULT":
        found.append(read_expression(cursor))
    return [*found, _occasion(cursor)]


def _occasion(cursor: Cursor) -> Word:
    at = cursor.at
    cursor.expect("ON")
    return Word(at, f"ON {cursor.expect_any('EMPTY', 'ERROR')}")


def _json_query(cursor: Cursor, at: Position) -> Node:
    args = [*_json_path(cursor), *_returning(cursor)]
    if wrapper := cursor.accept_any("WITHOUT", "WITH"):
        when = "" if wrapper == "WITHOUT" else cursor.accept_any("CONDITIONAL", "UNCONDITIONAL") or "UNCONDITIONAL"
        cursor.accept("ARRAY")
        cursor.expect("WRAPPER")
        args.append(Word(at, " ".join(filter(None, [wrapper, when, "WRAPPER"]))))
    while word := cursor.accept_any("NULL", "ERROR", "EMPTY"):
        kind = f" {cursor.accept_any('ARRAY', 'OBJECT') or 'ARRAY'}" if word == "EMPTY" else ""
        args += [Word(at, word + kind), _occasion(cursor)]
    return Invoke(at, "JSON_QUERY", tuple(args))


def _json_exists(cursor: Cursor, at: Position) -> Node:
    args = _json_path(cursor)
    if word := cursor.accept_any("TRUE", "FALSE", "UNKNOWN", "ERROR"):
        args += [Word(at, word), _occasion(cursor)]
    return Invoke(at, "JSON_EXISTS", tuple(args))


def _pairs(name: str) -> Callable[[Cursor, Position], Node]:
    def read(cursor: Cursor, at: Position) -> Node:
        args: list[Node] = []
        while not _ends_list(cursor) and (not args or cursor.accept_symbol(",")):
            cursor.accept("KEY")
            args.append(read_expression(cursor))
            if not cursor.accept("VALUE") and not cursor.accept_symbol(":"):
                cursor.expect_symbol(",")
            args.append(read_expression(cursor))
        return Invoke(at, name, (*args, _on_null(cursor, "NULL")))

    return read


def _elements(name: str) -> Callable[[Cursor, Position], Node]:
    def read(cursor: Cursor, at: Position) -> Node:
        args: list[Node] = []
        while not _ends_list(cursor) and (not args or cursor.accept_symbol(",")):
            args.append(read_expression(cursor))
        return Invoke(at, name, (*args, _on_null(cursor, "ABSENT")))

    return read


def _ends_list(cursor: Cursor) -> bool:
    return cursor.sees_symbol(")") or cursor.sees("NULL", "ON") or cursor.sees("ABSENT", "ON")


def _on_null(cursor: Cursor, usual: str) -> Word:
    at = cursor.at
    word = cursor.accept_any("NULL", "ABSENT")
    if word:
        cursor.expect("ON", "NULL")
    return Word(at, f"{word or usual} ON NULL")


OWN_SYNTAX: dict[str, Callable[[Cursor, Position], Node]] = {
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
