"""Answers about machines: the service as a whole, its task managers, the answering process, and log files."""

from __future__ import annotations

import platform
import time
from collections.abc import Mapping, Sequence

from penstock import __version__
from penstock.common.secrets import mask_settings
from penstock.engine.job.job_record import JobRecord
from penstock.service.options.rest_options import RestSettings
from penstock.service.rest.answers.flink_numbers import Json
from penstock.service.rest.job_backend import LogFile, TaskManagerRecord

FLINK_VERSION = "2.3.0"
"""The version of Flink whose REST interface Penstock implements."""
REVISION = f"penstock-{__version__}"
_MEBIBYTE = 1 << 20


# --- the service ---
def overview(records: Sequence[JobRecord], machines: Sequence[TaskManagerRecord]) -> Json:
    """Return the numbers of task managers, slots and jobs."""
    states = [record.status for record in records]
    return {
        "taskmanagers": len(machines),
        "slots-total": sum(machine.slots for machine in machines),
        "slots-available": sum(min(machine.free_slots, machine.slots) for machine in machines),
        "jobs-running": running(records),
        "jobs-finished": states.count("FINISHED"),
        "jobs-cancelled": states.count("CANCELED"),
        "jobs-failed": states.count("FAILED"),
        "flink-version": FLINK_VERSION,
        "flink-commit": REVISION,
        "penstock-version": __version__,
    }


def running(records: Sequence[JobRecord]) -> int:
    """Return the number of jobs that have not ended and are not suspended."""
    return sum(record.ended is None and record.status != "SUSPENDED" for record in records)


def web_config(settings: RestSettings) -> Json:
    """Return the configuration of a dashboard."""
    local = time.localtime()
    return {
        "refresh-interval": settings.refresh_millis,
        "timezone-name": local.tm_zone or "UTC",
        "timezone-offset": (local.tm_gmtoff or 0) * 1000,
        "flink-version": FLINK_VERSION,
        "flink-revision": REVISION,
        "features": {
            "web-submit": settings.submit,
            "web-cancel": settings.cancel,
            "web-rescale": False,
            "web-history": False,
        },
    }


def key_values(configuration: Mapping[str, str]) -> list[Json]:
    """Return options and their values, without secrets."""
    return [{"key": name, "value": str(value)} for name, value in sorted(mask_settings(configuration).items()) if name]


def environment() -> Json:
    """Return the Python version and the machine, under Flink's names for a Java virtual machine."""
    version = f"{platform.python_implementation()} {platform.python_version()}"
    return {"jvm": {"version": version, "arch": platform.machine(), "options": []}, "classpath": []}


# --- task managers ---
def task_managers(machines: Sequence[TaskManagerRecord]) -> Json:
    """Return all task managers as lines of a list."""
    return {"taskmanagers": [_machine(machine) for machine in machines]}


def task_manager(machine: TaskManagerRecord) -> Json:
    """Return a task manager and its allocated slots."""
    allocated = [
        {"jobId": job, "resource": _resource(1, machine.memory // max(1, machine.slots))}
        for job, slots in machine.jobs.items()
        for _ in range(slots)
    ]
    return {**_machine(machine), "allocatedSlots": allocated, "metrics": {"garbageCollectors": []}}


def _machine(machine: TaskManagerRecord) -> Json:
    return {
        "id": machine.id,
        "path": f"penstock://{machine.host or 'localhost'}/{machine.id}",
        "dataPort": -1,
        "jmxPort": -1,
        "timeSinceLastHeartbeat": 0,
        "slotsNumber": machine.slots,
        "freeSlots": machine.free_slots,
        "totalResource": _resource(machine.slots, machine.memory),
        "freeResource": _resource(machine.free_slots, machine.free_memory),
        "hardware": {
            "cpuCores": max(1, machine.cores),
            "physicalMemory": machine.memory,
            "freeMemory": machine.free_memory,
            "managedMemory": 0,
        },
        "memoryConfiguration": {},
    }


def _resource(slots: int, memory: int) -> Json:
    return {
        "cpuCores": float(slots),
        "taskHeapMemory": memory // _MEBIBYTE,
        "taskOffHeapMemory": 0,
        "managedMemory": 0,
        "networkMemory": 0,
        "extendedResources": {},
    }


# --- logs ---
def threads(stacks: Sequence[tuple[str, str]]) -> Json:
    """Return the names and stacks of threads."""
    return {"threadInfos": [{"threadName": name, "stringifiedThreadInfo": text} for name, text in stacks]}


def log_files(files: Sequence[LogFile]) -> Json:
    """Return names, sizes and times of the files that still exist."""
    rows = []
    for file in files:
        try:
            found = file.path.stat()
        except OSError:
            continue
        rows.append({"name": file.name, "size": found.st_size, "mtime": int(found.st_mtime * 1000)})
    return {"logs": rows}
