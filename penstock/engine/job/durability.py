"""What lets a job survive failures: its checkpoints, its restart strategy, and where it starts from."""

from __future__ import annotations

from collections.abc import Set
from dataclasses import dataclass, field

from penstock.engine.checkpoint.checkpoint_storage_actions import Archive
from penstock.engine.checkpoint.coordinator import CheckpointRules, Coordinator
from penstock.engine.checkpoint.metadata import Metadata
from penstock.engine.checkpoint.ownership import NoOwnership
from penstock.engine.checkpoint.store import MemoryStore
from penstock.engine.job.restarts import NoRestarts, Restarts
from penstock.graph.plan import Plan


@dataclass
class Durability:
    """The checkpoints, restart strategy and starting point of one job."""

    coordinator: Coordinator
    archive: Archive
    restarts: Restarts
    start: Metadata | None = None
    """The checkpoint or savepoint that the job was started from."""
    start_continued: bool = False
    """Whether that is the job's own last checkpoint, and the plan is the same."""
    seals: bool = False
    """Whether checkpoints are taken, so that a last one must cover the end of the input."""
    keep_when_cancelled: bool = False
    marks_end: bool = False
    """Whether a driver may try to recover the job after its end, and must then find that it has ended."""
    held: Set[str] = frozenset()
    """Uids of the sinks whose results wait for a checkpoint."""
    owner: NoOwnership = field(default_factory=NoOwnership)
    """The right to act for the job, which another driver may take."""

    @classmethod
    def none(cls, plan: Plan, job_id: str) -> Durability:
        """No checkpoints and no restarts; savepoints can still be asked for."""
        store = MemoryStore(job_id)
        coordinator = Coordinator(plan, job_id, CheckpointRules(), store.folder)
        return cls(coordinator, Archive(store), NoRestarts("checkpointing is off"))

    def newest(self) -> tuple[Metadata | None, bool]:
        """The newest complete checkpoint, else what the job was started from, and whether it is the job's own.

        None stands for the very beginning.
        """
        if self.coordinator.kept:
            return self.coordinator.kept[-1], True
        return self.start, self.start_continued
