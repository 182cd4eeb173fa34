"""The job-wide notion of time of Flink 1.x programs."""

from enum import Enum


class TimeCharacteristic(Enum):
    """What `time_window` and other 1.x shorthands mean by time."""

    ProcessingTime = 0
    """The clock of the machine."""

    IngestionTime = 1
    """Sources stamp each element with the clock of the machine; from there on it is event time."""

    EventTime = 2
    """The timestamps of the elements and the watermarks."""
