"""The parts of the grammar that expressions contain and that contain expressions themselves.

The parser of expressions reaches them through the cursor, so that modules do not import each other.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from penstock.table.sql.parse.syntax import Node, Query
from penstock.table.sql.parse.tokens import Position

if TYPE_CHECKING:
    from penstock.table.sql.parse.cursor import Cursor

Reader = Callable[["Cursor", Position], Node]


@dataclass(frozen=True)
class Grammar:
    """Functions that parse what comes next."""

    query: Callable[[Cursor], Query]
    argument: Callable[[Cursor], Node]
    """Parses an argument of a function."""
    special: Mapping[str, Callable[[Cursor, Position], Node | None]]
    """Syntax by its first word. A function returns None if the word is the name of a function or a column."""
    own_syntax: Mapping[str, Reader]
    """Functions whose arguments have a syntax of their own, by name."""
    between_moments: Callable[[Cursor, Node], Node | None]
    """Parses the difference of two moments as an interval, behind their brackets."""
