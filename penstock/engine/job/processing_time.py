"""The processing time of a job, and how to wait for a point in it."""

from __future__ import annotations

import threading
import time


class WallClock:
    """The processing time of a real job."""

    virtual = False
    """Whether time advances only when the job waits on this clock, so that nothing may wait by another clock."""

    def now(self) -> int:
        return time.time_ns() // 1_000_000

    def rest(self, millis: int | None, woken: threading.Event) -> None:
        """Wait, for ever if nothing is said, or less if woken."""
        woken.wait(None if millis is None else millis / 1000)
