"""How large epochs may get, and how that is adapted to the job."""

from __future__ import annotations

from dataclasses import dataclass

FIRST_RECORDS = 50_000


@dataclass(frozen=True)
class EpochOptions:
    """How large an epoch may get, and how often an idle job runs one."""

    max_records: int = 1_000_000
    """Per slot."""
    max_millis: int = 1_000
    """For reading; what was read is always processed to the end."""
    interval_millis: int = 100
    """The shortest time between the starts of two epochs that are not catching up."""


class Pace:
    """How many records an epoch may read, so that epochs with slow operators do not last much longer than they should.

    Everything that was read is processed before the epoch ends, and checkpoints wait for that. The number starts small
    and doubles after every epoch that ended in time.
    """

    def __init__(self, options: EpochOptions) -> None:
        self._most = options.max_records
        self._millis = options.max_millis
        self.records = min(options.max_records, FIRST_RECORDS)

    def ran(self, millis: float, read: int) -> None:
        """An epoch took so long, and a slot has read so much in it."""
        if read and millis > 2 * self._millis:
            self.records = max(1, min(self.records, int(read * self._millis / millis)))
        elif self.records < self._most and millis < self._millis:
            self.records = min(self._most, 2 * self.records)
