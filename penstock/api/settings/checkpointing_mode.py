"""What state guarantees after a recovery."""

from enum import Enum


class CheckpointingMode(Enum):
    """How often an element may count in state after a recovery."""

    EXACTLY_ONCE = 0
    """Once, as if the failure had not happened."""

    AT_LEAST_ONCE = 1
    """Once or more. An epoch always ends in a consistent cut, so nothing is gained over EXACTLY_ONCE."""
