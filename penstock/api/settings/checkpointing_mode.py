"""Guarantees for state after a recovery."""

from enum import Enum


class CheckpointingMode(Enum):
    """Number of times that an element may count in state after a recovery."""

    EXACTLY_ONCE = 0
    """Every element counts once, as if the failure had not happened."""

    AT_LEAST_ONCE = 1
    """Every element counts once or more. An epoch always ends in a consistent cut, so this saves nothing."""
