"""A scheduling hint of Flink 1.x."""

from __future__ import annotations

from enum import Enum

__all__ = ["InputDependencyConstraint"]


class InputDependencyConstraint(Enum):
    """Condition on the inputs for the start of a task: any or all can be read.

    It exists for its name and has no effect.
    """

    ANY = 0
    ALL = 1
