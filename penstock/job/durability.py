"""What lets a job outlive failures: its checkpoints, its restart strategy, and where it starts from."""

from __future__ import annotations

from collections.abc import Set
from dataclasses import dataclass
from typing import Any

from penstock import pickling
from penstock.checkpoint.coordinator import CheckpointRules, Coordinator
from penstock.checkpoint.metadata import Metadata
from penstock.checkpoint.store import MemoryStore
from penstock.graph.plan import Plan
from penstock.job.restarts import NoRestarts, Restarts
from penstock.state.snapshot import Restore


@dataclass(frozen=True)
class RestorePoint:
    """Where slots and enumerators go on from."""

    restore: Restore
    enumerators: dict[str, Any]
    """By source uid: the position of the driver's part."""


@dataclass
class Durability:
    """All of it for one job."""

    coordinator: Coordinator
    restarts: Restarts
    start: Metadata | None = None
    """The checkpoint or savepoint that the job was started from."""
    start_continued: bool = False
    """Whether that is the job's own last checkpoint, and the plan is the same."""
    seals: bool = False
    """Whether checkpoints are taken, so that a last one must cover the end of the input."""
    keep_when_cancelled: bool = False
    marks_end: bool = False
    """Whether someone may try to recover the job after its end, and must find that it has ended."""
    held: Set[str] = frozenset()
    """Uids of the sinks whose results wait for a checkpoint."""

    @classmethod
    def none(cls, plan: Plan, job_id: str) -> Durability:
        """No checkpoints and no restarts; savepoints can still be asked for."""
        coordinator = Coordinator(plan, job_id, CheckpointRules(), MemoryStore(job_id))
        return cls(coordinator, NoRestarts("checkpointing is off"))

    def restore_point(self) -> RestorePoint | None:
        """The newest complete checkpoint, else where the job was started from; None for the very beginning."""
        if self.coordinator.kept:
            return self.point_of(self.coordinator.kept[-1], continued=True)
        return None if self.start is None else self.point_of(self.start, self.start_continued)

    @staticmethod
    def point_of(metadata: Metadata, continued: bool = False) -> RestorePoint:
        """Where a certain snapshot leads."""
        positions = {uid: pickling.loads(position) for uid, position in metadata.enumerators.items()}
        return RestorePoint(metadata.restore(continued), positions)
