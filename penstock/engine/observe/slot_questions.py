"""The questions that a slot answers while it works."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from penstock.base.logs.levels import Levels, apply
from penstock.engine.observe.profiling import ProfileOrder, profile


@dataclass(frozen=True)
class SetLevels:
    """The order to give loggers of the slot's process other levels."""

    levels: Levels


Question = SetLevels | ProfileOrder


def answer(question: Question, slot: int | None = None, driving: int | None = None) -> Any:
    """Answer a question: with the profile, or with None. `driving` is the thread that runs the slot."""
    if isinstance(question, SetLevels):
        apply(question.levels)
        return None
    return profile(question, slot, driving)
