"""What every connector is made of. A sink writes during an epoch, prepares at a checkpoint, and commits behind it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from enum import Enum
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from penstock.datastream.functions import RuntimeContext, SinkFunction

__all__ = ["Committer", "DeliveryGuarantee", "Sink", "SinkWriter"]


class DeliveryGuarantee(Enum):
    """How often a record may arrive outside when the job has to recover."""

    EXACTLY_ONCE = "exactly-once"
    AT_LEAST_ONCE = "at-least-once"
    NONE = "none"


class SinkWriter(ABC):
    """Writes the records of one subtask."""

    @abstractmethod
    def write(self, value: Any, context: SinkFunction.Context) -> None:
        """Write one record where it cannot be seen yet, or where it may be seen more than once."""

    def flush(self, end_of_input: bool) -> None:  # noqa: B027 - many write at once
        """Push out what is buffered: a checkpoint follows, or the end."""

    def prepare_commit(self) -> list[Any]:
        """Return what the committer needs to make visible what was written; it becomes part of the checkpoint."""
        return []

    def snapshot_state(self, checkpoint_id: int) -> list[Any]:
        """Return what a successor must know beside what was prepared, as items that can be split between subtasks."""
        return []

    def close(self) -> None:  # noqa: B027
        """Release what the writer holds."""


class Committer(ABC):
    """Makes prepared records visible."""

    @abstractmethod
    def commit(self, committables: list[Any]) -> None:
        """Commit what a complete checkpoint holds. It may come again after a failure, and then must change nothing."""

    def close(self) -> None:  # noqa: B027
        """Release what the committer holds."""


class Sink(ABC):
    """A sink as plain data: sent to every subtask, where it makes a writer and, for exactly once, a committer."""

    @abstractmethod
    def create_writer(self, context: RuntimeContext, restored: list[Any]) -> SinkWriter:
        """Return the writer of one subtask; `restored` are the items of former writers that fell to it."""

    def create_committer(self) -> Committer | None:
        """Return the committer; None for a sink that makes records visible as it writes."""
        return None
