"""Mutants that need no test, since nothing that anybody relies on is different: by module, line and change."""

from __future__ import annotations

from tests.mutants.mutations import Mutant

COUNTED = "len(set(self._live.values()))"
HARMLESS: dict[tuple[str, str, str], str] = {
    (
        "engine/operators/timers.py",
        "if len(set(self._live.values())) < len(self._live):",
        f"compare: {COUNTED} < len(self._live)  ->  {COUNTED} <= len(self._live)",
    ): "Timers whose order is clear already are counted anew in the same order.",
    (
        "engine/operators/timers.py",
        "if order > began and time <= reached:",
        "compare: order > began  ->  order >= began",
    ): "No timer has the number that `began` has taken.",
    (
        "engine/operators/watermarks.py",
        "if emitted.timestamp is not None or emitted.idle is not None:",
        "compare: emitted.timestamp is not None  ->  emitted.timestamp is None",
    ): "Records leave one by one, with the same timestamps and watermarks.",
    (
        "engine/operators/watermarks.py",
        "if start < len(values):",
        "compare: start < len(values)  ->  start <= len(values)",
    ): "A chunk without records follows, which nobody sees.",
    (
        "engine/operators/sinks/committing.py",
        "self._pending.clear()",
        "delete: self._pending.clear()  ->  pass",
    ): "Nothing is prepared or committed after the end of a job without checkpoints.",
}
"""(module below penstock, text of the line, change) and the reason."""


def reason(module: str, mutant: Mutant) -> str | None:
    """Why a mutant does not matter; None if it does."""
    return HARMLESS.get((module.removeprefix("penstock/"), mutant.source, mutant.change))
