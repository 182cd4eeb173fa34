"""The pattern of MATCH_RECOGNIZE: a variable with a quantifier, or a sequence of patterns.

The text of a pattern is a part of the uids of operators, so it stays the same between versions.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, repr=False)
class PatternVariable:
    """Rows of one variable, each directly behind the one before it."""

    name: str
    low: int = 1
    high: int | None = 1
    """The greatest number of rows, or None for no limit."""
    greedy: bool = True

    def __repr__(self) -> str:
        return repr(("var", self.name, self.low, self.high, self.greedy))

    def elements(self) -> list[PatternVariable]:
        """Return the variables with their quantifiers, in order."""
        return [self]


@dataclass(frozen=True, repr=False)
class PatternSequence:
    """Patterns one after the other."""

    parts: tuple[RowPattern, ...]

    def __repr__(self) -> str:
        return repr(("seq", *self.parts))

    def elements(self) -> list[PatternVariable]:
        """Return the variables with their quantifiers, in order."""
        return [element for part in self.parts for element in part.elements()]


RowPattern = PatternVariable | PatternSequence
