"""What a function may implement to take part in checkpoints: state of its own beside keyed state, and news of them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, Generic, TypeVar

if TYPE_CHECKING:
    from penstock.api.functions.contexts import KeyedStateStore
    from penstock.api.state.descriptors import OperatorStateStore

T = TypeVar("T")


class FunctionSnapshotContext(ABC):
    """The checkpoint that is being taken."""

    @abstractmethod
    def get_checkpoint_id(self) -> int:
        """Return its number; a later checkpoint has a higher one."""

    @abstractmethod
    def get_checkpoint_timestamp(self) -> int:
        """Return when it was started, in epoch milliseconds."""


class FunctionInitializationContext(ABC):
    """Where a function finds its state when it starts, anew or after a recovery."""

    @abstractmethod
    def is_restored(self) -> bool:
        """Return whether the job starts from a checkpoint or savepoint that knows this operator."""

    @abstractmethod
    def get_restored_checkpoint_id(self) -> int | None:
        """Return the number of the checkpoint restored from; None for a fresh start."""

    @abstractmethod
    def get_operator_state_store(self) -> OperatorStateStore:
        """Return the state that belongs to the subtask."""

    @abstractmethod
    def get_keyed_state_store(self) -> KeyedStateStore:
        """Return the state that belongs to the current key."""


class CheckpointedFunction(ABC):
    """Mix this in to keep operator state: registered at the start, brought up to date for every checkpoint."""

    @abstractmethod
    def snapshot_state(self, context: FunctionSnapshotContext) -> None:
        """A checkpoint is taken: put into the state what a successor must know."""

    @abstractmethod
    def initialize_state(self, context: FunctionInitializationContext) -> None:
        """Called before `open`: register the state and take over what was restored."""


class ListCheckpointed(ABC, Generic[T]):
    """Mix this in to keep a list of items that can be split between subtasks when the parallelism changes."""

    @abstractmethod
    def snapshot_state(self, checkpoint_id: int, timestamp: int) -> list[T]:
        """Return the items for this checkpoint."""

    @abstractmethod
    def restore_state(self, state: list[T]) -> None:
        """Take over the items that fell to this subtask. Called before `open`, after a recovery only."""


class CheckpointListener:
    """Inherit from this class to be notified of the outcome of checkpoints. A failure may prevent either call."""

    def notify_checkpoint_complete(self, checkpoint_id: int) -> None:
        """The checkpoint is complete: what it covers will never be repeated."""

    def notify_checkpoint_aborted(self, checkpoint_id: int) -> None:
        """The checkpoint was given up; a later one covers what it would have."""


__all__: list[Any] = [
    "CheckpointListener",
    "CheckpointedFunction",
    "FunctionInitializationContext",
    "FunctionSnapshotContext",
    "ListCheckpointed",
]
