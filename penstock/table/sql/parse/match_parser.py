"""MATCH_RECOGNIZE: its clauses and the language of its patterns."""

from __future__ import annotations

from penstock.table.logical.row_patterns import PatternSequence, PatternVariable, RowPattern
from penstock.table.sql.parse.cursor import Cursor
from penstock.table.sql.parse.expression_parser import read_expression, read_expressions, read_orderings
from penstock.table.sql.parse.problems import IllegalArgumentException
from penstock.table.sql.parse.syntax import Item, Matched, Node, Source

_ONLY_VARIABLES = "PERMUTE and exclusions in patterns are"


def read_match_recognize(cursor: Cursor, source: Source) -> Source:
    """Parse the clauses in the brackets of MATCH_RECOGNIZE."""
    at = cursor.at
    cursor.expect_symbol("(")
    partition = read_expressions(cursor) if cursor.accept("PARTITION", "BY") else ()
    order = read_orderings(cursor) if cursor.sees("ORDER", "BY") else ()
    measures = _read_measures(cursor) if cursor.accept("MEASURES") else ()
    all_rows = _read_rows_per_match(cursor)
    skip = _read_skip(cursor) if cursor.accept("AFTER", "MATCH") else ("TO NEXT ROW", None)
    cursor.expect("PATTERN")
    cursor.expect_symbol("(")
    pattern = _read_alternatives(cursor)
    cursor.expect_symbol(")")
    within = read_expression(cursor) if cursor.accept("WITHIN") else None
    subsets = _read_subsets(cursor) if cursor.accept("SUBSET") else ()
    cursor.expect("DEFINE")
    defines = _read_defines(cursor)
    cursor.expect_symbol(")")
    return Matched(at, source, partition, order, measures, all_rows, skip, pattern, within, subsets, defines)


def _read_measures(cursor: Cursor) -> tuple[Item, ...]:
    found: list[Item] = []
    while not found or cursor.accept_symbol(","):
        at = cursor.at
        if cursor.sees("RUNNING"):
            cursor.refuse("RUNNING is")
        cursor.accept("FINAL")
        value = read_expression(cursor)
        cursor.expect("AS")
        found.append(Item(at, value, cursor.name()))
    return tuple(found)


def _read_rows_per_match(cursor: Cursor) -> bool:
    if cursor.accept("ALL", "ROWS", "PER", "MATCH"):
        return True
    cursor.accept("ONE", "ROW", "PER", "MATCH")
    return False


def _read_skip(cursor: Cursor) -> tuple[str, str | None]:
    cursor.expect("SKIP")
    if cursor.accept("PAST", "LAST", "ROW"):
        return "PAST LAST ROW", None
    cursor.expect("TO")
    if cursor.accept("NEXT", "ROW"):
        return "TO NEXT ROW", None
    word = cursor.accept_any("FIRST", "LAST") or "LAST"
    return f"TO {word}", cursor.name()


def _read_subsets(cursor: Cursor) -> tuple[tuple[str, tuple[str, ...]], ...]:
    found: list[tuple[str, tuple[str, ...]]] = []
    while not found or cursor.accept_symbol(","):
        name = cursor.name()
        cursor.expect_symbol("=")
        found.append((name, cursor.names()))
    return tuple(found)


def _read_defines(cursor: Cursor) -> tuple[tuple[str, Node], ...]:
    found: list[tuple[str, Node]] = []
    while not found or cursor.accept_symbol(","):
        name = cursor.name()
        cursor.expect("AS")
        found.append((name, read_expression(cursor)))
    return tuple(found)


# --- patterns ---
def _read_alternatives(cursor: Cursor) -> RowPattern:
    first = _read_sequence(cursor)
    if cursor.sees_symbol("|"):
        cursor.refuse("the alternative | in patterns is")
    return first


def _read_sequence(cursor: Cursor) -> RowPattern:
    parts = [_read_part(cursor)]
    while not cursor.sees_symbol(")") and not cursor.sees_symbol("|"):
        parts.append(_read_part(cursor))
    return parts[0] if len(parts) == 1 else PatternSequence(tuple(parts))


def _read_part(cursor: Cursor) -> RowPattern:
    if cursor.sees("PERMUTE") or cursor.sees_symbol("{"):
        cursor.refuse(_ONLY_VARIABLES)
    if cursor.accept_symbol("("):
        inside = _read_alternatives(cursor)
        cursor.expect_symbol(")")
        if _read_quantifier(cursor) != (1, 1, True):
            cursor.refuse("a quantifier behind a group in patterns is")
        return inside
    name = cursor.name()
    return PatternVariable(name, *_read_quantifier(cursor))


def _read_quantifier(cursor: Cursor) -> tuple[int, int | None, bool]:
    low, high = _read_counts(cursor)
    plain = (low, high) == (1, 1)
    return low, high, plain or not cursor.accept_symbol("?")


def _read_counts(cursor: Cursor) -> tuple[int, int | None]:
    if cursor.accept_symbol("*"):
        return 0, None
    if cursor.accept_symbol("+"):
        return 1, None
    if cursor.accept_symbol("?"):
        return 0, 1
    if not cursor.accept_symbol("{"):
        return 1, 1
    if cursor.sees_symbol("-"):
        cursor.refuse(_ONLY_VARIABLES)
    if cursor.sees_symbol(","):
        raise IllegalArgumentException(f"{cursor.at}: the least number of rows is missing: {{0,2}} for up to two")
    low = cursor.whole_number()
    high: int | None = low
    if cursor.accept_symbol(","):
        high = None if cursor.sees_symbol("}") else cursor.whole_number()
    cursor.expect_symbol("}")
    return low, high
