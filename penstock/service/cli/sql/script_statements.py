"""Splits a text into statements at its semicolons, and lists statements that the client itself runs."""

from __future__ import annotations

import re
from collections.abc import Iterator

LEAVE = {"quit", "exit"}
HELP = """Statements end with a semicolon and may have several lines.
  SHOW TABLES; DESCRIBE t; EXPLAIN SELECT ...;   look around
  SET 'sql-client.execution.result-mode' = 'table';   a table that changes (also: changelog, tableau, json)
  QUIT;   leave. Ctrl-C ends a query that runs, Ctrl-D leaves."""
_PARTS = re.compile(
    r"""(?P<quoted>'(?:[^']|'')*' | `(?:[^`]|``)*` | "(?:[^"]|"")*")
      | (?P<comment>--[^\n]* | /\*(?!\+).*?\*/)
      | (?P<open>['`"].* | /\*(?!\+).*)
      | (?P<end>;)
      | (?P<other>.)""",
    re.VERBOSE | re.DOTALL,
)
_SET_BLOCK = re.compile(r"\s*(EXPLAIN\b[\w\s,]*?\s)?(EXECUTE\s+)?STATEMENT\s+SET\s+BEGIN\b", re.IGNORECASE)
_END = re.compile(r"\bEND\s*\Z", re.IGNORECASE)


def statements(text: str) -> list[str]:
    """Return the statements of a script. Semicolons in quotes, comments and statement sets do not end a statement.

    >>> statements("SET 'a' = ';'; -- note;\\nSELECT 1")
    ["SET 'a' = ';'", 'SELECT 1']
    """
    return [statement for statement, _ in _cut(text) if statement]


def is_complete(text: str) -> bool:
    """Return True if a text ends with a complete statement or is blank."""
    if not text.strip():
        return True
    *_, (rest, ended) = _cut(text)
    return ended or not rest


def _cut(text: str) -> Iterator[tuple[str, bool]]:
    """Yield statements, each with True if a semicolon ended it."""
    held: list[str] = []
    for part in _PARTS.finditer(text):
        if part["comment"]:
            held.append(" ")
        elif part["end"] and not _inside_block("".join(held)):
            yield "".join(held).strip(), True
            held = []
        else:
            held.append(part[0])
    rest = "".join(held).strip()
    if rest:
        yield rest, False


def _inside_block(held: str) -> bool:
    return bool(_SET_BLOCK.match(held)) and not _END.search(held.rstrip().rstrip(";").rstrip())
