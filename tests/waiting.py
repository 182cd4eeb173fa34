"""Waiting for something that must happen, without a guess at how fast the machine is."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

PATIENCE_SECONDS = 60.0
SPARK_SECONDS = 300.0
"""For processes that have to start first: on a busy machine Spark gives no sign of life for minutes."""
LONGEST_STEP_SECONDS = 1.0


def without_waits(said: str) -> str:
    """A program's standard error without what is told when slots are slow to start, as they are on a busy machine."""
    return "".join(line for line in said.splitlines(keepends=True) if "slots at once" not in line)


class Patience:
    """How long nothing has moved. A test that hits the limit has failed: nothing may depend on the figure.

    Time in which this process itself did not run is not counted: between two looks at most one second passes.
    """

    def __init__(self, seconds: float = PATIENCE_SECONDS) -> None:
        self._seconds = seconds
        self._looked = time.monotonic()
        self._spent = 0.0
        self._seen: Any = None

    def spent(self, progress: Any = None) -> bool:
        """Whether `progress` has been the same for too long."""
        now = time.monotonic()
        self._spent += min(now - self._looked, LONGEST_STEP_SECONDS)
        self._looked = now
        if progress != self._seen:
            self._seen, self._spent = progress, 0.0
        return self._spent > self._seconds


def until(
    condition: Callable[[], Any],
    *,
    progress: Callable[[], Any] = lambda: None,
    patience: float = PATIENCE_SECONDS,
    every: float = 0.01,
    told: Callable[[], str] = lambda: "it did not happen",
) -> Any:
    """The condition's value once it is true.

    It fails when `progress()` (records, epochs, checkpoints, the length of a log) has not changed for `patience`
    seconds, and then says what `told()` tells: so a slow machine takes longer, and only a standstill fails.
    """
    waiting, next_look = Patience(patience), 0.0
    while not (value := condition()):
        # Progress may be dear to find out, and need not be known so exactly.
        if time.monotonic() >= next_look:
            if waiting.spent(progress()):
                raise AssertionError(f"no progress for {patience:g} s: {told()}")
            next_look = time.monotonic() + min(LONGEST_STEP_SECONDS / 2, patience / 10)
        time.sleep(every)
    return value
