"""All jobs of a server, as REST sees them. Orders of clients become orders to drivers and entries in the register."""

from __future__ import annotations

import os
import socket
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
from uuid import uuid4

from penstock.common.job import JobID
from penstock.common.secrets import mask_settings
from penstock.engine.checkpoint.store import dispose_savepoint
from penstock.engine.job.job_handle import ANSWER_SECONDS
from penstock.engine.job.job_record import JobRecord, as_json, from_json
from penstock.engine.observe.profiling import ProfileOrder, Seen
from penstock.engine.observe.stacks import own_threads
from penstock.errors import AlreadyThere, NotFound, PenstockError, ProgramError, UnsupportedOperation
from penstock.service.options.server_options import REQUIREMENTS, ServerSettings
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
from penstock.service.server.control import DriverUnreachable
from penstock.service.server.drivers import Drivers
from penstock.service.server.job_history import History
from penstock.service.server.plan_process import plan_program
from penstock.service.server.program_files import check_name, check_program, entries, requirements_of
from penstock.service.server.register import Register
from penstock.service.server.specs import How, Outcome, Revision, Spec
from penstock.service.server.supervised_program import SupervisedProgram, error_of
from penstock.service.server.supervisor import Supervisor
from penstock.service.server.task_managers import FREE, task_managers, with_places

_CLAIMS = {"CLAIM": True, "NO_CLAIM": False, "LEGACY": False}
POLL_SECONDS = 0.05
THREAD_SECONDS = 10.0


