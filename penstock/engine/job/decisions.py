"""What the state machine of a job decides. The driver carries decisions out, one after the other, and answers each."""

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
    """Whether results that no checkpoint covers will be produced again, and those that wait must be forgotten."""
    line: tuple[Metadata, ...] = ()
    """The checkpoints that count: a driver that takes over continues from one of them, or from a later one."""


@dataclass(frozen=True)
class Look:
    """Let the slots answer these queries, between two epochs."""

    queries: tuple[StateQuery, ...]
    cut: Cut


@dataclass(frozen=True)
class RunEpoch:
    """Send this command to all slots, with what the enumerators assign. Answered by EpochRan."""

    command: Command
    look: Look | None = None
    """Queries that the slots answer first, before the epoch changes anything."""


@dataclass(frozen=True)
class Refuse:
    """Tell whoever waits for the answer to these queries that there will be none."""

    queries: tuple[StateQuery, ...]
    error: StateUnavailable


@dataclass(frozen=True)
class Commit:
    """Let the committers on the driver commit what the slots handed over."""

    reports: list[Report]


@dataclass(frozen=True)
class Wait:
    """Do nothing until this time or until a message comes. None means: until a message comes."""

    until: int | None


@dataclass(frozen=True)
class HandOutLast:
    """The job ends: hand out the results up to an epoch; None: all of them."""

    epoch: int | None


@dataclass(frozen=True)
class Release:
    """Close the functions in the slots and release the slots. Answered by Released."""


@dataclass(frozen=True)
class Ended:
    """The job is over, and this is the last decision."""

    status: JobStatus
    why: str
    error: Exception | None = None


Decision = (
    Deploy | RunEpoch | Look | Refuse | Commit | Wait | HandOutLast | Release | Ended | StorageOrder | Reply | Covered
)
