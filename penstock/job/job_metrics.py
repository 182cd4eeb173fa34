"""The metrics of a job as a whole, under Flink's names."""

from __future__ import annotations

from typing import Any

from penstock.job.record import JobRecord

_STATUS_TIMES = ("CREATED", "DEPLOYING", "INITIALIZING")
"""States that Flink's clients ask the time of, and in which a job here is never seen for long."""


def job_metrics(record: JobRecord) -> dict[str, Any]:
    """The metrics of a job that runs; one that has ended has none."""
    if record.ended is not None:
        return {}
    restarts = {"numRestarts": record.attempt, "fullRestarts": record.attempt, "numRescales": 0}
    return {**_times(record), **_checkpoints(record), **restarts}


def _times(record: JobRecord) -> dict[str, int]:
    def since(status: str) -> int:
        when = record.entered(status)
        return max(0, record.taken - when) if record.status == status and when is not None else 0

    up = since("RUNNING")
    return {
        "uptime": up,
        "runningTime": up,
        "downtime": since("RESTARTING"),
        "restartingTime": since("RESTARTING"),
        "cancellingTime": since("CANCELLING"),
        "failingTime": since("FAILING"),
        **{f"{state.lower()}Time": 0 for state in _STATUS_TIMES},
    }


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
