"""The history of a job over all its drivers. Each driver knows only its own part."""

from __future__ import annotations

from dataclasses import replace

from penstock.common.job import JobStatus
from penstock.engine.job.job_record import JobRecord
from penstock.engine.job.job_view import FailureView, StatusChange

MOST_FAILURES = 100


class StatusHistory:
    """The status changes of one job before its present driver started."""

    def __init__(self, *changes: StatusChange) -> None:
        self._changes = list(changes)

    @property
    def changes(self) -> tuple[StatusChange, ...]:
        """The status changes in order of time."""
        return tuple(self._changes)

    def record_interruption(self, record: JobRecord | None, now: int) -> None:
        """Record the end of a driver that will be replaced, with its last record, if there is one."""
        since = self._changes[-1].when if self._changes else 0
        told = record.changes if record is not None else ()
        self._changes += [change for change in told if change.when >= since]
        if self._changes and self._changes[-1].status is not JobStatus.RESTARTING:
            self._changes.append(StatusChange(JobStatus.RESTARTING, now))

    def with_earlier_changes(self, record: JobRecord) -> JobRecord:
        """Return a record with the status changes of earlier drivers before its own."""
        if not record.changes or record.changes[0] in self._changes:
            return record
        earlier = [change for change in self._changes if change.when <= record.changes[0].when]
        return replace(record, changes=(*earlier, *record.changes))


def with_failures(record: JobRecord, failures: list[FailureView]) -> JobRecord:
    """Return a record with these failures and its own, in order of time."""
    known = {(failure.when, failure.message): failure for failure in (*failures, *record.failures)}
    return replace(record, failures=tuple(sorted(known.values(), key=lambda one: one.when))[-MOST_FAILURES:])


def with_status(record: JobRecord, status: JobStatus, now: int) -> JobRecord:
    """Return a record with another status."""
    return replace(record, status=status.name, changes=(*record.changes, StatusChange(status, now)), taken=now)
