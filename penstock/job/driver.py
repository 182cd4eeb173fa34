"""The epoch loop: ask, command, run, read the reports, rest; and start again after a failure. Knows no Spark."""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from penstock.checkpoint.coordinator import SavepointRequest
from penstock.errors import (
    AccessDenied,
    CheckpointFailed,
    ConfigurationError,
    JobCancelled,
    JobError,
    JobFailed,
    MissingDependency,
    NotFound,
    OffsetOutOfRange,
    ProgramError,
    SchemaMismatch,
    SlotLost,
    SnapshotError,
)
from penstock.graph.plan import Plan
from penstock.job.cluster import Cluster
from penstock.job.driver_parts import DriverParts, job_failed
from penstock.job.durability import Durability
from penstock.job.results import Results
from penstock.runtime.protocol import CheckpointOrder, Command, Deployment, Report

LONGEST_WAIT_MILLIS = 1_000
UPLOAD_WAIT_MILLIS = 20
"""How long to wait before asking again whether a checkpoint has been written."""
LASTING = (
    ProgramError,
    ConfigurationError,
    SnapshotError,
    MissingDependency,
    NotFound,
    AccessDenied,
    OffsetOutOfRange,
    SchemaMismatch,
)
"""What another try would not change."""
log = logging.getLogger("penstock.job")


@dataclass(frozen=True)
class EpochOptions:
    """How large an epoch may get, and how often an idle one is worth running."""

    max_records: int = 1_000_000
    """Per slot."""
    max_millis: int = 1_000
    """For reading; what was read is always processed to the end."""
    interval_millis: int = 100
    """The shortest time between the starts of two epochs that are not catching up."""


FIRST_RECORDS = 50_000