class ServerJobs:
    """Implements `penstock.service.rest.job_backend.Jobs` for the server that leads."""

    def __init__(
        self,
        settings: ServerSettings,
        register: Register,
        supervisor: Supervisor,
        drivers: Drivers,
        history: History,
    ) -> None:
        self._settings = settings
        self._register = register
        self._supervisor = supervisor
        self._drivers = drivers
        self._history = history

    # --- lookups ---
    def records(self) -> Sequence[JobRecord]:
        """Return the records of all jobs, and only outlines of ended jobs."""
        found = {record.job_id: record for record in (*self._history.records(), *self._current_records())}
        return sorted(map(with_places, found.values()), key=lambda record: record.started)

    def _current_records(self) -> list[JobRecord]:
        return [record for job in self._supervisor.all() for record in job.records()]

    def record(self, job_id: str) -> JobRecord:
        if self._supervisor.find(job_id) is None:
            archived = self._history.record(job_id)
            if archived is not None:
                return with_places(archived)
        job, ordinal = self._find(job_id)
        return with_places(job.record(ordinal))

    def _find(self, job_id: str) -> tuple[SupervisedProgram, int]:
        found = self._supervisor.find(job_id)
        if found is None:
            raise UnknownJob(f"there is no job {job_id}")
        return found

    def configuration(self) -> Mapping[str, str]:
        return mask_settings(self._settings.configuration)

    def task_managers(self) -> Sequence[TaskManagerRecord]:
        return task_managers(self._current_records(), socket.gethostname(), os.cpu_count() or 1)

    def logs(self, of: str | None = None) -> Sequence[LogFile]:
        folder, names = self._log_folder(of)
        found = [path for name in names for path in sorted(folder.glob(f"{name}*")) if path.is_file()]
        if of is not None and not found and self._supervisor.find(of) is None:
            raise UnknownJob(f"there is no job or task manager {of}")
        return [LogFile(path.name, path) for path in found]

    def _log_folder(self, of: str | None) -> tuple[Path, tuple[str, ...]]:
        if of is None or of.endswith(FREE):
            return self._settings.data, ("server.log", "server.out")
        job = next((record.job_id for record in self._current_records() if _hosts(of, record)), of)
        found = self._supervisor.find(job)
        return self._drivers.folder(found[0].job_id if found else of), ("driver.log", "driver.out")

    def threads(self, of: str | None = None) -> Sequence[tuple[str, str]]:
        """Return the threads of a task manager: those of its job's driver and of its slots."""
        if of is None or of.endswith(FREE):
            return own_threads()
        record = next((record for record in self._current_records() if _hosts(of, with_places(record))), None)
        if record is None:
            raise UnknownJob(f"there is no task manager {of}")
        job, ordinal = self._running(record.job_id, "tell where its threads are")
        place = None if of.startswith(record.job_id) else of
        return [(name, text) for name, text in job.ask("threads", ordinal, THREAD_SECONDS, place=place)]

    # --- orders ---
    def cancel(self, job_id: str) -> None:
        job, ordinal = self._running(job_id, "be cancelled")
        self._supervisor.cancel(job, ordinal)

    def savepoint(self, job_id: str, order: SavepointOrder) -> str:
        job, ordinal = self._ready(job_id, "take a savepoint")
        path: str = job.ask("savepoint", ordinal, directory=order.directory, stop=order.stop, drain=order.drain)
        if order.cancel and not order.stop:
            self._supervisor.cancel(job, ordinal)
        return path

    def checkpoint(self, job_id: str, full: bool) -> int:
        job, ordinal = self._ready(job_id, "take a checkpoint")
        return int(job.ask("checkpoint", ordinal, full=full))

    def dispose(self, savepoint: str) -> None:
        dispose_savepoint(savepoint)

    def query(self, job_id: str, name: str, request: Mapping[str, Any]) -> Mapping[str, Any]:
        job, ordinal = self._running(job_id, "be queried")
        answer: Mapping[str, Any] = job.ask("query", ordinal, 2 * QUERY_SECONDS, name=name, request=dict(request))
        return answer

    # --- watching ---
    def log_levels(self, job_id: str) -> Mapping[str, str]:
        job, ordinal = self._running(job_id, "be asked for its log levels")
        levels: Mapping[str, str] = job.ask("log-levels", ordinal, levels={})
        return levels

    def set_log_levels(self, job_id: str, levels: Mapping[str, str]) -> None:
        job, ordinal = self._running(job_id, "be given log levels")
        job.ask("log-levels", ordinal, levels=dict(levels))

    def profile(self, job_id: str, order: ProfileOrder) -> Sequence[Seen]:
        job, ordinal = self._running(job_id, "be profiled")
        seen = job.ask("profile", ordinal, order.seconds + 2 * ANSWER_SECONDS, order=as_json(order))
        return [from_json(Seen, one) for one in seen]

    def _running(self, job_id: str, what: str) -> tuple[SupervisedProgram, int]:
        if self._supervisor.find(job_id) is None and (archived := self._history.record(job_id)) is not None:
            raise Refused(f"job {job_id} cannot {what}: it is {archived.status}")
        job, ordinal = self._find(job_id)
        if job.is_over(ordinal):
            raise Refused(f"job {job_id} cannot {what}: it is {job.record(ordinal).status}")
        return job, ordinal

    def _ready(self, job_id: str, what: str, deployed: bool = False) -> tuple[SupervisedProgram, int]:
        """Return a running job. Wait for a job that is starting, and raise Refused after the submission timeout."""
        until = time.monotonic() + self._settings.submit_wait / 1000
        while True:
            job, ordinal = self._running(job_id, what)
            job.look(POLL_SECONDS)
            if job.is_live(ordinal) and (job.runs or not deployed):
                return job, ordinal
            if time.monotonic() > until:
                raise Refused(f"job {job_id} cannot {what} yet: it is {job.record(ordinal).status}")
            time.sleep(POLL_SECONDS)

    # --- rescaling ---
    def rescale(self, job_id: str, parallelism: int) -> None:
        job, ordinal = self._ready(job_id, "be rescaled", deployed=True)
        record = job.record(ordinal)
        _check_rescaling(record, parallelism)
        before = job.revision.number
        try:
            job.ask("rescale", ordinal, parallelism=parallelism)
        except DriverUnreachable:
            # The driver may have ended before its answer arrived. A new revision follows in this case.
            if not self._is_rescaled(job, before):
                raise
        else:
            self._is_rescaled(job, before)
        self._supervisor.wake()
        self._await_rescaled(job, ordinal, before)

    def _is_rescaled(self, job: SupervisedProgram, before: int) -> bool:
        newest = job.entry.revision()
        if newest.driver == job.number and newest.number > job.revision.number:
            job.revision = newest  # the driver has done it without a new driver
        if job.revision.number > before:
            return True
        outcome = job.entry.outcome(job.number)
        return outcome is not None and outcome.how is How.RESCALED

    def _await_rescaled(self, job: SupervisedProgram, ordinal: int, before: int) -> None:
        """Wait until the new revision runs. Raise Refused if the job ends or goes back to the old parallelism."""
        until = time.monotonic() + self._settings.rescale_wait / 1000
        while True:
            if time.monotonic() > until and job.revision.number == before + 1 and not job.runs:
                until = float("inf")
                self._give_up(job)
            time.sleep(POLL_SECONDS)
            job.look(POLL_SECONDS)
            if job.ended_at is not None and job.revision.number == before + 1 and not job.runs:
                raise Refused(f"job {job.id_of(ordinal)} has ended while it was rescaled: {job.record(ordinal).status}")
            if job.revision.number > before + 1:
                failed = job.record(ordinal).failures
                why = failed[-1].message if failed else "its driver could not start it"
                raise Refused(f"the job could not be rescaled and continues with its earlier parallelism: {why}")
            if job.revision.number == before + 1 and (job.runs or job.ended_at is not None):
                return

    def _give_up(self, job: SupervisedProgram) -> None:
        """End a driver whose job does not run in time, with the outcome FAILED, so that the job goes back."""
        why = f"it was not running after {self._settings.rescale_wait} ms"
        job.entry.end(job.number, Outcome(How.FAILED, int(time.time() * 1000), "Timeout", why, deployed=False))
        driver = job.driver
        if driver is not None:
            driver.kill()

    # --- programs ---
    def programs(self) -> Sequence[ProgramRecord]:
        return [self._program_record(program_id, name) for program_id, name in self._register.programs()]

    def _program_record(self, program_id: str, name: str) -> ProgramRecord:
        # The time of the upload is part of the id, because not every storage knows it.
        return ProgramRecord(program_id, name, int(program_id.partition("-")[0], 16), self._entries(program_id, name))

    def _entries(self, program_id: str, name: str) -> tuple[str, ...]:
        if name.endswith(".py"):
            return (name.removesuffix(".py"),)
        found = self._register.program(program_id)
        if found is None:
            return ()
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / name
            path.write_bytes(found[1])
            return entries(path)

    def upload(self, name: str, file: Path) -> ProgramRecord:
        check_name(name)
        program_id = f"{int(time.time() * 1000):x}-{uuid4().hex}_{name}"
        self._register.add_program(program_id, name, file.read_bytes())
        return self._program_record(program_id, name)

    def forget_program(self, program: str) -> None:
        if not self._register.delete_program(program):
            raise NotFound(f"there is no program '{program}'")

    def _program(self, program_id: str) -> tuple[str, bytes]:
        found = self._register.program(program_id)
        if found is None:
            raise NotFound(f"there is no program '{program_id}'")
        return found

    def run(self, request: RunRequest) -> str:
        name, data = self._program(request.program)
        spec = self._spec(request, name, data)
        revision = Revision(
            parallelism=request.parallelism,
            savepoint=request.savepoint,
            allow_non_restored=request.allow_non_restored,
            claim=_CLAIMS.get((request.claim_mode or "NO_CLAIM").upper().replace("-", "_"), False),
        )
        try:
            job = self._supervisor.submit(spec, revision, data)
        except AlreadyThere as error:
            raise Refused(str(error)) from None
        self._await_job(job)
        return spec.job_id

    def _spec(self, request: RunRequest, name: str, data: bytes) -> Spec:
        """Return the spec of a program. Raise ProgramError if it cannot be run, before anything is started."""
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / name
            path.write_bytes(data)
            check_program(path, request.entry)
            requirements = requirements_of(path)
        named = REQUIREMENTS.of(request.configuration)
        if named is not None:
            requirements = _read_requirements(named)
        if request.parallelism is not None and request.parallelism < 1:
            raise ProgramError(f"the parallelism must be at least 1, not {request.parallelism}")
        return Spec(
            job_id=_job_id(request),
            submitted=int(time.time() * 1000),
            program=name,
            arguments=request.arguments,
            entry=request.entry,
            pyflink=request.pyflink,
            configuration=request.configuration,
            requirements=requirements,
        )

    def _await_job(self, job: SupervisedProgram) -> None:
        """Wait until the program has started its job, up to the submission timeout. Raise the error if it failed."""
        until = time.monotonic() + self._settings.submit_wait / 1000
        while time.monotonic() < until and not job.is_live(0):
            job.look(POLL_SECONDS)
            if job.ended_at is not None:
                if job.outcome is not None and job.outcome.how is How.FAILED and not job.outcome.deployed:
                    raise error_of(job.outcome, job.job_id)
                return
            time.sleep(POLL_SECONDS)

    def plan(self, request: RunRequest) -> JobRecord:
        name, data = self._program(request.program)
        return plan_program(self._spec(request, name, data), request.parallelism, data, self._settings)


