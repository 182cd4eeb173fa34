"""Simulated faults besides crashes: a storage that fails, loses answers or returns errors, and clocks that jump."""

from __future__ import annotations

import errno
import random
from collections import Counter
from collections.abc import Callable
from typing import TypeVar

from penstock.testing.cluster import ManualClock

T = TypeVar("T")
LONGEST_OUTAGE = 12
"""Greatest number of calls in a row that a storage refuses.

It exceeds the attempts of one call, so some calls fail for good.
"""
STALE_FOR = 6
"""Number of listings in which a new file may stay hidden."""
MOST_JUMPS = 3
HOUR = 3_600_000


class Faults:
    """Decides by chance which calls of a storage fail, and in which way.

    refused    the call does nothing and fails, and perhaps so do those that follow
    unanswered the call does its work, but its answer is lost, so that it is called a second time
    torn       a read returns only the beginning of a file
    hidden     a listing leaves out files of checkpoints that were written just before
    """

    def __init__(self, chance: random.Random, likelihood: float) -> None:
        self._chance = chance
        self._likelihood = likelihood
        self._outage = 0
        self._hidden: dict[str, int] = {}
        self.counts: Counter[str] = Counter()
        """Number of faults of each kind."""

    def _strikes(self, kind: str) -> bool:
        struck = self._chance.random() < self._likelihood
        self.counts[kind] += struck
        return struck

    def around(self, what: str, call: Callable[[], T]) -> T:
        """Make a call, which may fail before or after it has done its work."""
        if self._outage == 0 and self._strikes("refused"):
            self._outage = self._chance.choice([1, 1, 2, LONGEST_OUTAGE])
        if self._outage:
            self._outage -= 1
            raise OSError(errno.EIO, f"the simulated storage refuses: {what}")
        result = call()
        if self._strikes("unanswered"):
            raise OSError(errno.ETIMEDOUT, f"the answer of the simulated storage is lost: {what}")
        return result

    def read(self, data: bytes) -> bytes:
        """Return the data that a reader gets of a file, which may be torn."""
        if len(data) > 1 and self._strikes("torn"):
            return data[: self._chance.randrange(1, len(data))]
        return data

    def hide(self, path: str) -> None:
        """Leave a new file out of the next listings, by chance. The files of owners are never hidden."""
        if "/owner/" not in path and self._strikes("hidden"):
            self._hidden[path] = self._chance.randint(1, STALE_FOR)

    def lists(self, path: str) -> bool:
        """Return True if a listing shows the file already."""
        left = self._hidden.pop(path, 0)
        if left > 1:
            self._hidden[path] = left - 1
        return left == 0

    def jump(self) -> int:
        """Return the milliseconds by which the clock is set now, which is nearly always 0."""
        if self.counts["jump"] < MOST_JUMPS and self._chance.random() < 0.005:
            self.counts["jump"] += 1
            return self._chance.choice([-HOUR, -500, -30, 30, 500, HOUR])
        return 0


class JumpingClock(ManualClock):
    """A clock that jumps now and then, forwards or backwards, by a little or by up to an hour."""

    def __init__(self, faults: Faults, now: int, tick: int) -> None:
        super().__init__(now, tick)
        self._faults = faults

    def now(self) -> int:
        self.advance(self._faults.jump())
        return super().now()