class Pace:
    """How many records an epoch may read, so that those behind slow operators do not last much longer than they should.

    What has been read is processed to the end, and checkpoints wait for that. It begins with few, and twice as many
    after every epoch that was over in time.
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


class WallClock:
    """Processing time of a real job."""

    def now(self) -> int:
        return time.time_ns() // 1_000_000

    def rest(self, millis: int | None, woken: threading.Event) -> None:
        """Wait, for ever if nothing is said, or less if woken."""
        woken.wait(None if millis is None else millis / 1000)


class EpochLoop:
    """Runs one job on a cluster, epoch by epoch, until its input ends, it fails for good or it is stopped."""

    def __init__(
        self,
        plan: Plan,
        deployment: Deployment,
        cluster: Cluster,
        *,
        options: EpochOptions,
        on_results: Mapping[str, Callable[[Any], None]],
        durability: Durability | None = None,
        clock: WallClock | None = None,
    ) -> None:
        self._plan = plan
        self.batch = plan.batch
        self._deployment = deployment
        self._cluster = cluster
        self._options = options
        self._durability = durability or Durability.none(plan, deployment.job_id)
        self.coordinator = self._durability.coordinator
        self._results = Results(on_results, self._durability.held)
        self.coordinator.on_complete = self._completed
        self._clock = clock or WallClock()
        self._stop = threading.Event()
        self._wake = threading.Event()
        self._requests: deque[SavepointRequest] = deque()
        self._over = False
        self._stopping: SavepointRequest | None = None
        self._final: int | None = None
        self._idle_epochs = 0
        self.epoch = 0
        self.restarting = False
        self.failures: list[tuple[int, str]] = []
        """When the job failed, and why."""
        self.metrics: dict[int, dict[str, Any]] = {}
        self.watermarks: dict[str, int] = {}
        self._reached: dict[tuple[str, str, int], int] = {}
        self._driver_parts = DriverParts(plan, self.wake, deployment.job_id)
        cluster.on_wake = self.wake
        self._news = False
        self._pace = Pace(options)

    # --- from other threads ---
    def stop(self) -> None:
        """Ask the loop to end; it does so with JobCancelled before the next epoch."""
        self._stop.set()
        self._wake.set()

    def wake(self) -> None:
        """An epoch is wanted: a slot has news, or is lost."""
        self._news = True
        self._wake.set()

    def request(self, request: SavepointRequest) -> None:
        """Ask for a savepoint at the end of the next epoch."""
        self._requests.append(request)
        self._wake.set()
        if self._over:
            self._refuse_requests("the job has ended")

    # --- from start to end ---
    def run(self) -> None:
        """From deployment to release. Returns when the input has ended; raises otherwise."""
        try:
            self._attempts()
            self._check(self._release())
        except JobCancelled as cancelled:
            self._release_quietly()
            self._end(str(cancelled))
            self.coordinator.release(self._durability.keep_when_cancelled, finished=False)
            raise
        except Exception as error:
            self._release_quietly()
            self._end(f"the job failed: {error}")
            raise
        self._release_results()
        self._end("the job has ended")
        self.coordinator.release(keep=False, finished=self._durability.marks_end)

    def _completed(self, checkpoint: int, epoch: int) -> None:
        self._results.release(epoch)
        self._driver_parts.checkpoint_complete(checkpoint)

    def _release_results(self) -> None:
        """Hand out the last results. What came behind a last savepoint comes again from whoever goes on there."""
        if self.coordinator.last_savepoint is None:
            self._results.release_all()
        else:
            self._results.release(self.coordinator.last_epoch)

    def _end(self, why: str) -> None:
        self._over = True
        self.coordinator.close(why)
        self._refuse_requests(why)

    def _refuse_requests(self, why: str) -> None:
        while self._requests:
            self._requests.popleft().done.set_exception(CheckpointFailed(f"no savepoint was taken: {why}"))

    def _attempts(self) -> None:
        """Run until the end, again and again as the restart strategy allows."""
        while True:
            try:
                self._deploy()
                self._epochs()
                return
            except (JobFailed, SlotLost, CheckpointFailed) as error:
                self._prepare_restart(error)

    def _prepare_restart(self, error: JobError) -> None:
        if self._stop.is_set():
            raise JobCancelled("the job was cancelled") from None
        now = self._clock.now()
        self.failures = [*self.failures[-99:], (now, str(error))]
        lasting = isinstance(error, LASTING)
        delay = None if lasting else self._durability.restarts.failed(now)
        if delay is None:
            if self._deployment.attempt:
                reason = "another try would not help" if lasting else self._durability.restarts.describe()
                error.add_note(f"The job had been restarted {self._deployment.attempt} times; {reason}.")
            raise error
        log.warning("job '%s' failed and restarts in %d ms: %s", self._plan.job_name, delay, error)
        self.restarting = True
        self._clock.rest(delay, self._stop)
        self._deployment.attempt += 1

    def _deploy(self) -> None:
        """Bring the slots to life where the last complete checkpoint left them, or at the start."""
        if self._stop.is_set():
            raise JobCancelled("the job was cancelled")
        now = self._clock.now()
        stopped = self.coordinator.last_savepoint
        point = self._durability.restore_point()
        if stopped is not None:
            # Its savepoint is complete, and someone may have gone on from it: nothing more may happen here.
            point = self._durability.point_of(stopped)
        self._deployment.now = now
        self._deployment.restore = point.restore if point is not None else None
        self.coordinator.start(now)
        if stopped is None:
            self._results.forget()
        self._stopping, self._final = self._stopping if stopped is not None else None, None
        self._driver_parts.open(point.enumerators if point is not None else {})
        self._check(self._cluster.deploy(self._deployment))
        self.restarting = False

    def _epochs(self) -> None:
        reports: list[Report] = []
        while not self._is_over(reports):
            if self._stop.is_set():
                raise JobCancelled("the job was cancelled")
            self._news = False
            started = self._clock.now()
            command = self._command(started, reports)
            began = time.monotonic()
            reports = self._cluster.run(command)
            self._pace.ran(1000 * (time.monotonic() - began), max((report.read for report in reports), default=0))
            self.epoch += 1
            self._absorb(command.epoch, reports)
            self._check(reports)
            self._driver_parts.commit(reports)
            answers = [answer for report in reports for answer in report.acknowledgements]
            self.coordinator.receive(answers, self._clock.now())
            self._rest(started, reports)

    def _is_over(self, reports: list[Report]) -> bool:
        """Whether everything has been read, and is covered by a checkpoint that every sink has heard of."""
        if self._stopping is not None and self._stopping.done.done():
            return self._is_stopped(self._stopping) and not self.coordinator.has_news()
        if not _all_finished(reports):
            return False
        return not self._durability.seals or (self._is_sealed() and not self.coordinator.has_news())

    def _is_sealed(self) -> bool:
        return self._final is not None and any(kept.number == self._final for kept in self.coordinator.kept)

    def _is_stopped(self, request: SavepointRequest) -> bool:
        """A job whose last savepoint failed goes on; one that was drained cannot, and has to recover."""
        error = request.done.exception()
        if error is None:
            return True
        if request.drain:
            raise CheckpointFailed(f"the job was drained, and {error}")
        self._stopping = None
        return False

    # --- before an epoch ---
    def _command(self, now: int, reports: list[Report]) -> Command:
        request = self._requests.popleft() if self._requests and self._stopping is None else None
        if request is not None and request.stop:
            self._stopping = request
        paused = self._stopping is not None
        notices = self.coordinator.take_notices()
        assignments = {} if paused else self._driver_parts.assignments(min(self._options.max_records, 20_000))
        order = self._order(now, reports, request)
        return Command(
            epoch=self.epoch,
            attempt=self._deployment.attempt,
            now=now,
            max_records=self._pace.records,
            max_millis=self._options.max_millis,
            wait_millis=0 if order is not None else self._wait_millis(now, reports),
            assignments=assignments,
            alignment=self._alignment(),
            checkpoint=order,
            notices=notices,
            drain=request is not None and request.drain,
            paused=paused,
        )

    def _order(self, now: int, reports: list[Report], request: SavepointRequest | None) -> CheckpointOrder | None:
        """The savepoint asked for, the last checkpoint of a job that has read everything, or the next one due."""
        if request is not None:
            return self.coordinator.begin(now, self.epoch, self._driver_parts.positions(), request)
        if self._stopping is not None:
            return None
        if self._durability.seals and _all_finished(reports):
            if self._is_sealed() or self.coordinator.awaits_slots() or self._awaits_next_try(now):
                return None
            order = self.coordinator.begin(now, self.epoch, self._driver_parts.positions())
            self._final = order.number
            return order
        return self.coordinator.order(now, self.epoch, self._driver_parts.positions())

    def _awaits_next_try(self, now: int) -> bool:
        """Whether the last checkpoint has failed, and is to be tried again at the pace of the others."""
        due = self.coordinator.next_due()
        return self._final is not None and due is not None and due > now

    def _wait_millis(self, now: int, reports: list[Report]) -> int:
        """A source that waits for the outside world waits in its slot; longer, the longer nothing has come."""
        waiting = any(report.waits_for_input for report in reports)
        if not waiting or self._requests or any(report.backlog for report in reports):
            return 0
        longest = min(self._options.interval_millis << min(self._idle_epochs, 10), LONGEST_WAIT_MILLIS)
        if self.coordinator.has_news():
            longest = UPLOAD_WAIT_MILLIS
        due = self._next_due(reports)
        return longest if due is None else max(0, min(longest, due - now))

    def _alignment(self) -> dict[str, int]:
        """How far each alignment group may go: its slowest stream plus the smallest drift allowed."""
        limits: dict[str, int] = {}
        for node in self._plan.nodes:
            if node.alignment is not None:
                group, drift = node.alignment
                slowest = [w for (g, _, _), w in self._reached.items() if g == group]
                if slowest:
                    limits[group] = min(min(slowest) + drift, limits.get(group, 2**63))
        return limits

    # --- after an epoch ---
    def _absorb(self, epoch: int, reports: list[Report]) -> None:
        """Take over what the slots said, results first: they are true even if the epoch failed elsewhere."""
        self._reached = {
            (group, uid, report.slot): watermark
            for report in reports
            for (group, uid), watermark in report.alignment.items()
        }
        self.watermarks = {}
        for report in sorted(reports, key=lambda r: r.slot):
            self.metrics[report.slot] = report.metrics
            for uid, watermark in report.watermarks.items():
                self.watermarks[uid] = min(watermark, self.watermarks.get(uid, watermark))
            for uid, payload in report.results:
                self._results.take(epoch, uid, payload)
        self._idle_epochs = 0 if any(report.results or report.backlog for report in reports) else self._idle_epochs + 1

    def _rest(self, started: int, reports: list[Report]) -> None:
        """Sleep until something is due or comes. A job that catches up, ends, or has news for its slots does not."""
        if self._is_busy(reports):
            return
        if any(report.news for report in reports):
            self._news = True
        earliest, latest = started + self._options.interval_millis, self._latest(started, reports)
        while True:
            self._wake.clear()
            until = earliest if self._news and (latest is None or latest > earliest) else latest
            now = self._clock.now()
            if self._stop.is_set() or self._requests or (until is not None and until <= now):
                return
            self._clock.rest(None if until is None else until - now, self._wake)
            if until is not None and not self._wake.is_set():
                return

    def _latest(self, started: int, reports: list[Report]) -> int | None:
        """When the next epoch begins even if nothing comes; None if only what comes can be its reason."""
        earliest = started + self._options.interval_millis
        rings = all(report.rings for report in reports)
        if self.coordinator.awaits_slots() and not rings:
            return self._clock.now() + UPLOAD_WAIT_MILLIS
        if any(report.waits_for_input for report in reports) and not _all_finished(reports):
            return earliest
        due = self._next_due(reports)
        return None if due is None else max(due, earliest)

    def _is_busy(self, reports: list[Report]) -> bool:
        if self._stopping is None and self._driver_parts.has_more():
            return True
        if self._requests or (self.coordinator.has_news() and not self.coordinator.awaits_slots()):
            return True
        if self.coordinator.awaits_slots() and _all_finished(reports):
            return False
        if self._durability.seals and _all_finished(reports):
            return self._is_sealed() or not self._awaits_next_try(self._clock.now())
        return any(r.backlog for r in reports) or _all_finished(reports)

    def _next_due(self, reports: list[Report]) -> int | None:
        due = [report.next_due for report in reports if report.next_due is not None]
        look = self._driver_parts.due_in() if all(report.rings for report in reports) else None
        if look is not None:
            due.append(self._clock.now() + int(1000 * look))
        checkpoint = self.coordinator.next_due()
        return min(due if checkpoint is None else [*due, checkpoint], default=None)

    def _check(self, reports: list[Report]) -> None:
        lost = [report for report in reports if report.lost]
        if lost:
            raise SlotLost("; ".join(f"slot {report.slot}: {report.lost}" for report in lost))
        failed = [report.failure for report in reports if report.failure is not None]
        if failed:
            # A failure may make later stages fail in other slots: the earliest is the cause.
            raise job_failed(min(failed, key=lambda failure: failure.stage))

    # --- the end ---
    def _release(self) -> list[Report]:
        self._driver_parts.close()
        return self._cluster.release()

    def _release_quietly(self) -> None:
        """After a failure the first error counts; one on the way out would only hide it."""
        try:
            self._release()
        except Exception:
            return


class EndedLoop(EpochLoop):
    """The loop of a job that came to its end in an earlier run."""

    def __init__(self) -> None:
        self.batch = False
        self.metrics = {}
        self.watermarks = {}
        self.failures = []
        self.restarting = False

    def run(self) -> None:
        """There is nothing left to do."""

    def stop(self) -> None:
        """It has stopped."""


def _all_finished(reports: list[Report]) -> bool:
    return bool(reports) and all(report.finished for report in reports)
