"""A job whose parallelism can change while its Spark application stays.

Each change ends one JobDriver and begins another, which continues from the newest checkpoint with new slots.
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
from penstock.errors import AlreadyThere, CheckpointFailed, NotEnoughSlots, StorageError
from penstock.graph.plan import Plan

RETRY_SECONDS = 1.0
"""Time, in seconds, between two tries to begin a new driver while the storage fails."""
_LOOK_SECONDS = 0.02
log = logging.getLogger("penstock.job")


@dataclass
class _Change:
    """A change of the parallelism that a client has asked for."""

    running: JobDriver
    """The driver that ran the job before."""
    parallelism: int | None
    """The parallelism that a client had chosen before, or None."""
    failure: str | None = None
    """Reason why the job could not start with the new parallelism."""

    def verdict(self) -> str:
        """Return the beginning of the message about a failed change."""
        slots = self.running.plan.slots
        return f"the job goes on with its earlier parallelism, {slots} slots, since it could not be rescaled"


class RescalableDriver:
    """The driver of a job that replaces its JobDriver whenever the parallelism changes."""

    def __init__(
        self,
        first: JobDriver,
        replan: Callable[[int | None, int | None], Plan],
        remake: Callable[[Plan], JobDriver],
        has_room: Callable[[int], bool],
    ) -> None:
        """Create the driver of a job that begins with `first`.

        `replan` compiles the program again, with the job's parallelism and the limit of every operator's, each None to
        leave it as it is. It raises an error if the job cannot continue with that plan. `remake` returns a driver that
        runs a plan from the newest checkpoint. `has_room` tells whether the application can run that many slots.
        """
        self._current = first
        self._replan = replan
        self._remake = remake
        self._has_room = has_room
        self._parallelism: int | None = None
        """Parallelism that a client has chosen, or None."""
        self._change: _Change | None = None
        """The change of the parallelism that a client waits for."""
        self._rescaling = threading.Lock()
        self._stopped = threading.Event()
        self._is_suspended = False
        self._failures: tuple[FailureView, ...] = ()
        self._changes: tuple[StatusChange, ...] = ()
        self._attempts = 0

    @property
    def current(self) -> JobDriver:
        """The driver that runs the job with its present parallelism."""
        return self._current

    @property
    def slots(self) -> int:
        """Number of slots that the job has or starts."""
        return self._current.plan.slots

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
        if resized.parallelism is not None:
            self._parallelism = resized.parallelism
        following = self._begin(resized)
        following.before_deploy = self._fit
        self._current = following
        if self._is_suspended:
            following.suspend()
        elif self._stopped.is_set():
            following.stop()

    def _begin(self, resized: Resized) -> JobDriver:
        """Return the next driver. A storage that fails for a while does not end the job."""
        while True:
            try:
                return self._remake(self._replan(self._parallelism, resized.slots))
            except StorageError as error:
                if self._stopped.is_set() or isinstance(error, AlreadyThere):
                    raise
                log.warning("the job cannot continue with another parallelism yet: %s", error)
                self._stopped.wait(RETRY_SECONDS)

    def _fit(self) -> None:
        """Raise Resized to go back from a parallelism with which the job could not start. Called before attempts."""
        change = self._change
        if change is None or change.running is self._current:
            return
        failures = self._current.view.failures
        if failures:
            change.failure = failures[-1].message
        elif not self._has_room(self.slots):
            change.failure = "there are not enough cores"
        if change.failure is not None:
            self._change, self._parallelism = None, change.parallelism
            raise Resized(f"{change.verdict()}: {change.failure}", None)

    # --- rescaling ---
    def rescale(self, parallelism: int) -> None:
        """Continue with another parallelism, and return when the job runs with it.

        The job takes a checkpoint and reads nothing after it until it has its new slots. Raise an error if the job
        cannot have this parallelism, or if the checkpoint fails; the job then continues as before.
        """
        with self._rescaling:
            plan = self._replan(parallelism, None)
            if plan.slots == self.slots and parallelism == self._parallelism:
                return
            change = self._change = _Change(self._current, self._parallelism)
            try:
                said = f"the job continues with {plan.slots} slots instead of {self.slots}"
                self._leave(change.running, Resized(said, None, parallelism))
                while change.failure is None and not self._runs_after(change.running):
                    if self._stopped.wait(_LOOK_SECONDS):
                        raise CheckpointFailed(f"the job has ended while it was rescaled: {self.view.status.name}")
            finally:
                self._change = None
            if change.failure is not None:
                raise NotEnoughSlots(f"{change.verdict()}: {change.failure}")

    def _runs_after(self, before: JobDriver) -> bool:
        return self._current is not before and self._current.view.deployed is not None

    def _leave(self, running: JobDriver, resized: Resized) -> None:
        """Let a driver end with a checkpoint."""
        request = CheckpointRequest(leave_with=resized)
        running.request(request)
        request.done.result()
        running.resize(resized)  # if an attempt failed after the checkpoint, the job has not left yet

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
