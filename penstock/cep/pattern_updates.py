"""Elements of a stream of patterns."""

from __future__ import annotations

from dataclasses import dataclass

from penstock.base.arguments import check_arguments


@check_arguments
@dataclass(frozen=True)
class PatternUpdate:
    """A new pattern, in text form, and the treatment of the matches that are under way.

    The matches are dropped, or kept as far as they fit: a partial match continues if the new pattern has the place
    where it waits and all elements whose events it holds.
    """

    pattern: str
    keep_matches: bool = False
