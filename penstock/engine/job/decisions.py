"""The decisions of a job's state machine. The driver carries them out one after the other, and answers each."""

from __future__ import annotations

from dataclasses import dataclass

from penstock.common.job import JobStatus
from penstock.engine.checkpoint.checkpoint_storage_actions import Covered, Reply, StorageOrder
from penstock.engine.checkpoint.metadata import Metadata
from penstock.engine.job.state_queries import StateQuery
from penstock.engine.messages.commands_and_reports import Command, Report
from penstock.engine.queryable.query_requests import Cut
from penstock.errors import StateUnavailable


@dataclass(frozen=True)
class Deploy:
    """Start the slots of an attempt. Answered by Deployed."""

    attempt: int
    now: int
    snapshot: Metadata | None
    """The snapshot to continue from; None for the very beginning."""
    continued: bool
    """Whether the snapshot is the job's own and checkpoints may build on its files."""
    repeats: bool
    """Whether results that no checkpoint covers will be produced again, so that waiting results must be dropped."""
    line: tuple[Metadata, ...] = ()
    """The valid checkpoints, oldest first. A driver that takes over continues from one of them, or from a later one."""


@dataclass(frozen=True)
class Look:
    """Let the slots answer these queries, between two epochs."""

    queries: tuple[StateQuery, ...]
    cut: Cut


@dataclass(frozen=True)
class RunEpoch:
    """Send this command to all slots, with the assignments of the enumerators. Answered by EpochRan."""

    command: Command
    look: Look | None = None
    """Queries that the slots answer first, before the epoch changes anything."""


@dataclass(frozen=True)
class Refuse:
    """Refuse these queries with this error."""

    queries: tuple[StateQuery, ...]
    error: StateUnavailable


@dataclass(frozen=True)
class Commit:
    """Let the committers on the driver commit what these reports contain."""

    reports: list[Report]


@dataclass(frozen=True)
class Wait:
    """Wait until this time, or until a message comes before it. With None, wait for a message only."""

    until: int | None


@dataclass(frozen=True)
class HandOutLast:
    """Hand out the results up to this epoch at the end of the job. None stands for all results."""

    epoch: int | None


@dataclass(frozen=True)
class Release:
    """Close the functions in the slots and release the slots. Answered by Released."""


@dataclass(frozen=True)
class Ended:
    """End the job. This is the last decision."""

    status: JobStatus
    why: str
    error: Exception | None = None


Decision = (
    Deploy | RunEpoch | Look | Refuse | Commit | Wait | HandOutLast | Release | Ended | StorageOrder | Reply | Covered
)
