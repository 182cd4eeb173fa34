"""The facts that the state machine of a job is given.

An answer reports the result of the previous decision; every decision but the last gets exactly one answer. Requests
from clients and news from slots can arrive at any moment.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from penstock.engine.checkpoint.checkpoint_storage_actions import Publish, SnapshotRequest
from penstock.engine.job.resize import Resized
from penstock.engine.job.slot_queries import AsideTimes
from penstock.engine.job.state_queries import StateQuery
from penstock.engine.messages.commands_and_reports import Report
from penstock.errors import JobDisplaced, PenstockError


@dataclass(frozen=True)
class Answer:
    """The decision was carried out at this time, in milliseconds."""

    now: int


@dataclass(frozen=True)
class Deployed(Answer):
    """The slots of an attempt have started, or say why they could not."""

    reports: list[Report]


@dataclass(frozen=True)
class EpochRan(Answer):
    """The slots have answered a command, and the enumerators on the driver have handed out their work."""

    reports: list[Report]
    positions: Mapping[str, Any] = field(default_factory=dict)
    """Positions of the enumerators by source uid, if the epoch took a checkpoint."""
    more: bool = False
    """Whether an enumerator has more to hand out at once."""
    look_in: float | None = None
    """Seconds until an enumerator wants to be asked again."""
    millis: float = 0.0
    """Duration of the epoch in milliseconds."""
    asides: AsideTimes = field(default_factory=AsideTimes)
    """The speed at which slots have answered clients during the epoch."""


@dataclass(frozen=True)
class Waited(Answer):
    """The wait is over because its time has come, or because a message came."""

    in_full: bool


@dataclass(frozen=True)
class Published(Answer):
    """A snapshot is complete."""

    order: Publish
    path: str


@dataclass(frozen=True)
class NotPublished(Answer):
    """Storage refused a snapshot."""

    order: Publish
    error: PenstockError


@dataclass(frozen=True)
class Released(Answer):
    """The slots have closed their functions; a failure in closing is reported here."""

    reports: list[Report]


@dataclass(frozen=True)
class Failed(Answer):
    """The decision could not be carried out."""

    error: Exception


# --- messages at any moment ---
@dataclass(frozen=True)
class SavepointWanted:
    """A client waits for a savepoint, or for a checkpoint outside its turn."""

    request: SnapshotRequest


@dataclass(frozen=True)
class StateWanted:
    """A client waits for the values of a queryable state."""

    query: StateQuery


@dataclass(frozen=True)
class CancelWanted:
    """A client wants the job to end as soon as possible."""


@dataclass(frozen=True)
class ResizeWanted:
    """The job must stop here and go on with another parallelism."""

    resized: Resized


@dataclass(frozen=True)
class SuspendWanted:
    """The job must stop here and leave everything in place, so that another driver can go on."""


@dataclass(frozen=True)
class News:
    """A slot has input, or an enumerator has found something."""


@dataclass(frozen=True)
class SlotGone:
    """A slot's process has died or does not answer. The next epoch will fail with the reason."""


@dataclass(frozen=True)
class Displaced:
    """Another driver has taken over the job."""

    error: JobDisplaced


Message = SavepointWanted | StateWanted | CancelWanted | SuspendWanted | ResizeWanted | News | SlotGone | Displaced
