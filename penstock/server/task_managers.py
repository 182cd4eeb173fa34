"""Task managers, as Flink calls what hosts slots: the places where the slots of running jobs are."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from penstock.job.record import JobRecord
from penstock.rest.jobs import TaskManagerRecord

FREE = "-free"
"""How the id of the task manager ends that stands for the cores of this machine that nobody uses."""
_GONE = ("FINISHED", "CANCELED", "FAILED", "SUSPENDED", "RESTARTING", "CREATED")


def task_managers(records: Sequence[JobRecord], host: str, cores: int) -> list[TaskManagerRecord]:
    """One for each job on a local master, one for each place of a job on a cluster, and one for cores that are free."""
    found = [manager for record in records if record.status not in _GONE for manager in _of(record, host)]
    used = sum(manager.slots for manager in found if manager.host == host)
    if used < cores:
        found.append(TaskManagerRecord(f"{host}{FREE}", host, cores - used, cores - used, cores=cores))
    return found


def _of(record: JobRecord, host: str) -> list[TaskManagerRecord]:
    local = record.settings.master.startswith("local") or not record.settings.master
    places = Counter(host if local else slot.place or host for slot in record.slots)
    if not places and record.vertices:
        places[host] = max(vertex.parallelism for vertex in record.vertices)
    return [
        TaskManagerRecord(f"{record.job_id}-{number}", place, slots, 0, {record.job_id: slots}, slots)
        for number, (place, slots) in enumerate(sorted(places.items()))
    ]
