"""The checkpoints, restart strategy and starting point that let a job survive failures."""

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
    """The means of one job to survive failures."""

    coordinator: Coordinator
    archive: Archive
    restarts: Restarts
    start: Metadata | None = None
    """The checkpoint or savepoint that the job was started from."""
    start_continued: bool = False
    """Whether `start` is the job's own last checkpoint, and the plan is the same."""
    seals: bool = False
    """Whether the job takes checkpoints, so that a last one must cover the end of the input."""
    keep_when_cancelled: bool = False
    marks_end: bool = False
    """Whether storage must record the end of the job, because a later driver may try to recover it."""
    held: Set[str] = frozenset()
    """Uids of the sinks whose results wait for a checkpoint."""
    owner: NoOwnership = field(default_factory=NoOwnership)
    """The right to act for the job. Another driver may take it."""

    @classmethod
    def none(cls, plan: Plan, job_id: str) -> Durability:
        """Return the durability of a job without checkpoints and restarts. Clients can still request savepoints."""
        store = MemoryStore(job_id)
        coordinator = Coordinator(plan, job_id, CheckpointRules(), store.folder)
        return cls(coordinator, Archive(store), NoRestarts("checkpointing is off"))

    def newest(self) -> tuple[Metadata | None, bool]:
        """Return the newest complete checkpoint, else the snapshot at the start, and whether it is the job's own.

        Return None as the snapshot if the job starts from the very beginning.
        """
        if self.coordinator.kept:
            return self.coordinator.kept[-1], True
        return self.start, self.start_continued
