"""Mutants that need no test, since nothing that anybody relies on is different: by module, line and change."""

from __future__ import annotations

from tests.mutants.mutations import Mutant

HARMLESS: dict[tuple[str, str, str], str] = {}
"""(module below penstock, text of the line, change) and the reason."""


def reason(module: str, mutant: Mutant) -> str | None:
    """Why a mutant does not matter; None if it does."""
    return HARMLESS.get((module.removeprefix("penstock/"), mutant.source, mutant.change))
