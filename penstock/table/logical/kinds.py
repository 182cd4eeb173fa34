"""The kinds of joins, windows and set operations. Each member is equal to its word in SQL."""

from __future__ import annotations

from enum import StrEnum


class JoinKind(StrEnum):
    """The rows that a join sends."""

    INNER = "INNER"
    LEFT = "LEFT"
    RIGHT = "RIGHT"
    FULL = "FULL"
    SEMI = "SEMI"
    """The left rows that have a match."""
    ANTI = "ANTI"
    """The left rows that have none."""


class WindowKind(StrEnum):
    """The way in which windows follow each other."""

    TUMBLE = "TUMBLE"
    HOP = "HOP"
    CUMULATE = "CUMULATE"
    SESSION = "SESSION"


class SetKind(StrEnum):
    """A set operation."""

    UNION = "UNION"
    INTERSECT = "INTERSECT"
    EXCEPT = "EXCEPT"