def _hosts(of: str, record: JobRecord) -> bool:
    """Return True if this is the id of the job or of one of its task managers."""
    return of.startswith(record.job_id) or any(slot.place == of for slot in record.slots)


def _job_id(request: RunRequest) -> str:
    given = request.job_id or request.configuration.get("pipeline.job-id")
    try:
        return (JobID() if given is None else JobID(given.strip().lower())).hex
    except ValueError as error:
        raise ProgramError(str(error)) from None


def _read_requirements(path: str) -> str:
    try:
        return Path(path.removeprefix("file://")).read_text()
    except OSError as error:
        raise ProgramError(f"the requirements of the program cannot be read: {error}") from None


def _check_rescaling(record: JobRecord, parallelism: int) -> None:
    """Raise an error if the job cannot have this parallelism, before the job is stopped."""
    if record.batch:
        raise UnsupportedOperation("a BATCH job cannot be rescaled while it runs: it has no savepoints")
    if record.status != "RUNNING" or record.deployed is None:
        raise Refused(f"job {record.job_id} cannot be rescaled while it is {record.status}")
    most = min((vertex.max_parallelism for vertex in record.vertices), default=parallelism)
    if not 1 <= parallelism <= most:
        raise PenstockError(
            f"job '{record.name}' can have a parallelism from 1 to {most}, its max parallelism, not {parallelism}"
        )
