"""Elements of a stream of patterns."""

from __future__ import annotations

from dataclasses import dataclass

from penstock.base.arguments import check_arguments


@check_arguments
@dataclass(frozen=True)
class PatternUpdate:
    """A new pattern, in text form, and the treatment of partial matches.

    Partial matches are dropped, or kept if they fit: a partial match continues if the new pattern has its state and all
    elements whose events it holds.
    """

    pattern: str
    keep_matches: bool = False
