"""The text form of a pattern."""

from __future__ import annotations

from penstock.cep.pattern import Pattern


def printed(pattern: Pattern) -> str:
    """A pattern as text."""
    return " -> ".join(element.get_name() for element in pattern.elements())
