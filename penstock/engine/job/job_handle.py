"""The client's handle of a job: status, cancel, result. The job's driver runs in a thread of its own."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import Future, wait
from dataclasses import replace
from secrets import token_hex
from typing import Any

from penstock.base.logs.levels import Levels, apply, check_levels, current
from penstock.base.logs.log_options import LogSettings
from penstock.base.storage import Storage
from penstock.common.job import JobExecutionResult, JobID, JobStatus
from penstock.engine.checkpoint.checkpoint_storage_actions import CheckpointRequest, SavepointRequest, SnapshotRequest
from penstock.engine.job.cluster_protocol import Cluster
from penstock.engine.job.job_driver import Driver
from penstock.engine.job.job_picture import bundle
from penstock.engine.job.job_record import JobRecord, Settings, StateRecord, record_of
from penstock.engine.job.job_view import JobView
from penstock.engine.job.job_widget import JobWidget
from penstock.engine.job.rescaling import RescalableDriver
from penstock.engine.job.result_picture import result_picture
from penstock.engine.messages.metric_totals import combine_metrics
from penstock.engine.observe.profiling import ProfileOrder, Seen
from penstock.engine.observe.rates import Rates
from penstock.engine.observe.slot_questions import SetLevels
from penstock.engine.observe.stacks import threads_in
from penstock.engine.queryable.query_requests import QueryAnswer, QueryRequest
from penstock.engine.queryable.slot_states import QueryableState
from penstock.errors import (
    CheckpointFailed,
    ConfigurationError,
    JobCancelled,
    JobDisplaced,
    JobSuspended,
    NotEnoughSlots,
    UnsupportedOperation,
)

STOP_SECONDS = 10
ANSWER_SECONDS = 10
"""Time, in seconds, that a slot may take to answer in addition to the requested duration."""
STACK_SECONDS = 3.0


class JobHandle:
    """A submitted job. `cancel` and `result` may be called from any thread."""

    def __init__(
        self,
        job_id: JobID,
        driver: Driver,
        cluster: Cluster | None,
        at_end: Callable[[], None] | None = None,
        savepoints: str | None = None,
        settings: Settings | None = None,
    ) -> None:
        self.job_id = job_id
        self._driver = driver
        self._cluster = cluster
        self._at_end = at_end
        self._savepoints = savepoints
        self._settings = settings or Settings()
        self._rates = Rates()
        self.queryable_address: tuple[str, int] | None = None
        """Host and port at which clients can look up queryable state; None if it is not served."""
        self.draw_path: Callable[[str], str] = str
        """Function that adds a picture for notebooks to the path of a savepoint."""
        self.logs: LogSettings | None = None
        """Log settings of the slots; None if unknown."""
        self._status = JobStatus.CREATED
        self._error: BaseException | None = None
        self._began = time.monotonic()
        self._seconds = 0.0
        self._ended = threading.Event()
        self.before_result: Callable[[], None] | None = None
        """Callback before the program learns how the job ended. The program waits until it returns."""
        self._lock = threading.Lock()
        self._thread = threading.Thread(target=self._run, name=f"penstock job {job_id}", daemon=True)

    def start(self) -> JobHandle:
        """Start to run the job. Return this handle."""
        self._status = JobStatus.RUNNING
        self._thread.start()
        return self

    def _run(self) -> None:
        try:
            self._driver.run()
        except JobCancelled as cancelled:
            self._end(JobStatus.CANCELED, cancelled)
        except (JobDisplaced, JobSuspended) as elsewhere:
            self._end(JobStatus.SUSPENDED, elsewhere)
        except BaseException as error:
            # An interrupted epoch fails with any error. A job that was asked to stop was cancelled, and has not failed.
            if self._status is JobStatus.CANCELLING:
                self._end(JobStatus.CANCELED, JobCancelled("the job was cancelled"))
            else:
                self._end(JobStatus.FAILED, error)
        else:
            self._end(JobStatus.FINISHED, None)

    def _end(self, status: JobStatus, error: BaseException | None) -> None:
        with self._lock:
            self._seconds = time.monotonic() - self._began
            self._error = error
            self._status = status
        if self._at_end is not None:
            self._at_end()
        self._ended.set()

    @property
    def view(self) -> JobView:
        """The job at this moment. A view never changes."""
        return self._driver.view

    @property
    def job_driver(self) -> Driver:
        """The driver that runs the job with its present parallelism."""
        return self._driver.current if isinstance(self._driver, RescalableDriver) else self._driver

    def record(self) -> JobRecord:
        """Return the job at this moment as plain data."""
        record = record_of(self.view, self._settings, self._rates, int(time.time() * 1000))
        states = (StateRecord(one.name, one.kind, one.uid, one.operator) for one in self.queryable_states())
        return replace(record, queryable=tuple(states))

    def status(self) -> JobStatus:
        """Return the status of the job."""
        if self._status is JobStatus.RUNNING and self.view.status is JobStatus.RESTARTING:
            return JobStatus.RESTARTING
        return self._status

    def cancel(self, patience: float = 3.0) -> None:
        """Stop after the running epoch, or in its middle if it does not end within `patience` seconds.

        A BATCH job has one epoch, and is stopped at once.
        """
        with self._lock:
            if self._status.is_terminal_state():
                return
            self._status = JobStatus.CANCELLING
        self._driver.stop()
        self._interrupt_after(patience)

    def suspend(self, patience: float = 3.0) -> None:
        """Stop as `cancel` does, but keep the checkpoints, so that a later driver can go on."""
        with self._lock:
            if self._status.is_terminal_state():
                return
        self._driver.suspend()
        self._interrupt_after(patience)

    def _interrupt_after(self, patience: float) -> None:
        if not self._ended.wait(0 if self._is_batch() else patience):
            if self._cluster is not None:
                self._cluster.interrupt()
            self._ended.wait(10)

    def _is_batch(self) -> bool:
        return self.view.plan is not None and self.view.plan.batch

    def wait(self, timeout: float | None = None) -> bool:
        """Wait for the end of the job. Return True if it came in time."""
        return self._ended.wait(timeout)

    def result(self, timeout: float | None = None) -> JobExecutionResult:
        """Wait for the end of the job. Raises the job's error, or JobCancelled."""
        # Short waits let Ctrl-C interrupt the program.
        deadline = None if timeout is None else time.monotonic() + timeout
        while not self._ended.wait(0.2):
            if deadline is not None and time.monotonic() > deadline:
                raise TimeoutError(f"job {self.job_id} is still {self._status.name}")
        if self.before_result is not None:
            self.before_result()
        if self._error is not None:
            raise self._error
        result = JobExecutionResult(self.job_id, int(self._seconds * 1000), self.accumulators())
        result._draw = lambda: result_picture(self.record(), result.get_net_runtime())
        return result

    def accumulators(self) -> dict[str, Any]:
        """Return the job's metrics over all slots: totals, minima, maxima and means.

        Most gauges are missing, because their values in several slots cannot be combined.
        """
        return combine_metrics(self.view.reports)

    def query(self, request: QueryRequest) -> Future[QueryAnswer]:
        """Look queryable state up. The whole answer is from one consistent cut, which it names.

        The future fails with a QueryError, or with the error of a wrong key. A job that reads at full speed reaches its
        next cut within about `penstock.epoch.max-time`. Its epochs then stay short while clients keep asking.
        """
        if self._is_batch():
            raise UnsupportedOperation("a BATCH job has no queryable state: its operators are gone when they are done")
        return self._driver.query(request)

    def queryable_states(self) -> tuple[QueryableState, ...]:
        """Return the states that can be looked up. A state is known once a function has asked for it."""
        return self._driver.queryable_states()

    # --- observing the job ---
    def log_levels(self) -> Levels:
        """Return the levels that were set for loggers in slots and driver, by logger."""
        levels = self.logs.levels if self.logs is not None else current()
        return {name: level for name, level in sorted(levels.items()) if level}

    def set_log_levels(self, levels: Mapping[str, str]) -> None:
        """Set the levels of loggers, in this process and in all slots, now and after restarts.

        With an empty level, a logger follows its parent again. Raises ConfigurationError for an unknown level.
        """
        wanted = check_levels(levels)
        apply(wanted)
        if self.logs is not None:
            self.logs.levels = {**self.logs.levels, **wanted}
        if self._cluster is not None:
            wait(self._cluster.watch(SetLevels(wanted)).values(), ANSWER_SECONDS)

    def profile(self, order: ProfileOrder) -> list[Seen]:
        """Sample the stacks of the slots for the ordered time. Slots that do not answer are left out."""
        asked = self._cluster.watch(order) if self._cluster is not None else {}
        done, _ = wait(asked.values(), order.seconds + ANSWER_SECONDS)
        return [seen for answer in done if answer.exception() is None for seen in answer.result()]

    def widget(self, seconds: float) -> JobWidget:
        """Show the job in a notebook as a picture that is redrawn at this interval, in seconds."""
        return JobWidget(self.record, seconds)

    def bundle(self) -> Mapping[str, str]:
        """Return a notebook's output for the job at this moment, by MIME type."""
        return bundle(self.record())

    def stacks(self, place: str | None = None) -> list[tuple[str, str]]:
        """Return pairs of a name, of slot and thread, and a stack, for the slots at one place or for all slots."""
        if self._cluster is None or self._ended.is_set():
            return []
        at = {report.slot: report.place for report in self.view.reports}
        found = self._cluster.stacks(STACK_SECONDS)
        return [
            (f"slot {slot}: {name}", text)
            for slot, told in sorted(found.items())
            if place is None or at.get(slot) in (None, place)
            for name, text in threads_in(told)
        ]

    def check_capacity(self, parallelism: int) -> None:
        """Raise NotEnoughSlots if the job could not run with this parallelism on the cores available now."""
        most = self._cluster.capacity() if self._cluster is not None else None
        if most is not None and parallelism > most:
            raise NotEnoughSlots(
                f"job {self.job_id} cannot be rescaled: a parallelism of {parallelism} needs {parallelism} slots at "
                f"once, and Spark can run {most} tasks at once. The job runs on as before. Choose a parallelism of at "
                f"most {most}, or give Spark more cores first (spark.executor.instances, spark.cores.max)"
            )

    def rescale(self, parallelism: int) -> None:
        """Continue with another parallelism in the same application. Raise an error if the job stays as it is."""
        if not self.can_rescale(parallelism) or not isinstance(self._driver, RescalableDriver):
            raise UnsupportedOperation(
                f"job {self.job_id} cannot change its parallelism while it runs: it needs checkpoints in a directory "
                "(execution.checkpointing.interval, execution.checkpointing.dir) and cores for all slots. Stop it with "
                "a savepoint, and start it from there"
            )
        self.check_capacity(parallelism)
        self._driver.rescale(parallelism)
        self._settings = replace(self._settings, parallelism=parallelism)

    def can_rescale(self, parallelism: int) -> bool:
        """Return True if `rescale` is possible without another application."""
        cluster = self._cluster
        return isinstance(self._driver, RescalableDriver) and cluster is not None and cluster.has_room(parallelism)

    # --- snapshots ---
    def trigger_savepoint(self, directory: str | None, stop: bool, drain: bool) -> str:
        """Write a savepoint below a directory and return its path."""
        below = directory or self._savepoints
        if below is None:
            raise ConfigurationError(
                "a savepoint needs a directory: name one, or set execution.checkpointing.savepoint-dir"
            )
        if self._is_batch():
            raise UnsupportedOperation("a BATCH job keeps what it has read outside of state: it has no savepoints")
        folder = Storage(below).url(f"savepoint-{self.job_id.hex[:6]}-{token_hex(6)}")
        path = self._snapshot(SavepointRequest(folder, stop, drain), "savepoint")
        if stop:
            # The job ends now; if its last results wait for a reader, the reader may be the thread that waits here.
            self._ended.wait(STOP_SECONDS)
        return self.draw_path(path)

    def trigger_checkpoint(self, full: bool = False) -> int:
        """Take a checkpoint outside its turn, and return its number once it is complete."""
        if self._settings.checkpoints is None or self._is_batch():
            raise UnsupportedOperation(
                "this job takes no checkpoints: set execution.checkpointing.interval, or take a savepoint"
            )
        return int(self._snapshot(CheckpointRequest(full), "checkpoint"))

    def _snapshot(self, request: SnapshotRequest, kind: str) -> str:
        with self._lock:
            if self._status.is_terminal_state():
                refused = CheckpointFailed(f"job {self.job_id} is {self._status.name}: no {kind} can be taken")
                raise refused from self._error
            self._driver.request(request)
        return request.done.result()
