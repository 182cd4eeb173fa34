"""Which clock a timer follows."""

from enum import Enum


class TimeDomain(Enum):
    """The clock of a timer."""

    EVENT_TIME = 0
    PROCESSING_TIME = 1
