"""A scheduling hint of Flink 1.x."""

from __future__ import annotations

from enum import Enum

__all__ = ["InputDependencyConstraint"]


class InputDependencyConstraint(Enum):
    """Whether a task may start when any or when all of its inputs can be read. Kept for its name: it has no effect."""

    ANY = 0
    ALL = 1
