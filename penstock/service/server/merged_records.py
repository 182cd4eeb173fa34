"""What happened to a job over all its drivers: each driver knows only of itself."""

from __future__ import annotations

from dataclasses import replace

from penstock.common.job import JobStatus
from penstock.engine.job.job_record import JobRecord
from penstock.engine.job.job_view import FailureView, StatusChange

MOST_FAILURES = 100


class StatusHistory:
    """The status changes of one job before the driver that speaks was started."""

    def __init__(self, *changes: StatusChange) -> None:
        self._changes = list(changes)

    @property
    def changes(self) -> tuple[StatusChange, ...]:
        return tuple(self._changes)

    def record_interruption(self, record: JobRecord | None, now: int) -> None:
        """The driver that gave this record, if it gave one, is gone, and another one is started."""
        since = self._changes[-1].when if self._changes else 0
        told = record.changes if record is not None else ()
        self._changes += [change for change in told if change.when >= since]
        if self._changes and self._changes[-1].status is not JobStatus.RESTARTING:
            self._changes.append(StatusChange(JobStatus.RESTARTING, now))

    def with_earlier_changes(self, record: JobRecord) -> JobRecord:
        """A record with everything that came before it."""
        if not record.changes or record.changes[0] in self._changes:
            return record
        earlier = [change for change in self._changes if change.when <= record.changes[0].when]
        return replace(record, changes=(*earlier, *record.changes))


def with_failures(record: JobRecord, failures: list[FailureView]) -> JobRecord:
    """A record with these failures beside its own, in order."""
    known = {(failure.when, failure.message): failure for failure in (*failures, *record.failures)}
    return replace(record, failures=tuple(sorted(known.values(), key=lambda one: one.when))[-MOST_FAILURES:])


def with_status(record: JobRecord, status: JobStatus, now: int) -> JobRecord:
    """A record of a job that has come to another status."""
    return replace(record, status=status.name, changes=(*record.changes, StatusChange(status, now)), taken=now)
