"""The epoch loop: ask, command, run, read the reports, rest. Knows no Spark."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from penstock import errors
from penstock.errors import JobCancelled, JobFailed, PenstockError, SlotLost
from penstock.graph.plan import Plan
from penstock.job.cluster import Cluster
from penstock.runtime.failures import Failure
from penstock.runtime.protocol import Command, Deployment, Report
from penstock.runtime.source import Enumerator, SourceOperator

KEEP_ALIVE_MILLIS = 20_000
LONGEST_WAIT_MILLIS = 1_000


@dataclass(frozen=True)
class EpochOptions:
    """How large an epoch may get, and how often an idle one is worth running."""

    max_records: int = 1_000_000
    """Per slot."""
    max_millis: int = 1_000
    """For reading; what was read is always processed to the end."""
    interval_millis: int = 100
    """The shortest time between the starts of two epochs that are not catching up."""


class WallClock:
    """Processing time of a real job."""

    def now(self) -> int:
        return time.time_ns() // 1_000_000

    def rest(self, millis: int, woken: threading.Event) -> None:
        """Wait, or less if woken."""
        woken.wait(millis / 1000)


class EpochLoop:
    """Runs one job on a cluster, epoch by epoch, until its input ends, it fails or it is stopped."""

    def __init__(
        self,
        plan: Plan,
        deployment: Deployment,
        cluster: Cluster,
        *,
        options: EpochOptions,
        on_results: Mapping[str, Callable[[Any], None]],
        clock: WallClock | None = None,
    ) -> None:
        self._plan = plan
        self._deployment = deployment
        self._cluster = cluster
        self._options = options
        self._on_results = on_results
        self._clock = clock or WallClock()
        self._stop = threading.Event()
        self._idle_epochs = 0
        self.epoch = 0
        self.metrics: dict[int, dict[str, Any]] = {}
        self.watermarks: dict[str, int] = {}
        self._reached: dict[tuple[str, str, int], int] = {}
        self._enumerators = _enumerators(plan)

    def stop(self) -> None:
        """Ask the loop to end; it does so with JobCancelled before the next epoch."""
        self._stop.set()

    def run(self) -> None:
        """From deployment to release. Returns when the input has ended; raises otherwise."""
        try:
            self._deployment.now = self._clock.now()
            self._check(self._cluster.deploy(self._deployment))
            self._epochs()
        except BaseException:
            self._release_quietly()
            raise
        self._check(self._release())

    def _epochs(self) -> None:
        reports: list[Report] = []
        while not (reports and all(report.finished for report in reports)):
            if self._stop.is_set():
                raise JobCancelled("the job was cancelled")
            started = self._clock.now()
            reports = self._cluster.run(self._command(started, reports))
            self.epoch += 1
            self._absorb(reports)
            self._check(reports)
            self._rest(started, reports)

    # --- before an epoch ---
    def _command(self, now: int, reports: list[Report]) -> Command:
        return Command(
            epoch=self.epoch,
            attempt=self._deployment.attempt,
            now=now,
            max_records=self._options.max_records,
            max_millis=self._options.max_millis,
            wait_millis=self._wait_millis(now, reports),
            assignments=self._assignments(),
            alignment=self._alignment(),
        )

    def _wait_millis(self, now: int, reports: list[Report]) -> int:
        """A source that waits for the outside world waits in its slot; longer, the longer nothing has come."""
        if not any(report.waits_for_input for report in reports) or any(report.backlog for report in reports):
            return 0
        longest = min(self._options.interval_millis << min(self._idle_epochs, 10), LONGEST_WAIT_MILLIS)
        due = _next_due(reports)
        return longest if due is None else max(0, min(longest, due - now))

    def _assignments(self) -> dict[int, list[Any]]:
        share = min(self._options.max_records, 20_000)
        return {
            node: enumerator.assign(self._plan.nodes[node].parallelism, share)
            for node, enumerator in self._enumerators.items()
        }

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
    def _absorb(self, reports: list[Report]) -> None:
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
                self._on_results[uid](payload)
        self._idle_epochs = 0 if any(report.results or report.backlog for report in reports) else self._idle_epochs + 1

    def _rest(self, started: int, reports: list[Report]) -> None:
        """Sleep until something is due. A job that catches up, or has ended, does not rest."""
        feeding = any(not enumerator.exhausted for enumerator in self._enumerators.values())
        if feeding or any(r.backlog for r in reports) or all(r.finished for r in reports):
            return
        now = self._clock.now()
        earliest = started + self._options.interval_millis
        if any(report.waits_for_input for report in reports):
            wake = earliest
        else:
            due = _next_due(reports)
            latest = now + KEEP_ALIVE_MILLIS
            wake = latest if due is None else min(max(due, earliest), latest)
        if wake > now:
            self._clock.rest(wake - now, self._stop)

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
        for enumerator in self._enumerators.values():
            enumerator.close()
        return self._cluster.release()

    def _release_quietly(self) -> None:
        """After a failure the first error counts; one on the way out would only hide it."""
        try:
            self._release()
        except Exception:
            return


def job_failed(failure: Failure) -> JobFailed:
    """The exception for a failure, which is also of the failure's own class where Penstock has one."""
    known = getattr(errors, failure.known_as, None) if failure.known_as else None
    kind = errors.job_failed_as(known) if known is not None and known is not PenstockError else JobFailed
    return kind(
        failure.describe(),
        operator=failure.operator,
        uid=failure.uid,
        record=failure.record,
        cause=failure.traceback,
    )


def _next_due(reports: list[Report]) -> int | None:
    return min((report.next_due for report in reports if report.next_due is not None), default=None)


def _enumerators(plan: Plan) -> dict[int, Enumerator]:
    made = {n.id: n.operator.source.enumerator() for n in plan.nodes if isinstance(n.operator, SourceOperator)}
    return {node: enumerator for node, enumerator in made.items() if enumerator is not None}
