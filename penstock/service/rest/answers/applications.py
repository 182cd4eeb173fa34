"""Applications, which Flink's dashboard lists first. In Penstock every job is one application with the same id."""

from __future__ import annotations

from collections.abc import Sequence

from penstock.engine.job.job_record import JobRecord
from penstock.service.rest.answers.flink_numbers import Json
from penstock.service.rest.answers.jobs import job_row, times

STATES = ("CREATED", "RUNNING", "FAILING", "FAILED", "CANCELING", "CANCELED", "FINISHED")
_OF_A_JOB = {
    "INITIALIZING": "CREATED",
    "CREATED": "CREATED",
    "RESTARTING": "RUNNING",
    "SUSPENDED": "RUNNING",
    "RECONCILING": "RUNNING",
    "CANCELLING": "CANCELING",
}
"""The status of an application by the status of its job, where the two differ."""


def applications(records: Sequence[JobRecord]) -> Json:
    """Return all applications as lines of a list."""
    return {"applications": [_row(record) for record in records]}


def application(record: JobRecord) -> Json:
    """Return the details of an application."""
    return {**_head(record), "timestamps": _timestamps(record), "jobs": [job_row(record)]}


def _row(record: JobRecord) -> Json:
    return {**_head(record), "jobs": {record.status: 1}}


def _head(record: JobRecord) -> Json:
    return {
        "id": record.job_id,
        "name": f"SingleJobApplication({record.name})",
        "status": _OF_A_JOB.get(record.status, record.status),
        **times(record),
    }


def _timestamps(record: JobRecord) -> Json:
    moments = dict.fromkeys(STATES, 0) | {"CREATED": record.started}
    for change in record.changes:
        moments[_OF_A_JOB.get(change.status.name, change.status.name)] = change.when
    return moments
