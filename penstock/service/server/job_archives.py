"""Archives of ended jobs: one file per job in the form of Flink's archives, with the job's record beside the answers.

    <folder>/<job id>    {"archive": [{"path": "/jobs/overview", "json": "…"}, …]}

Flink's history server can read the answers that an archive contains. Penstock's server reads the record alone.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from penstock.base.storage import Storage
from penstock.engine.checkpoint.checkpoint_history import CheckpointsView
from penstock.engine.job.job_record import JobRecord, Settings, as_json, from_json
from penstock.errors import PenstockError
from penstock.service.rest.answers import checkpoints, jobs, vertices
from penstock.service.rest.answers import exception_answers as failures

_ID = re.compile(r"[0-9a-f]{32}")


class Unreadable(PenstockError):
    """A file is not an archive of a job, or was not written by Penstock."""


class Archive:
    """A folder with archives of jobs."""

    def __init__(self, url: str) -> None:
        self._storage = Storage(url)

    def keep(self, record: JobRecord) -> None:
        """Store a job that has ended. Storing it again does no harm."""
        draft = f"{record.job_id}.{os.urandom(6).hex()}.draft"
        self._storage.write(draft, [json.dumps(archive_content(record)).encode()])
        self._storage.rename(draft, record.job_id)

    def job_ids(self) -> list[str]:
        """Return the ids of all archived jobs."""
        return [name for name in self._storage.names() if _ID.fullmatch(name)]

    def read(self, job_id: str) -> JobRecord:
        """Return the record of an archived job. Raise FileNotFoundError, StorageError or Unreadable."""
        data = self._storage.read(job_id)
        try:
            found = {one["path"]: one["json"] for one in json.loads(data)["archive"]}
            return from_json(JobRecord, json.loads(found[_record_path(job_id)]))
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            raise Unreadable(
                f"'{self._storage.url(job_id)}' does not hold an archived job of Penstock: "
                f"{type(error).__name__}: {error}"
            ) from None

    def delete(self, job_id: str) -> None:
        """Delete the archive of a job."""
        self._storage.delete(job_id)


def _record_path(job_id: str) -> str:
    return f"/jobs/{job_id}/record"


def archive_content(record: JobRecord) -> dict[str, Any]:
    """Return the content of a job's archive."""
    return {"archive": [{"path": path, "json": json.dumps(said)} for path, said in _answers(record)]}


def _answers(record: JobRecord) -> Iterator[tuple[str, Any]]:
    job = f"/jobs/{record.job_id}"
    yield "/jobs/overview", jobs.jobs_overview([record])
    yield job, jobs.job_details(record)
    yield f"{job}/plan", {"plan": jobs.plan(record)}
    yield f"{job}/config", jobs.job_config(record)
    yield f"{job}/accumulators", jobs.accumulators(record)
    yield f"{job}/exceptions", failures.exceptions(record)
    if record.settings.checkpoints is not None:
        yield f"{job}/checkpoints", checkpoints.statistics(record)
        yield f"{job}/checkpoints/config", checkpoints.config(record)
    for vertex in record.vertices:
        path = f"{job}/vertices/{vertex.id}"
        yield path, vertices.vertex_details(record, vertex)
        yield f"{path}/subtasktimes", vertices.subtask_times(record, vertex)
        yield f"{path}/taskmanagers", vertices.hosts(record, vertex)
        yield f"{path}/accumulators", vertices.vertex_accumulators(record, vertex)
        yield f"{path}/subtasks/accumulators", vertices.subtask_accumulators(record, vertex)
    yield _record_path(record.job_id), as_json(record)


def outline(record: JobRecord) -> JobRecord:
    """Return the part of an ended job's record that lists show. A server holds this part of each job in memory."""
    slots = tuple(replace(slot, watermarks={}, metrics={}, operators={}, usage={}) for slot in record.slots)
    return replace(
        record,
        slots=slots,
        checkpoints=CheckpointsView(),
        failures=tuple(replace(last, traceback="", record="") for last in record.failures[-1:]),
        accumulators={},
        settings=Settings(parallelism=record.settings.parallelism, master=record.settings.master),
        described={},
        usage={},
        queryable=(),
    )
