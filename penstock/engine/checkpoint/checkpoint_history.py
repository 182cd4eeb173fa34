"""Records of a job's checkpoints: those in progress, those that are complete, and those that failed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum


class CheckpointStatus(Enum):
    """The progress of a checkpoint. The names are those of Flink's REST interface."""

    IN_PROGRESS = "IN_PROGRESS"
    COMPLETED = "COMPLETED"
    FAILED = "FAILED"


@dataclass(frozen=True)
class SlotShare:
    """One slot's part of a checkpoint, once the slot has acknowledged it. Sizes are in bytes."""

    slot: int
    acknowledged: int
    """Time at which the driver received the acknowledgement, in milliseconds since 1970."""
    size: int
    written: int
    """The new part of the size."""
    sync_millis: float
    async_millis: float
    operators: Mapping[str, int] = field(default_factory=dict)
    """Size of each operator's state by operator uid. Files of an earlier driver are not divided up."""


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
    """Number of slots that have to acknowledge it."""
    slots: tuple[SlotShare, ...] = ()

    @property
    def millis(self) -> int:
        """Duration from the order to the end, in milliseconds; 0 while it is in progress."""
        return 0 if self.ended is None else self.ended - self.started

    @property
    def size(self) -> int:
        """Size of all slots' parts, in bytes."""
        return sum(share.size for share in self.slots)

    @property
    def written(self) -> int:
        """Size of the files that were new in this checkpoint, in bytes."""
        return sum(share.written for share in self.slots)

    @property
    def sync_millis(self) -> float:
        """Longest time for which a slot stopped to serialise its part, in milliseconds."""
        return max((share.sync_millis for share in self.slots), default=0.0)

    @property
    def async_millis(self) -> float:
        """Longest time that a slot needed to write its part, in milliseconds."""
        return max((share.async_millis for share in self.slots), default=0.0)


@dataclass(frozen=True)
class Restored:
    """The snapshot that the running attempt was started from."""

    number: int
    savepoint: bool
    when: int
    path: str | None = None
    """Path of the snapshot, if it is known."""


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
