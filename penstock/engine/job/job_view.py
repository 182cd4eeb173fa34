"""A view of a job at one moment, from outside its driver. Views never change."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from penstock.common.job import JobStatus
from penstock.engine.checkpoint.checkpoint_history import CheckpointsView
from penstock.engine.job.reports import readings
from penstock.engine.messages.commands_and_reports import Report
from penstock.errors import JobFailed
from penstock.graph.plan import Plan

REMEMBERED_FAILURES = 100
REMEMBERED_CHANGES = 1000


@dataclass(frozen=True)
class StatusChange:
    """The time at which a job entered a status, in milliseconds since 1970."""

    status: JobStatus
    when: int


@dataclass(frozen=True)
class FailureView:
    """The failure of an attempt."""

    when: int
    attempt: int
    kind: str
    """The name of the error's class."""
    message: str
    operator: str = ""
    uid: str = ""
    slot: int | None = None
    record: str = ""
    traceback: str = ""

    @classmethod
    def of(cls, error: Exception, when: int, attempt: int) -> FailureView:
        """Return the view of an error that ended an attempt at a time."""
        kind, message = type(error).__name__, str(error)
        if not isinstance(error, JobFailed):
            return cls(when, attempt, kind, message)
        return cls(when, attempt, kind, message, error.operator, error.uid, error.slot, error.record, error.cause)


class JobHistory:
    """The newest status changes, failures and reports of a job. They outlast its attempts."""

    def __init__(self) -> None:
        self.reports: tuple[Report, ...] = ()
        self.changes: tuple[StatusChange, ...] = ()
        self.failures: tuple[FailureView, ...] = ()

    def enter(self, status: JobStatus, now: int) -> None:
        """Record that the job entered a status, unless it has that status already."""
        if not self.changes or self.changes[-1].status is not status:
            self.changes = (*self.changes[-(REMEMBERED_CHANGES - 1) :], StatusChange(status, now))

    def add_failure(self, error: Exception, now: int, attempt: int) -> None:
        """Record the error that ended an attempt."""
        self.failures = (*self.failures[-(REMEMBERED_FAILURES - 1) :], FailureView.of(error, now, attempt))


@dataclass(frozen=True)
class SubtaskView:
    """One subtask of an operator after the last epoch."""

    slot: int
    watermark: int | None
    metrics: Mapping[str, Any]
    """Metrics by name inside the operator's group."""


@dataclass(frozen=True)
class OperatorView:
    """One operator after the last epoch."""

    uid: str
    name: str
    parallelism: int
    subtasks: tuple[SubtaskView, ...]

    @property
    def watermark(self) -> int | None:
        """The watermark of the subtask that is furthest behind."""
        return min((s.watermark for s in self.subtasks if s.watermark is not None), default=None)


@dataclass(frozen=True)
class JobView:
    """Everything that can be reported about a job. The figures of operators are computed on request."""

    job_id: str
    plan: Plan | None
    status: JobStatus
    changes: tuple[StatusChange, ...]
    attempt: int = 0
    epoch: int = 0
    """Number of epochs that have begun."""
    reports: tuple[Report, ...] = ()
    """Reports of the slots at the end of the last epoch, in order of slots."""
    checkpoints: CheckpointsView = field(default_factory=CheckpointsView)
    failures: tuple[FailureView, ...] = ()
    deployed: int | None = None
    """Time since which the slots of this attempt are ready; None while the job waits for them."""
    restart_at: int | None = None
    """Time at which the next attempt starts; None unless the job waits for it."""
    has_run: bool = False
    """Whether an attempt has had all its slots."""

    @cached_property
    def watermarks(self) -> Mapping[str, int]:
        """Watermark of the subtask that is furthest behind, by operator uid."""
        lowest: dict[str, int] = {}
        for report in self.reports:
            for uid, watermark in report.watermarks.items():
                lowest[uid] = min(watermark, lowest.get(uid, watermark))
        return lowest

    @cached_property
    def metrics(self) -> Mapping[int, Mapping[str, Any]]:
        """The metrics of every slot, under their full names."""
        return {report.slot: readings(report) for report in self.reports}

    @cached_property
    def operators(self) -> tuple[OperatorView, ...]:
        """Every operator of the plan, upstream first."""
        if self.plan is None:
            return ()
        return tuple(
            OperatorView(node.uid, node.name, node.parallelism, self._subtasks(node.uid, node.parallelism))
            for node in self.plan.nodes
        )

    def _subtasks(self, uid: str, parallelism: int) -> tuple[SubtaskView, ...]:
        reports = [report for report in self.reports if report.slot < parallelism]
        return tuple(
            SubtaskView(r.slot, r.watermarks.get(uid), _metrics_of(uid, self.metrics[r.slot])) for r in reports
        )

    def time_of(self, status: JobStatus) -> int | None:
        """Return the time at which the job last entered this status; None if it never did."""
        return next((change.when for change in reversed(self.changes) if change.status is status), None)


def _metrics_of(uid: str, metrics: Mapping[str, Any]) -> Mapping[str, Any]:
    prefix = uid + "."
    return {name.removeprefix(prefix): value for name, value in metrics.items() if name.startswith(prefix)}
