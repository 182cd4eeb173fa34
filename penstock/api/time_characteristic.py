"""The job-wide notion of time of Flink 1.x programs."""

from enum import Enum


class TimeCharacteristic(Enum):
    """Meaning of time in `time_window` and other shorthands of Flink 1.x."""

    ProcessingTime = 0
    """The clock of the machine."""

    IngestionTime = 1
    """Sources stamp each element with the clock of the machine; from there on it is event time."""

    EventTime = 2
    """The timestamps of the elements and the watermarks."""
