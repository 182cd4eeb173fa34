"""Watches from outside how long results stop after a fault."""

from __future__ import annotations

import time
from collections.abc import Callable
from itertools import pairwise

QUIET_GROWTHS = 3
"""After this many growths in a row without a longer pause, the pause before them is taken for the recovery."""


def pause_after(fault: Callable[[], object], count: Callable[[], int], seconds: float) -> float:
    """Cause a fault, and return how long it took from then until results came again after the longest pause.

    Results come in steps, with each checkpoint.
    """
    began = time.monotonic()
    last, times = count(), [began]
    fault()
    while time.monotonic() - began < seconds:
        time.sleep(0.2)
        rows = count()
        if rows > last:
            last = rows
            times.append(time.monotonic())
            gaps = [later - earlier for earlier, later in pairwise(times)]
            longest = gaps.index(max(gaps))
            if len(gaps) - longest > QUIET_GROWTHS:
                return times[longest + 1] - began
    raise TimeoutError(f"no steady results within {seconds:g} s of the fault: {len(times) - 1} growths")
