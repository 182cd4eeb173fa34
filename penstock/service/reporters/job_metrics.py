"""The metrics of a job as a whole, under Flink's names."""

from __future__ import annotations

from typing import Any

from penstock.engine.job.job_record import JobRecord

_STATUSES = ("CREATED", "DEPLOYING", "INITIALIZING", "RUNNING", "RESTARTING", "CANCELLING", "FAILING")
"""Statuses before the end. Clients ask for the time in all of them, although a job never has some of them here."""


def job_metrics(record: JobRecord) -> dict[str, Any]:
    """Return the metrics of a running job, or none for a job that has ended."""
    if record.ended is not None:
        return {}
    restarts = {"numRestarts": record.attempt, "fullRestarts": record.attempt, "numRescales": 0}
    return {**_times(record), **_checkpoints(record), **restarts}


def _times(record: JobRecord) -> dict[str, int]:
    def since(status: str) -> int:
        when = record.time_of(status)
        return max(0, record.taken - when) if record.status == status and when is not None else 0

    return {
        "uptime": since("RUNNING"),
        "downtime": since("RESTARTING"),
        **{f"{status.lower()}Time": since(status) for status in _STATUSES},
        **{f"{status.lower()}TimeTotal": spent for status, spent in _totals(record).items()},
        **{f"{status.lower()}State": int(record.status == status) for status in _STATUSES},
    }


def _totals(record: JobRecord) -> dict[str, int]:
    """Return the time, in milliseconds, that the job spent in each status, as far as its changes are remembered."""
    totals = dict.fromkeys(_STATUSES, 0)
    ends = [*(change.when for change in record.changes[1:]), record.taken]
    for change, end in zip(record.changes, ends, strict=False):
        if change.status.name in totals:
            totals[change.status.name] += max(0, end - change.when)
    return totals


def _checkpoints(record: JobRecord) -> dict[str, Any]:
    checkpoints = record.checkpoints
    last = checkpoints.completed[-1] if checkpoints.completed else None
    restored = checkpoints.restored
    done, failed, going = checkpoints.completed_in_all, checkpoints.failed_in_all, len(checkpoints.in_progress)
    return {
        "lastCheckpointDuration": last.millis if last else -1,
        "lastCheckpointSize": last.written if last else -1,
        "lastCheckpointFullSize": last.size if last else -1,
        "lastCheckpointCompletedTimestamp": last.ended if last and last.ended is not None else -1,
        "lastCheckpointExternalPath": (last.path if last else None) or "n/a",
        "lastCompletedCheckpointId": last.number if last else -1,
        "lastCheckpointRestoreTimestamp": restored.when if restored else -1,
        "numberOfCompletedCheckpoints": done,
        "numberOfFailedCheckpoints": failed,
        "numberOfInProgressCheckpoints": going,
        "totalNumberOfCheckpoints": done + failed + going,
    }
