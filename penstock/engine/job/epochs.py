"""The limits of epochs, and their adaptation to the speed of the job."""

from __future__ import annotations

from dataclasses import dataclass

FIRST_RECORDS = 50_000


@dataclass(frozen=True)
class EpochOptions:
    """The limits of an epoch, and the shortest interval of epochs in an idle job."""

    max_records: int = 1_000_000
    """Largest number of records that a slot reads in an epoch."""
    max_millis: int = 1_000
    """Longest time for reading, in milliseconds. Records that were read are always processed to the end."""
    interval_millis: int = 100
    """Shortest time between the starts of two epochs that are not catching up, in milliseconds."""


class Pace:
    """The number of records that an epoch may read. It keeps epochs with slow operators from lasting too long.

    All records that an epoch has read are processed before it ends, and checkpoints wait for that. The number starts
    small and doubles after every epoch that ended in time.
    """

    def __init__(self, options: EpochOptions) -> None:
        self._most = options.max_records
        self._millis = options.max_millis
        self.records = min(options.max_records, FIRST_RECORDS)

    def adapt(self, millis: float, read: int) -> None:
        """Adapt the number to an epoch that took `millis` and in which a slot read at most `read` records."""
        if read and millis > 2 * self._millis:
            self.records = max(1, min(self.records, int(read * self._millis / millis)))
        elif self.records < self._most and millis < self._millis:
            self.records = min(self._most, 2 * self.records)
