"""A job whose parallelism follows the available cores, as with Flink's adaptive scheduler.

The job runs with the requested parallelism, or with a lower one while cores are missing. It grows again when they come
back.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass

from penstock.engine.job.job_driver import JobDriver
from penstock.engine.job.rescaling import RescalableDriver
from penstock.engine.job.resize import Resized
from penstock.errors import PenstockError
from penstock.graph.plan import Plan

log = logging.getLogger("penstock.job")


@dataclass(frozen=True)
class Adaptivity:
    """Settings of a job that adapts to its cores. Times are in milliseconds; the names are those of Flink's options."""

    resource_wait_timeout: int = 300_000
    """Longest wait for the first cores of an attempt."""
    resource_stabilization_timeout: int = 10_000
    """Time for which the number of cores must stay the same before the job starts with too few, or grows."""
    checks: int = 1_000
    """Time between two checks of the number of cores."""


class AdaptiveDriver(RescalableDriver):
    """The driver of a job that changes its parallelism by itself when its cores change."""

    def __init__(
        self,
        first: JobDriver,
        replan: Callable[[int | None, int | None], Plan],
        remake: Callable[[Plan], JobDriver],
        has_room: Callable[[int], bool],
        capacity: Callable[[], int | None],
        adaptivity: Adaptivity,
    ) -> None:
        super().__init__(first, replan, remake, has_room)
        self._capacity = capacity
        self._wanted = first.plan.slots
        self._adaptivity = adaptivity
        first.before_deploy = self._fit

    def run(self) -> None:
        threading.Thread(target=self._watch_cores, name="penstock cores", daemon=True).start()
        super().run()

    def _resize(self, resized: Resized) -> None:
        super()._resize(resized)
        if resized.slots is None:
            self._wanted = self.slots

    # --- cores ---
    def _fit(self) -> None:
        """Raise Resized if the cores call for another parallelism than this driver's. Called before each attempt."""
        slots = self._await_cores()
        if slots != self.slots:
            raise Resized(f"the job goes on with {slots} slots instead of {self.slots}, as there are cores", slots)

    def _await_cores(self) -> int:
        """Return the number of slots to use: all wanted slots, or those that have cores once their number is stable."""
        began = stable_since = time.monotonic()
        seen: int | None = -1
        while not self._stopped.is_set():
            found = self._capacity()
            if found is None or found >= self._wanted:
                return self._wanted
            now = time.monotonic()
            if found != seen:
                seen, stable_since = found, now
            if found and 1000 * (now - stable_since) >= self._adaptivity.resource_stabilization_timeout:
                return found
            if 1000 * (now - began) >= self._adaptivity.resource_wait_timeout:
                return max(1, found)
            self._stopped.wait(min(self._adaptivity.checks, 100) / 1000)
        return self.slots

    def _watch_cores(self) -> None:
        """Let the job grow when there are more cores. A checkpoint before that leaves no work to repeat."""
        more_since: float | None = None
        while not self._stopped.wait(self._adaptivity.checks / 1000):
            running = self._current
            slots = min(self._wanted, self._capacity() or 0)
            if slots <= self.slots or running.view.deployed is None:
                more_since = None
                continue
            more_since = more_since or time.monotonic()
            if 1000 * (time.monotonic() - more_since) >= self._adaptivity.resource_stabilization_timeout:
                more_since = None
                self._grow(running, slots)

    def _grow(self, running: JobDriver, slots: int) -> None:
        resized = Resized(f"the job grows from {self.slots} to {slots} slots, as there are cores", slots)
        try:
            self._leave(running, resized)
        except PenstockError as error:
            log.debug("the job grows without a checkpoint of its own: %s", error)
            running.resize(resized)
