"""Interfaces of functions that take part in checkpoints: they keep operator state or are notified of the outcome."""

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
        """Return the number of the checkpoint. A later checkpoint has a higher number."""

    @abstractmethod
    def get_checkpoint_timestamp(self) -> int:
        """Return the time at which the checkpoint was started, in epoch milliseconds."""


class FunctionInitializationContext(ABC):
    """Access to the state of a function at its start, whether it is new or restored."""

    @abstractmethod
    def is_restored(self) -> bool:
        """Return True if the job starts from a checkpoint or savepoint that contains this operator."""

    @abstractmethod
    def get_restored_checkpoint_id(self) -> int | None:
        """Return the number of the restored checkpoint, or None for a fresh start."""

    @abstractmethod
    def get_operator_state_store(self) -> OperatorStateStore:
        """Return the store of state that belongs to the subtask."""

    @abstractmethod
    def get_keyed_state_store(self) -> KeyedStateStore:
        """Return the store of state that belongs to the current key."""


class CheckpointedFunction(ABC):
    """Mix this in to keep operator state: registered at the start, brought up to date for every checkpoint."""

    @abstractmethod
    def snapshot_state(self, context: FunctionSnapshotContext) -> None:
        """Write into the state everything that a successor must know. Called for each checkpoint."""

    @abstractmethod
    def initialize_state(self, context: FunctionInitializationContext) -> None:
        """Register the state and take over the restored content. Called before `open`."""


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
        """React to a complete checkpoint. The input that it covers will never be processed again."""

    def notify_checkpoint_aborted(self, checkpoint_id: int) -> None:
        """React to a checkpoint that was given up. A later checkpoint covers its content."""


__all__: list[Any] = [
    "CheckpointListener",
    "CheckpointedFunction",
    "FunctionInitializationContext",
    "FunctionSnapshotContext",
    "ListCheckpointed",
]
