"""The clock for the processing time of a job."""

from __future__ import annotations

import threading
import time


class WallClock:
    """The clock of a real job."""

    virtual = False
    """Whether time advances only when the job waits on this clock, so that nothing may wait by another clock."""

    def now(self) -> int:
        """Return the time in milliseconds since 1970."""
        return time.time_ns() // 1_000_000

    def rest(self, millis: int | None, woken: threading.Event) -> None:
        """Wait for this time, or without limit if it is None. Return early when woken."""
        woken.wait(None if millis is None else millis / 1000)
