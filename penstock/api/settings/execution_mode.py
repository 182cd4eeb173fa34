"""The choice between running a job as a stream and as a batch."""

from enum import Enum


class RuntimeExecutionMode(Enum):
    """Treatment of the input by the runtime."""

    STREAMING = 0
    """Results appear while input arrives."""

    BATCH = 1
    """All sources are bounded; only final results appear."""

    AUTOMATIC = 2
    """BATCH if all sources are bounded, STREAMING otherwise."""
