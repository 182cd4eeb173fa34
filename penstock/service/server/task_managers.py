"""Task managers: Flink's name for the places that host the slots of running jobs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from penstock.engine.job.job_record import JobRecord
from penstock.service.reporters.usage import usage_by_place
from penstock.service.rest.job_backend import TaskManagerRecord

FREE = "-free"
"""The end of the id of the task manager that represents the free cores of this machine."""
_GONE = ("FINISHED", "CANCELED", "FAILED", "SUSPENDED", "RESTARTING", "CREATED")


def task_managers(records: Sequence[JobRecord], host: str, cores: int) -> list[TaskManagerRecord]:
    """Return the task managers of running jobs, and one for the free cores of this machine.

    A job on a local master has one task manager. A job on a cluster has one for each executor.
    """
    found = [manager for record in records if record.status not in _GONE for manager in _of(record, host)]
    used = sum(manager.slots for manager in found if manager.host == host)
    if used < cores:
        found.append(TaskManagerRecord(f"{host}{FREE}", host, cores - used, cores - used, cores=cores))
    return found


def _of(record: JobRecord, host: str) -> list[TaskManagerRecord]:
    places = Counter(slot.place for slot in with_places(record).slots)
    usage = usage_by_place(with_places(record).slots)
    if not places and record.vertices:
        places[_own(record)] = max(vertex.parallelism for vertex in record.vertices)
    return [
        TaskManagerRecord(
            place,
            host if place == _own(record) else place.rpartition(":")[0],
            slots,
            0,
            {record.job_id: slots},
            slots,
            metrics=usage.get(place, {}),
        )
        for place, slots in sorted(places.items())
    ]


def with_places(record: JobRecord) -> JobRecord:
    """Return the record of a job, in which the place of each slot is the id of its task manager.

    On a cluster the task manager is an executor. On a local master it is the driver of the job.
    """
    if not _is_local(record):
        return record
    return replace(record, slots=tuple(replace(slot, place=_own(record)) for slot in record.slots))


def _own(record: JobRecord) -> str:
    return f"{record.job_id}-0"


def _is_local(record: JobRecord) -> bool:
    master = record.settings.master
    return not master or (master.startswith("local") and not master.startswith("local-cluster"))
