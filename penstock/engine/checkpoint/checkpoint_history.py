"""What can be reported about checkpoints: those in progress, those that are complete, and those that failed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum


class CheckpointStatus(Enum):
    """How far a checkpoint has come. The names are those of Flink's REST interface."""

    IN_PROGRESS = "IN_PROGRESS"
    COMPLETED = "COMPLETED"
    FAILED = "FAILED"


@dataclass(frozen=True)
class SlotShare:
    """One slot's part of a checkpoint, once the slot has acknowledged it. Sizes are in bytes."""

    slot: int
    acknowledged: int
    """When the driver heard of it, in milliseconds of the epoch."""
    size: int
    written: int
    """How much of the size was new."""
    sync_millis: float
    async_millis: float
    operators: Mapping[str, int] = field(default_factory=dict)
    """By operator uid: how much of the size is its state. Files of an earlier driver are not divided up."""


@dataclass(frozen=True)
class CheckpointRecord:
    """Everything that is reported about one checkpoint or savepoint."""

    number: int
    status: CheckpointStatus
    savepoint: bool
    started: int
    ended: int | None = None
    path: str | None = None
    failure: str | None = None
    expected: int = 0
    """How many slots have to acknowledge it."""
    slots: tuple[SlotShare, ...] = ()

    @property
    def millis(self) -> int:
        """From the order to the end; 0 while it is in progress."""
        return 0 if self.ended is None else self.ended - self.started

    @property
    def size(self) -> int:
        return sum(share.size for share in self.slots)

    @property
    def written(self) -> int:
        return sum(share.written for share in self.slots)

    @property
    def sync_millis(self) -> float:
        return max((share.sync_millis for share in self.slots), default=0.0)

    @property
    def async_millis(self) -> float:
        return max((share.async_millis for share in self.slots), default=0.0)


@dataclass(frozen=True)
class Restored:
    """What the running attempt was started from."""

    number: int
    savepoint: bool
    when: int
    path: str | None = None
    """Where it is, if that is known."""


@dataclass(frozen=True)
class CheckpointsView:
    """The checkpoints of a job at one moment. The lists hold the newest hundred, oldest first."""

    in_progress: tuple[CheckpointRecord, ...] = ()
    completed: tuple[CheckpointRecord, ...] = ()
    failed: tuple[CheckpointRecord, ...] = ()
    completed_in_all: int = 0
    failed_in_all: int = 0
    restored: Restored | None = None
    restored_in_all: int = 0
