"""Hints, written /*+ NAME(…) */: their names, their arguments, and the tables they may refer to.

OPTIONS changes options of the table before it, and STATE_TTL sets the time to live of the state of joins and groups.
All others tell Flink's planner how to join. Here they are checked, but change nothing, because the plan follows the
text.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from penstock.common.configuration import parse_duration
from penstock.errors import ConfigurationError, SqlParserException, ValidationException
from penstock.table.sql.parse.cursor import Cursor
from penstock.table.sql.parse.problems import invalid, suggestion
from penstock.table.sql.parse.syntax import Aliased, Joined, Matched, Source, TableName
from penstock.table.sql.parse.tokens import END, QUOTED, STRING, WORD, Position

_RETRY = ("retry-predicate", "retry-strategy", "fixed-delay", "max-attempts")
_LOOKUP = ("table", "async", "output-mode", "capacity", "timeout", "shuffle", *_RETRY)


class InvalidHint(ValidationException, AssertionError):
    """The error for an unknown hint, or for a hint with wrong arguments."""


@dataclass(frozen=True)
class Hint:
    """A hint with its arguments."""

    at: Position
    name: str
    words: tuple[str, ...] = ()
    """Arguments that are only names."""
    options: tuple[tuple[str, str], ...] = ()
    """Arguments with a value."""

    def tables(self) -> tuple[str, ...]:
        """Return the tables to which it refers."""
        if self.name == "LOOKUP":
            return tuple(value for key, value in self.options if key == "table")
        return tuple(key for key, _ in self.options) if self.name == "STATE_TTL" else self.words


# --- reading ---
def read(text: str, at: Position) -> tuple[Hint, ...]:
    """Return the hints between /*+ and */."""
    cursor = Cursor(text.removeprefix("/*+").removesuffix("*/"))
    try:
        found = [_hint(cursor, at)]
        while cursor.accept_symbol(","):
            found.append(_hint(cursor, at))
        if cursor.token.kind != END:
            cursor.fail()
    except SqlParserException as problem:
        raise SqlParserException(f"{at}: the hint {text} cannot be read: {problem}") from problem
    for hint in found:
        _check(hint)
    return tuple(found)


def _hint(cursor: Cursor, at: Position) -> Hint:
    name = cursor.name().upper()
    words: list[str] = []
    options: list[tuple[str, str]] = []
    if not cursor.accept_symbol("("):
        return Hint(at, name)
    while not cursor.accept_symbol(")"):
        if (words or options) and not cursor.accept_symbol(","):
            cursor.fail()
        if cursor.token.kind not in {STRING, WORD, QUOTED}:
            cursor.fail()
        word = cursor.advance().text
        if cursor.accept_symbol("="):
            options.append((word, cursor.string()))
        else:
            words.append(word)
    return Hint(at, name, tuple(words), tuple(options))


# --- checking ---
def _check(hint: Hint) -> None:
    checked = _CHECKS.get(hint.name)
    if checked is None:
        raise _wrong(hint, f"there is no such hint{suggestion(hint.name, _CHECKS)}")
    checked(hint)


def _options(hint: Hint) -> None:
    if hint.words:
        raise _wrong(hint, f"every option needs a value: '{hint.words[0]}' = '…'")


def _joins(hint: Hint) -> None:
    if not hint.words or hint.options:
        raise _wrong(hint, "it takes one table or view at least, and no options")


def _state_ttl(hint: Hint) -> None:
    if not hint.options or hint.words:
        raise _wrong(hint, "it takes one table at least, with a time: 'orders' = '1 d'")
    for table, text in hint.options:
        try:
            parse_duration(text)
        except (ConfigurationError, ValueError) as problem:
            raise _wrong(hint, f"'{table}' has '{text}', which is no time such as '1 d'") from problem


def _lookup(hint: Hint) -> None:
    keys = [key for key, _ in hint.options]
    unknown = next((key for key in keys if key not in _LOOKUP), None)
    if unknown is not None:
        raise _wrong(hint, f"there is no option '{unknown}'{suggestion(unknown, _LOOKUP)}")
    if "table" not in keys:
        raise _wrong(hint, "the option 'table' is missing")
    if 0 < sum(key in keys for key in _RETRY) < len(_RETRY):
        raise _wrong(hint, f"the options {', '.join(_RETRY)} are given all together, or none of them")


def _wrong(hint: Hint, why: str) -> InvalidHint:
    return InvalidHint(f"{hint.at}: the hint {hint.name}: {why}")


_CHECKS: Mapping[str, Callable[[Hint], None]] = {
    "OPTIONS": _options,
    "BROADCAST": _joins,
    "SHUFFLE_HASH": _joins,
    "SHUFFLE_MERGE": _joins,
    "NEST_LOOP": _joins,
    "MULTI_JOIN": _joins,
    "STATE_TTL": _state_ttl,
    "LOOKUP": _lookup,
}


# --- the tables of a SELECT ---
def check_tables(hints: tuple[Hint, ...], source: Source | None) -> None:
    """Refuse a hint for a table that its SELECT does not read."""
    known = _names(source)
    for hint in hints:
        for table in hint.tables() if hint.name != "OPTIONS" else ():
            if table.rpartition(".")[2] not in known:
                raise invalid(hint.at, f"the hint {hint.name} names '{table}', which is no table of this query")


def state_ttl(hints: tuple[Hint, ...]) -> tuple[tuple[str, int], ...]:
    """Return tables with the time to live of their state, in milliseconds. The first hint for a table counts."""
    found: dict[str, int] = {}
    for hint in hints:
        for table, text in hint.options if hint.name == "STATE_TTL" else ():
            found.setdefault(table.rpartition(".")[2], parse_duration(text))
    return tuple(found.items())


def name_of(source: Source | None) -> str | None:
    """Return the name of a table in hints, or None."""
    if isinstance(source, Aliased):
        return source.alias
    return source.path[-1] if isinstance(source, TableName) else None


def _names(source: Source | None) -> set[str]:
    if isinstance(source, Joined):
        return _names(source.left) | _names(source.right)
    if isinstance(source, Matched):
        return _names(source.source)
    name = name_of(source)
    return set() if name is None else {name}
