"""The records on a feedback edge in one slot, between the epoch that sent them and the one that reads them."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import chain, repeat
from typing import Any, NamedTuple

from penstock.engine.records.elements import Chunk, Timestamps, Values
from penstock.persisted import persisted

FULL_RECORDS = 100_000
"""Number of records on the feedback edge of one slot at which the job's other sources wait."""


@persisted
class FeedbackRecords(NamedTuple):
    """The records on a feedback edge of one slot in a checkpoint."""

    values: list[Any]
    timestamps: list[int | None]


@dataclass(frozen=True)
class FeedbackReport:
    """The state of a feedback edge in one slot at the end of an epoch."""

    attempt: int
    subtask: int
    epoch: int
    """Number of the epoch in this attempt."""
    is_quiet: bool
    """True if the input has ended, and no record is or has recently been on the edge."""
    is_full: bool


@dataclass(frozen=True)
class FeedbackOrder:
    """The driver's order to the heads of a loop in all slots."""

    ends: bool
    """True if the loop ends."""
    holds_sources: bool
    """True if other sources wait because the feedback edge of some slot is full."""


class FeedbackQueue:
    """The feedback edge of one slot. The head of the loop reads it, and the sinks at its end write to it."""

    def __init__(self) -> None:
        self._arrived: deque[tuple[Values, Timestamps]] = deque()
        """Records of this epoch, which the next one reads."""
        self._ready: deque[tuple[Values, Timestamps]] = deque()
        self._records = 0
        self.changed_at = 0
        """Processing time of the last arrival of records, or of the end of the input."""
        self.input_has_ended = False
        self.is_over = False
        """True if the head reads nothing more."""
        self.on_change: Callable[[], None] = lambda: None
        """Function of the head that asks for another epoch."""

    def __len__(self) -> int:
        return self._records

    @property
    def is_full(self) -> bool:
        """True if other sources should wait until records have left the loop."""
        return self._records >= FULL_RECORDS

    def add(self, values: Values, timestamps: Timestamps, now: int) -> None:
        """Add records that have arrived at the end of the loop."""
        if not values:
            return
        self._arrived.append((values, timestamps))
        self._records += len(values)
        self.changed_at = now
        self.on_change()

    def end_input(self, now: int) -> None:
        """Note that the stream outside of the loop has ended."""
        self.input_has_ended = True
        self.changed_at = now
        self.on_change()

    def begin_epoch(self) -> None:
        """Let the head read the records of the epochs before."""
        self._ready.extend(self._arrived)
        self._arrived.clear()

    def take(self, most: int) -> Chunk:
        """Take at most this many records of the epochs before. The chunk is empty if there are none."""
        if not self._ready:
            return Chunk([])
        values, timestamps = self._ready.popleft()
        if len(values) > most:
            self._ready.appendleft((values[most:], timestamps and timestamps[most:]))
            values, timestamps = values[:most], timestamps and timestamps[:most]
        self._records -= len(values)
        return Chunk(values, timestamps)

    def records(self) -> FeedbackRecords:
        """Return all records on the edge."""
        values: list[Any] = []
        stamps: list[int | None] = []
        for part, timestamps in chain(self._ready, self._arrived):
            values += part
            stamps += timestamps or repeat(None, len(part))
        return FeedbackRecords(values, stamps)

    def restore(self, records: FeedbackRecords) -> None:
        """Put records of a checkpoint onto the edge."""
        if records.values:
            self._arrived.append((records.values, records.timestamps))
            self._records += len(records.values)


def distribute(all_records: Iterable[FeedbackRecords], parallelism: int) -> list[FeedbackRecords]:
    """Distribute the records of all subtasks evenly over another number of subtasks."""
    values, stamps = [], []
    for records in all_records:
        values += records.values
        stamps += records.timestamps
    return [FeedbackRecords(values[i::parallelism], stamps[i::parallelism]) for i in range(parallelism)]
