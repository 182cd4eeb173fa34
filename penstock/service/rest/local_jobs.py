"""The jobs of one process, as REST sees them: the jobs that a program starts under `penstock run`."""

from __future__ import annotations

import os
import socket
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NoReturn

from penstock.common.secrets import mask_settings
from penstock.engine.checkpoint.store import dispose_savepoint
from penstock.engine.job.job_handle import JobHandle
from penstock.engine.job.job_record import JobRecord
from penstock.engine.observe.profiling import ProfileOrder, Seen
from penstock.engine.observe.stacks import own_threads
from penstock.engine.queryable.rest_form import look_up
from penstock.metrics.process_metrics import free_memory, physical_memory, process_metrics
from penstock.service.reporters.usage import usage_by_place
from penstock.service.rest.job_backend import (
    QUERY_SECONDS,
    LogFile,
    ProgramRecord,
    Refused,
    RunRequest,
    SavepointOrder,
    TaskManagerRecord,
    UnknownJob,
)

FRESH_SECONDS = 0.25
"""Time, in seconds, for which the record of a running job is reused."""
KEPT = 100
"""Number of ended jobs that are remembered."""


class LocalJobs:
    """Implements `Jobs` over job handles. Of an ended job only the last record is kept, not its program."""

    def __init__(self, configuration: Mapping[str, str] | None = None, logs: Sequence[LogFile] = ()) -> None:
        self._configuration = mask_settings(configuration or {})
        self._logs = tuple(logs)
        self._handles: dict[str, JobHandle] = {}
        self._ended: dict[str, JobRecord] = {}
        self._order: list[str] = []
        self._seen: dict[str, tuple[float, JobRecord]] = {}
        """The time and the result of the last look at each running job, by job id."""
        self._lock = threading.Lock()

    def add(self, handle: JobHandle) -> None:
        """Add a job that has started."""
        with self._lock:
            job_id = handle.job_id.hex
            self._ended.pop(job_id, None)
            self._handles[job_id] = handle
            self._order = [*(known for known in self._order if known != job_id), job_id]
        self._tidy()

    def _tidy(self) -> None:
        with self._lock:
            running = list(self._handles.items())
        records = {job_id: handle.record() for job_id, handle in running if handle.status().is_terminal_state()}
        with self._lock:
            for job_id, record in records.items():
                self._ended[job_id] = record
                self._seen.pop(job_id, None)
                self._handles.pop(job_id, None)
            for job_id in [known for known in self._order if known in self._ended][:-KEPT]:
                del self._ended[job_id]
                self._order.remove(job_id)

    # --- lookups ---
    def records(self) -> list[JobRecord]:
        with self._lock:
            known = [(job_id, self._handles.get(job_id)) for job_id in self._order]
            ended = dict(self._ended)
        return [self._look(job_id, handle) if handle is not None else ended[job_id] for job_id, handle in known]

    def _look(self, job_id: str, handle: JobHandle) -> JobRecord:
        """Return a record, and reuse it for the many requests of one page until the job's status changes."""
        now, known = time.monotonic(), self._seen.get(job_id)
        if known is None or now - known[0] > FRESH_SECONDS or known[1].status != handle.view.status.name:
            known = self._seen[job_id] = (now, handle.record())
        return known[1]

    def record(self, job_id: str) -> JobRecord:
        with self._lock:
            handle, ended = self._handles.get(job_id), self._ended.get(job_id)
        if handle is not None:
            return self._look(job_id, handle)
        if ended is None:
            raise UnknownJob(f"Job {job_id} not found.")
        return ended

    def _handle(self, job_id: str) -> JobHandle:
        with self._lock:
            handle = self._handles.get(job_id)
        if handle is None:
            raise Refused(f"job {job_id} has ended: it is {self.record(job_id).status}")
        return handle

    def configuration(self) -> Mapping[str, str]:
        return self._configuration

    def task_managers(self) -> list[TaskManagerRecord]:
        """Return the machines on which running jobs have slots, or this machine if there are no slots."""
        running = [record for record in self.records() if record.ended is None]
        places: dict[str, dict[str, int]] = {}
        usage = usage_by_place(slot for record in running for slot in record.slots)
        for record in running:
            for slot in record.slots:
                jobs = places.setdefault(slot.place or socket.gethostname(), {})
                jobs[record.job_id] = jobs.get(record.job_id, 0) + 1
        machines = places or {socket.gethostname(): {}}
        return [_machine(place, jobs, usage.get(place, {})) for place, jobs in machines.items()]

    def logs(self, of: str | None = None) -> Sequence[LogFile]:
        return self._logs

    def threads(self, of: str | None = None) -> Sequence[tuple[str, str]]:
        if of is None:
            return own_threads()
        with self._lock:
            handles = list(self._handles.values())
        return [*own_threads(), *(stack for handle in handles for stack in handle.stacks(of))]

    # --- orders ---
    def cancel(self, job_id: str) -> None:
        handle = self._handle(job_id)
        threading.Thread(target=handle.cancel, name=f"penstock cancel {job_id[:6]}", daemon=True).start()

    def savepoint(self, job_id: str, order: SavepointOrder) -> str:
        handle = self._handle(job_id)
        path = handle.trigger_savepoint(order.directory, order.stop, order.drain)
        if order.cancel:
            handle.cancel()
        return path

    def checkpoint(self, job_id: str, full: bool) -> int:
        return self._handle(job_id).trigger_checkpoint(full)

    def dispose(self, savepoint: str) -> None:
        dispose_savepoint(savepoint)

    def rescale(self, job_id: str, parallelism: int) -> None:
        self._handle(job_id).rescale(parallelism)

    def query(self, job_id: str, name: str, request: Mapping[str, Any]) -> Mapping[str, Any]:
        return look_up(self._handle(job_id).query, name, request, QUERY_SECONDS)

    # --- watching ---
    def log_levels(self, job_id: str) -> Mapping[str, str]:
        return self._handle(job_id).log_levels()

    def set_log_levels(self, job_id: str, levels: Mapping[str, str]) -> None:
        self._handle(job_id).set_log_levels(levels)

    def profile(self, job_id: str, order: ProfileOrder) -> Sequence[Seen]:
        return self._handle(job_id).profile(order)

    # --- programs: one is running here already ---
    def programs(self) -> Sequence[ProgramRecord]:
        return []

    def upload(self, name: str, file: Path) -> ProgramRecord:
        _needs_server()

    def forget_program(self, program: str) -> None:
        _needs_server()

    def run(self, request: RunRequest) -> str:
        _needs_server()

    def plan(self, request: RunRequest) -> JobRecord:
        _needs_server()


def _needs_server() -> NoReturn:
    raise Refused(
        "only a server accepts programs, and this process runs one program: start a server with penstock server start"
    )


def _machine(place: str, jobs: dict[str, int], usage: Mapping[str, float | int]) -> TaskManagerRecord:
    here = place == socket.gethostname()
    slots = sum(jobs.values())
    cores = os.cpu_count() or 1
    return TaskManagerRecord(
        id=place,
        host=place,
        slots=max(slots, cores) if here else slots,
        free_slots=max(0, cores - slots) if here else 0,
        jobs=jobs,
        cores=cores if here else max(1, slots),
        memory=physical_memory() if here else 0,
        free_memory=free_memory() if here else 0,
        metrics=usage or (process_metrics() if here else {}),
    )
