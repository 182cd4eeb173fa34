"""A job whose parallelism follows the available cores, as with Flink's adaptive scheduler.

The job runs with the requested parallelism, or with a lower one while cores are missing. It grows again when they come
back. Each change ends one JobDriver and begins another, which recovers from the newest checkpoint.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass, replace

from penstock.common.job import JobStatus
from penstock.engine.checkpoint.checkpoint_storage_actions import CheckpointRequest, SnapshotRequest
from penstock.engine.job.job_driver import JobDriver
from penstock.engine.job.job_view import FailureView, JobView, StatusChange
from penstock.engine.job.resize import Resized
from penstock.engine.queryable.query_requests import QueryAnswer, QueryRequest
from penstock.engine.queryable.slot_states import QueryableState
from penstock.errors import PenstockError

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


class AdaptiveDriver:
    """The driver of a job that replaces its JobDriver whenever the parallelism changes."""

    def __init__(
        self,
        first: JobDriver,
        remake: Callable[[int], JobDriver],
        capacity: Callable[[], int | None],
        wanted: int,
        adaptivity: Adaptivity,
    ) -> None:
        """`first` has `wanted` slots. `remake` returns a driver with another number of slots.

        That driver starts from the newest checkpoint.
        """
        self._current = first
        self._remake = remake
        self._capacity = capacity
        self._wanted = wanted
        self._slots = wanted
        self._adaptivity = adaptivity
        self._stopped = threading.Event()
        self._is_suspended = False
        self._failures: tuple[FailureView, ...] = ()
        self._changes: tuple[StatusChange, ...] = ()
        self._attempts = 0
        first.before_deploy = self._fit

    @property
    def view(self) -> JobView:
        """The job's view, with the failures, status changes and attempts from before its parallelism changed."""
        view = self._current.view
        return replace(
            view,
            failures=(*self._failures, *view.failures),
            changes=(*self._changes, *view.changes),
            attempt=self._attempts + view.attempt,
        )

    def run(self) -> None:
        threading.Thread(target=self._watch_cores, name="penstock cores", daemon=True).start()
        try:
            while True:
                try:
                    self._current.run()
                    return
                except Resized as resized:
                    self._resize(resized)
        finally:
            self._stopped.set()

    def _resize(self, resized: Resized) -> None:
        log.warning("%s", resized)
        before = self.view
        # Clients see a restart, not a suspension.
        shown = [change for change in before.changes if change.status is not JobStatus.SUSPENDED]
        self._changes = (*shown, StatusChange(JobStatus.RESTARTING, int(time.time() * 1000)))
        self._failures, self._attempts = before.failures, before.attempt + 1
        self._slots = resized.slots
        following = self._remake(resized.slots)
        following.before_deploy = self._fit
        self._current = following
        if self._is_suspended:
            following.suspend()
        elif self._stopped.is_set():
            following.stop()

    # --- cores ---
    def _fit(self) -> None:
        """Raise Resized if the cores call for another parallelism than this driver's. Called before each attempt."""
        slots = self._await_cores()
        if slots != self._slots:
            raise Resized(f"the job goes on with {slots} slots instead of {self._slots}, as there are cores", slots)

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
        return self._slots

    def _watch_cores(self) -> None:
        """Let the job grow when there are more cores. A checkpoint before that keeps the repeated work small."""
        more_since: float | None = None
        while not self._stopped.wait(self._adaptivity.checks / 1000):
            running = self._current
            slots = min(self._wanted, self._capacity() or 0)
            if slots <= self._slots or running.view.deployed is None:
                more_since = None
                continue
            more_since = more_since or time.monotonic()
            if 1000 * (time.monotonic() - more_since) >= self._adaptivity.resource_stabilization_timeout:
                more_since = None
                self._grow(running, slots)

    def _grow(self, running: JobDriver, slots: int) -> None:
        request = CheckpointRequest()
        running.request(request)
        try:
            request.done.result()
        except PenstockError as error:
            log.debug("the job grows without a checkpoint of its own: %s", error)
        running.resize(Resized(f"the job grows from {self._slots} to {slots} slots, as there are cores", slots))

    # --- calls of the job's handle ---
    def stop(self) -> None:
        self._stopped.set()
        self._current.stop()

    def suspend(self) -> None:
        self._is_suspended = True
        self._stopped.set()
        self._current.suspend()

    def request(self, request: SnapshotRequest) -> None:
        self._current.request(request)

    def query(self, request: QueryRequest) -> Future[QueryAnswer]:
        return self._current.query(request)

    def queryable_states(self) -> tuple[QueryableState, ...]:
        return self._current.queryable_states()
