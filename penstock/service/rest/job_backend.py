"""What the REST application asks of whatever holds the jobs: one process with its own, or the server of a service."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from penstock.engine.job.job_record import JobRecord
from penstock.engine.observe.profiling import ProfileOrder, Seen

QUERY_SECONDS = 30.0
"""How long a lookup of queryable state may take, with all that it waits for."""


@dataclass(frozen=True)
class TaskManagerRecord:
    """An executor of Spark that hosts slots of a job; on a local master it is the driver's own machine."""

    id: str
    host: str
    slots: int
    free_slots: int
    jobs: Mapping[str, int] = field(default_factory=dict)
    """By job id: how many of its slots are here."""
    cores: int = 1
    memory: int = 0
    free_memory: int = 0
    metrics: Mapping[str, float | int] = field(default_factory=dict)


@dataclass(frozen=True)
class LogFile:
    """A file with what a process has written."""

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
    """How a program is to be started."""

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
    """Whether the job finishes with it."""
    drain: bool = False
    cancel: bool = False
    """Whether the job is cancelled once it is complete."""


class UnknownJob(Exception):
    """There is no job with this id."""


class Refused(Exception):
    """It cannot be done in the state that the job is in; the text says why."""


class Jobs(Protocol):
    """All jobs that can be seen here. Every method may block, and is called from many threads at once."""

    def records(self) -> Sequence[JobRecord]:
        """Running and ended jobs, in the order in which they began."""

    def record(self, job_id: str) -> JobRecord:
        """One job; raises UnknownJob. It may be a little old, but never older than a second."""

    def configuration(self) -> Mapping[str, str]:
        """The options of the process that answers, with secrets masked."""

    def task_managers(self) -> Sequence[TaskManagerRecord]: ...

    def logs(self, of: str | None = None) -> Sequence[LogFile]:
        """The files of a task manager or a job, by its id, or with None those of the process that answers.

        The first one is the log; the one whose name ends in `.out` is the standard output.
        """

    def threads(self, of: str | None = None) -> Sequence[tuple[str, str]]:
        """The threads of a task manager's processes, or with None of the process that answers: names and stacks."""

    # --- orders: each returns when it is done, and raises PenstockError, UnknownJob or Refused if it cannot be ---
    def cancel(self, job_id: str) -> None:
        """Ask a job to end; returns at once."""

    def savepoint(self, job_id: str, order: SavepointOrder) -> str:
        """Returns the path of the savepoint."""

    def checkpoint(self, job_id: str, full: bool) -> int:
        """Returns the number of the checkpoint."""

    def dispose(self, savepoint: str) -> None:
        """Delete a savepoint."""

    def rescale(self, job_id: str, parallelism: int) -> None:
        """Go on with another parallelism, or leave the job as it was and raise why."""

    def query(self, job_id: str, name: str, request: Mapping[str, Any]) -> Mapping[str, Any]:
        """What queryable state holds, as JSON. A request names `keys`, or says otherwise what is wanted."""

    # --- watching ---
    def log_levels(self, job_id: str) -> Mapping[str, str]:
        """The levels that loggers of a running job have been given."""

    def set_log_levels(self, job_id: str, levels: Mapping[str, str]) -> None:
        """Give loggers other levels, everywhere in the job."""

    def profile(self, job_id: str, order: ProfileOrder) -> Sequence[Seen]:
        """Look at what the slots do; returns when that is done."""

    # --- programs ---
    def programs(self) -> Sequence[ProgramRecord]: ...

    def upload(self, name: str, file: Path) -> ProgramRecord:
        """Keep a copy of a file as a program."""

    def forget_program(self, program: str) -> None:
        """Delete an uploaded program; raises NotFound."""

    def run(self, request: RunRequest) -> str:
        """Start a program and return the id of its job, once it has one."""

    def plan(self, request: RunRequest) -> JobRecord:
        """The job that a program would start, without starting it."""
