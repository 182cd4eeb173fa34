"""The interface between the REST application and the jobs of one process or of a server."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from penstock.engine.job.job_record import JobRecord
from penstock.engine.observe.profiling import ProfileOrder, Seen

QUERY_SECONDS = 30.0
"""Longest duration, in seconds, of a lookup of queryable state, including the time that it waits."""


@dataclass(frozen=True)
class TaskManagerRecord:
    """An executor of Spark that hosts slots of a job. On a local master it is the machine of the driver."""

    id: str
    host: str
    slots: int
    free_slots: int
    jobs: Mapping[str, int] = field(default_factory=dict)
    """The number of slots that each job has here, by job id."""
    cores: int = 1
    memory: int = 0
    free_memory: int = 0
    metrics: Mapping[str, float | int] = field(default_factory=dict)


@dataclass(frozen=True)
class LogFile:
    """A file that holds the log or the output of a process."""

    name: str
    path: Path


@dataclass(frozen=True)
class ProgramRecord:
    """A program that was uploaded."""

    id: str
    name: str
    uploaded: int
    entries: tuple[str, ...] = ()


@dataclass(frozen=True)
class RunRequest:
    """An order to start a program."""

    program: str
    arguments: tuple[str, ...] = ()
    entry: str | None = None
    """`module:function`, or None for the program's main module."""
    parallelism: int | None = None
    savepoint: str | None = None
    allow_non_restored: bool = False
    claim_mode: str | None = None
    job_id: str | None = None
    pyflink: bool = False
    configuration: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class SavepointOrder:
    """A savepoint that a client asks for."""

    directory: str | None = None
    stop: bool = False
    """Whether the job finishes with this savepoint."""
    drain: bool = False
    cancel: bool = False
    """Whether the job is cancelled once the savepoint is complete."""


class UnknownJob(Exception):
    """No job has this id."""


class Refused(Exception):
    """An operation is impossible in the present state of the job. The text says why."""


class Jobs(Protocol):
    """The jobs that REST shows. Every method may block, and many threads call the methods at once."""

    def records(self) -> Sequence[JobRecord]:
        """Return running and ended jobs, in the order in which they began."""

    def record(self, job_id: str) -> JobRecord:
        """Return the record of one job, which is at most a second old. Raise UnknownJob if there is no such job."""

    def configuration(self) -> Mapping[str, str]:
        """Return the options of the process that answers, with secrets masked."""

    def task_managers(self) -> Sequence[TaskManagerRecord]:
        """Return the task managers, which host slots of running jobs."""

    def logs(self, of: str | None = None) -> Sequence[LogFile]:
        """Return the log files of a task manager or a job, by its id, or with None those of the process that answers.

        The first file is the log. The file whose name ends in `.out` is the standard output.
        """

    def threads(self, of: str | None = None) -> Sequence[tuple[str, str]]:
        """Return the names and stacks of the threads of a task manager, or with None of the process that answers."""

    # --- orders: each returns when it is done, or raises PenstockError, UnknownJob or Refused ---
    def cancel(self, job_id: str) -> None:
        """Ask a job to end, and return at once."""

    def savepoint(self, job_id: str, order: SavepointOrder) -> str:
        """Take a savepoint and return its path."""

    def checkpoint(self, job_id: str, full: bool) -> int:
        """Take a checkpoint and return its number."""

    def dispose(self, savepoint: str) -> None:
        """Delete a savepoint."""

    def rescale(self, job_id: str, parallelism: int) -> None:
        """Continue the job with another parallelism, or leave the job as it was and raise an error with the reason."""

    def query(self, job_id: str, name: str, request: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return entries of queryable state as JSON. The request names `keys`, or selects entries in another way."""

    # --- watching ---
    def log_levels(self, job_id: str) -> Mapping[str, str]:
        """Return the levels that were set for loggers of a running job."""

    def set_log_levels(self, job_id: str, levels: Mapping[str, str]) -> None:
        """Set the levels of loggers in the driver and all slots of the job."""

    def profile(self, job_id: str, order: ProfileOrder) -> Sequence[Seen]:
        """Profile the slots of a job, and return the samples."""

    # --- programs ---
    def programs(self) -> Sequence[ProgramRecord]:
        """Return the uploaded programs."""

    def upload(self, name: str, file: Path) -> ProgramRecord:
        """Store a copy of a file as a program."""

    def forget_program(self, program: str) -> None:
        """Delete an uploaded program. Raise NotFound if there is no such program."""

    def run(self, request: RunRequest) -> str:
        """Start a program, and return the id of its job as soon as the job exists."""

    def plan(self, request: RunRequest) -> JobRecord:
        """Return the record of the job that a program would start, without starting it."""
