"""The content of the register as plain data: the program, its revisions, requests of clients, drivers, outcomes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from hashlib import md5
from typing import Any


@dataclass(frozen=True)
class Spec:
    """A submitted program. A spec never changes."""

    job_id: str
    submitted: int
    """Time of the submission, in milliseconds since 1970."""
    program: str
    """The name of the program's file."""
    arguments: tuple[str, ...] = ()
    entry: str | None = None
    pyflink: bool = False
    configuration: Mapping[str, str] = field(default_factory=dict)
    """Options of the job. They may contain secrets and are never shown unmasked."""
    requirements: str | None = None
    """The text of a requirements file."""


@dataclass(frozen=True)
class Revision:
    """The parallelism and starting point of a program. Each rescaling adds a revision."""

    number: int = 1
    parallelism: int | None = None
    savepoint: str | None = None
    allow_non_restored: bool = False
    claim: bool = False
    """Whether the job may delete the savepoint once it has a checkpoint of its own."""
    ordinal: int = 0
    """The ordinal of the program's job that starts from the savepoint."""
    forced: bool = False
    """Whether the parallelism applies even if the program sets another one."""
    previous: int | None = None
    """The number of the revision to go back to if this one cannot start."""
    driver: int | None = None
    """The number of the driver that has changed the parallelism of its running job; None if a new driver did."""


@dataclass(frozen=True)
class Wanted:
    """The request of a client about a submitted program."""

    cancelled: int | None = None
    """The ordinal of the program's job to cancel, or None."""


class How(Enum):
    """The kind of a driver's outcome. A driver without an outcome has died."""

    FINISHED = "FINISHED"
    FAILED = "FAILED"
    CANCELED = "CANCELED"
    SUSPENDED = "SUSPENDED"
    RESCALED = "RESCALED"
    """The driver left a savepoint, from which the job continues with another parallelism."""
    DISPLACED = "DISPLACED"


@dataclass(frozen=True)
class Outcome:
    """The outcome of a driver."""

    how: How
    when: int = 0
    kind: str = ""
    """The class name of the error, or an empty text."""
    message: str = ""
    traceback: str = ""
    deployed: bool = True
    """Whether one of the driver's jobs has run."""
    savepoint: str | None = None
    parallelism: int | None = None
    ordinal: int = 0


@dataclass(frozen=True)
class DriverPlace:
    """The process of a driver, and its control socket on the same machine."""

    number: int
    """The number of the driver among all drivers of the program, from 1."""
    revision: int
    fence: int
    """The number of the leader that started it."""
    where: Mapping[str, Any]
    """The identity of the process, as `Whereabouts` describes it."""
    address: str
    """The path of the control socket."""
    key_file: str
    folder: str
    """The folder of the driver's logs."""


def job_id_of(first: str, ordinal: int) -> str:
    """Return the id of a program's job. The first job has the program's id, from which the other ids are derived."""
    return first if ordinal == 0 else md5(f"{first}/{ordinal}".encode(), usedforsecurity=False).hexdigest()
