"""Whether a job runs as a stream or as a batch."""

from enum import Enum


class RuntimeExecutionMode(Enum):
    """How the runtime treats the input."""

    STREAMING = 0
    """Results appear while input arrives."""

    BATCH = 1
    """All sources are bounded; only final results appear."""

    AUTOMATIC = 2
    """BATCH if all sources are bounded, STREAMING otherwise."""
