"""The coordinator's orders to storage, as data, and the archive that carries them out for the owner of the job."""

from __future__ import annotations

import logging
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import ClassVar

from penstock.engine.checkpoint.metadata import Metadata
from penstock.engine.checkpoint.ownership import NoOwnership
from penstock.engine.checkpoint.store import CheckpointStore, delete_snapshot, discard_savepoint, write_savepoint
from penstock.errors import AlreadyThere, JobSuspended, PenstockError, StorageError

log = logging.getLogger("penstock.checkpoint")


@dataclass
class SavepointRequest:
    """A request for a savepoint. The future gets its path, or the error."""

    folder: str
    stop: bool = False
    drain: bool = False
    done: Future[str] = field(default_factory=Future)
    leave_with: ClassVar[None] = None
    """A savepoint ends the job, or nothing."""


@dataclass
class CheckpointRequest:
    """A request for a checkpoint outside its turn. The future gets its number, or the error."""

    full: bool = False
    """Whether it holds the whole state, and not only the changes."""
    leave_with: JobSuspended | None = None
    """The error with which the driver ends after the checkpoint, so that another one continues there; usually None."""
    done: Future[str] = field(default_factory=Future)

    @property
    def stop(self) -> bool:
        """Whether the driver processes no records after the checkpoint."""
        return self.leave_with is not None


SnapshotRequest = SavepointRequest | CheckpointRequest


@dataclass(frozen=True)
class Publish:
    """Make a checkpoint, or the savepoint in this folder, complete, and report the outcome to the coordinator."""

    metadata: Metadata
    savepoint_folder: str | None = None


@dataclass(frozen=True)
class Drop:
    """Delete complete checkpoints, and the files that none of the retained ones needs."""

    dropped: list[Metadata]
    kept: list[Metadata]


@dataclass(frozen=True)
class Discard:
    """Delete files of a failed checkpoint. If `uncertain`, it may have been published, and that is undone first."""

    number: int
    files: list[str]
    uncertain: bool = False


@dataclass(frozen=True)
class DiscardSavepoint:
    """Delete files of a failed savepoint. If `uncertain`, it may have been published, and that is undone first."""

    folder: str
    files: list[str]
    uncertain: bool = False


@dataclass(frozen=True)
class DeleteClaimed:
    """Delete the snapshot that the job was started from and has claimed."""

    path: str


@dataclass(frozen=True)
class Tidy:
    """Delete all but the retained checkpoints at the end of the job, from number `since` on."""

    kept: list[Metadata]
    since: int
    finished: bool
    """Whether to record in storage that the job came to its end."""


@dataclass(frozen=True)
class Reply:
    """Answer a request with the savepoint's path or the checkpoint's number, or with an error."""

    request: SnapshotRequest
    path: str | None = None
    error: PenstockError | None = None


@dataclass(frozen=True)
class Covered:
    """Note that a checkpoint is complete: results up to this epoch will not be produced again."""

    checkpoint: int
    epoch: int


StorageOrder = Publish | Drop | Discard | DiscardSavepoint | DeleteClaimed | Tidy


class Archive:
    """The storage of a job's checkpoints, which carries out the coordinator's orders."""

    def __init__(self, store: CheckpointStore, owner: NoOwnership | None = None) -> None:
        self.store = store
        self._owner = owner or NoOwnership()

    def publish(self, order: Publish) -> str:
        """Publish a snapshot and return its path. Raises JobDisplaced if the job has another owner."""
        self._owner.check()
        if order.savepoint_folder is None:
            return self._publish_checkpoint(order.metadata)
        write_savepoint(order.metadata, order.savepoint_folder)
        # No job may start from a savepoint that a new owner does not know of.
        self._owner.check()
        return order.savepoint_folder

    def _publish_checkpoint(self, metadata: Metadata) -> str:
        """Publish a checkpoint under its number, which is used only once.

        If the number is taken, a displaced driver has just published it.
        """
        metadata.owner = self._owner.number
        try:
            path = self.store.publish(metadata)
        except AlreadyThere:
            self._owner.check()
            raise
        try:
            self._owner.note_published(metadata.number)
        except StorageError as error:
            log.warning(
                "checkpoint %d is complete, but it could not be recorded as the newest: %s", metadata.number, error
            )
        return path

    def carry_out(self, order: StorageOrder) -> None:
        """Carry out an order other than Publish. Files that cannot be deleted stay, with a warning."""
        try:
            self._owner.check()
        except StorageError as error:
            log.warning("%s; old files are not deleted, since the job may have another owner", error)
            return
        match order:
            case Drop():
                self.store.drop(order.dropped, order.kept)
            case Discard():
                if not order.uncertain or self.store.retract(order.number):
                    self.store.discard(order.files)
            case DiscardSavepoint():
                discard_savepoint(order.folder, order.files, order.uncertain)
            case DeleteClaimed():
                self._delete_claimed(order.path)
            case Tidy():
                self._tidy(order)

    @staticmethod
    def _delete_claimed(path: str) -> None:
        try:
            delete_snapshot(path)
        except PenstockError as error:
            log.warning("%s; it is not deleted", error)

    def _tidy(self, order: Tidy) -> None:
        """Record the checkpoints that are kept, then delete the others.

        A new owner that begins in between must not rely on a checkpoint that will be deleted.
        """
        try:
            self._owner.end(order.finished, order.kept)
            self.store.tidy(order.kept, order.since, self._owner.check)
            if not order.kept:
                self._owner.forget()
                self.store.delete_if_empty()
        except StorageError as error:
            log.warning("%s; checkpoints are not deleted", error)


def reply(answer: Reply) -> None:
    """Answer the client that waits for a savepoint or a checkpoint."""
    if answer.error is not None:
        answer.request.done.set_exception(answer.error)
    elif answer.path is not None:
        answer.request.done.set_result(answer.path)
