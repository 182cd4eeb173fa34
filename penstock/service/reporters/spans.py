"""Spans: named parts of a job's run with a beginning and an end. They are found by comparing records of the job."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from penstock.engine.checkpoint.checkpoint_history import CheckpointRecord
from penstock.engine.job.job_record import JobRecord


@dataclass(frozen=True)
class Span:
    """A named part of a job's run. Beginning and end are in milliseconds since 1970."""

    name: str
    scope: str
    began: int
    ended: int
    attributes: Mapping[str, str | int | float | bool]


CHECKPOINTS = "org.apache.flink.runtime.checkpoint.CheckpointStatsTracker"
"""Flink's scope of both kinds of spans, so that tools made for Flink find them."""


class SpanFinder:
    """Finds new spans of one job, and remembers the ones that were found before."""

    def __init__(self) -> None:
        self._told: set[tuple[str, int]] = set()

    def new(self, record: JobRecord) -> list[Span]:
        """Return the spans that have ended since the last call."""
        found = [*_checkpoints(record), *_starts(record)]
        new = [span for key, span in found if key not in self._told]
        # A record holds only the newest hundred checkpoints. Spans that it no longer holds can be forgotten.
        self._told = {key for key, _ in found}
        return new


Found = tuple[tuple[str, int], Span]


def _checkpoints(record: JobRecord) -> list[Found]:
    ended = [one for one in (*record.checkpoints.completed, *record.checkpoints.failed) if one.ended is not None]
    ended.sort(key=lambda one: one.ended or 0)
    return [(("checkpoint", one.number), _checkpoint(record, one)) for one in ended]


def _checkpoint(record: JobRecord, one: CheckpointRecord) -> Span:
    return Span(
        "Checkpoint",
        CHECKPOINTS,
        one.started,
        one.ended or one.started,
        {
            **_job(record),
            "checkpointId": one.number,
            "checkpointStatus": one.status.name,
            "checkpointType": "Savepoint" if one.savepoint else "Checkpoint",
            "fullSize": one.size,
            "checkpointedSize": one.written,
            "maxSyncDurationMs": one.sync_millis,
            "maxAsyncDurationMs": one.async_millis,
            "isUnaligned": False,
            **({"failure": one.failure} if one.failure else {}),
        },
    )


def _starts(record: JobRecord) -> list[Found]:
    """Return the span of the last start: from the failure, or the job's beginning, until all slots were ready."""
    if record.deployed is None:
        return []
    failure = record.failures[-1] if record.attempt and record.failures else None
    restored = record.checkpoints.restored
    span = Span(
        "JobInitialization",
        CHECKPOINTS,
        min(record.started if failure is None else failure.when, record.deployed),
        record.deployed,
        {
            **_job(record),
            "initializationStatus": "COMPLETED",
            "attempt": record.attempt,
            **({"checkpointId": restored.number} if restored is not None else {}),
            **({"failure": f"{failure.kind}: {failure.message}"[:1000]} if failure is not None else {}),
        },
    )
    return [(("start", record.attempt), span)]


def _job(record: JobRecord) -> dict[str, str]:
    return {"jobId": record.job_id, "jobName": record.name}
