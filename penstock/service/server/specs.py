"""What the register holds of a job, as plain data: the program, its revisions, what is wanted, how drivers ended."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from hashlib import md5
from typing import Any


@dataclass(frozen=True)
class Spec:
    """A program that was submitted. It never changes."""

    job_id: str
    submitted: int
    """In milliseconds since 1970."""
    program: str
    """The name of the program's file."""
    arguments: tuple[str, ...] = ()
    entry: str | None = None
    pyflink: bool = False
    configuration: Mapping[str, str] = field(default_factory=dict)
    """May hold secrets, and is never shown as it is."""
    requirements: str | None = None
    """The text of a requirements file."""


@dataclass(frozen=True)
class Revision:
    """How a program is run: each rescaling is a revision of its own."""

    number: int = 1
    parallelism: int | None = None
    savepoint: str | None = None
    allow_non_restored: bool = False
    claim: bool = False
    """Whether the job may delete the savepoint when it has a checkpoint of its own."""
    ordinal: int = 0
    """Which of the program's jobs starts from the savepoint."""
    forced: bool = False
    """Whether the parallelism holds even if the program sets another."""
    previous: int | None = None
    """The revision to go back to if this one cannot be started."""


@dataclass(frozen=True)
class Wanted:
    """What clients want of a job that was submitted."""

    cancelled: int | None = None
    """The last of the program's jobs that is to be cancelled; None if none is."""


class How(Enum):
    """How a driver ended. One that says nothing has died."""

    FINISHED = "FINISHED"
    FAILED = "FAILED"
    CANCELED = "CANCELED"
    SUSPENDED = "SUSPENDED"
    RESCALED = "RESCALED"
    """It has left a savepoint, from which the job goes on with another parallelism."""
    DISPLACED = "DISPLACED"


@dataclass(frozen=True)
class Outcome:
    """What a driver says when it ends."""

    how: How
    when: int = 0
    kind: str = ""
    """The name of the error's class."""
    message: str = ""
    traceback: str = ""
    deployed: bool = True
    """Whether one of its jobs has run."""
    savepoint: str | None = None
    parallelism: int | None = None
    ordinal: int = 0


@dataclass(frozen=True)
class DriverPlace:
    """Where a driver runs, and how it is spoken to on the same machine."""

    number: int
    """Which start of the program this is, from 1 on."""
    revision: int
    fence: int
    """The number of the leader that started it."""
    where: Mapping[str, Any]
    """Its Whereabouts."""
    address: str
    """Its control socket."""
    key_file: str
    folder: str
    """Where its logs are."""


def job_id_of(first: str, ordinal: int) -> str:
    """The id of a program's job: the first has the id that the server gave, later ones have ids that follow from it."""
    return first if ordinal == 0 else md5(f"{first}/{ordinal}".encode(), usedforsecurity=False).hexdigest()
