"""What a stream of patterns brings."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class PatternUpdate:
    """The pattern to look for from now on, in text form, and what becomes of the matches that are under way.

    They are dropped, or kept as far as they fit: a partial match goes on if the new pattern has the place where it
    waits and all elements whose events it holds.
    """

    pattern: str
    keep_matches: bool = False
