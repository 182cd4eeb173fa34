"""Sources inside a slot.

A source is plain data that creates a reader. The operator reads from the reader within a budget.
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any

from penstock.common.typeinfo import TypeInformation
from penstock.engine.operators.operator import Operator, OperatorContext
from penstock.engine.records.elements import MAX_TIMESTAMP, Chunk, Receiver
from penstock.engine.records.failures import USER_ERRORS
from penstock.engine.records.latency import Markers
from penstock.engine.snapshots.snapshot_parts import SubtaskSnapshot
from penstock.errors import UnsupportedOperation

CHUNK_RECORDS = 4096


@dataclass
class Budget:
    """The limits of one subtask of a source in one epoch."""

    records: int
    deadline: float
    """The moment, on time.monotonic(), after which the source should stop reading."""
    wait: float = 0.0
    """Seconds to wait for the first record when there is none."""
    settles: bool = False
    """True if a checkpoint follows. It must know what was read."""
    payload: Any = None
    """The payload that the driver's enumerator assigned to this subtask."""
    between_chunks: Callable[[], None] = lambda: None
    """Function that the source calls when a chunk has passed through all operators after it in its stage."""

    def spent(self) -> bool:
        """Return True if the records or the time of the epoch are used up."""
        return self.records <= 0 or time.monotonic() >= self.deadline


class Reader(ABC):
    """One subtask's share of a source. `finished` becomes true after the last record of a bounded source."""

    finished = False

    @abstractmethod
    def poll(self, output: Receiver, budget: Budget) -> int:
        """Emit at most one chunk and return its size; 0 means that there is nothing to read now."""

    def next_due(self) -> int | None:
        """Return the processing time at which there will be something to read, or None if that is unknown."""
        return None

    def waits_for_input(self) -> bool:
        """Return True if only an epoch can tell whether input has arrived. The driver then looks from time to time."""
        return False

    def has_news(self) -> bool:
        """Return True if unread input has come. This is for readers that ring the bell when input comes."""
        return False

    def settle(self, output: Receiver) -> None:  # noqa: B027 - few read ahead
        """Emit the records that were read ahead, and read nothing more. `position` is called next."""

    def watch(self) -> None:  # noqa: B027 - few do anything between epochs
        """Wait for input between two epochs, if the reader can, and ring the bell when it comes."""

    @abstractmethod
    def position(self) -> Any:
        """Return the position, as plain data, from which a new reader would continue."""

    def bind(self, output: Receiver) -> None:  # noqa: B027 - most learn it with each poll
        """Set the receiver of records and watermarks. Called once, before the first poll."""

    def end_epoch(self) -> None:  # noqa: B027 - most have no clock of their own
        """End an epoch in which everything that could be read has been read."""

    def steady(self) -> AbstractContextManager[Any]:
        """Return a context in which the position cannot change, for readers with their own thread."""
        return nullcontext()

    def begin_checkpoint(self, checkpoint: int) -> None:  # noqa: B027 - few need to know which
        """Prepare for a checkpoint, which asks for the position next."""

    def snapshot(self, into: SubtaskSnapshot) -> None:  # noqa: B027 - most have nothing but a position
        """Add state other than the position to a checkpoint."""

    def checkpoint_complete(self, checkpoint: int) -> None:  # noqa: B027
        """React to a checkpoint that was published."""

    def checkpoint_aborted(self, checkpoint: int) -> None:  # noqa: B027
        """React to a checkpoint that was given up."""

    def close(self) -> None:  # noqa: B027 - most readers hold nothing
        """Stop reading."""


class Enumerator(ABC):
    """The driver's part of a source that the driver feeds. Once per epoch it assigns the next input to each subtask.

    `exhausted` becomes true when there is nothing left to assign.
    """

    exhausted = False
    news: Callable[[], None] = staticmethod(lambda: None)
    """Function that the driver sets. Any thread may call it when `assign` would have something new."""

    def keep_time(self, now: Callable[[], int]) -> None:  # noqa: B027
        """Use this clock, in milliseconds. Called before anything else, and only if the job has virtual time."""

    def due_in(self) -> float | None:
        """Return the seconds until the driver should ask again.

        The result is None if the enumerator reports news by itself or never has any.
        """
        return None

    @abstractmethod
    def assign(self, parallelism: int, max_records: int) -> list[Any]:
        """Return a payload per subtask."""

    def position(self) -> Any:
        """Return the position, as plain data, from which a new enumerator would continue."""
        return None

    def resume(self, position: Any) -> None:  # noqa: B027
        """Continue from a position. Called before the first `assign`."""

    def checkpoint_complete(self, checkpoint: int) -> None:  # noqa: B027
        """React to a checkpoint that was published."""

    def close(self) -> None:  # noqa: B027 - most hold nothing
        """Release resources at the end of the job."""


class Source(ABC):
    """A source as plain data."""

    bounded = True
    parallel = True

    @abstractmethod
    def reader(self, context: OperatorContext, position: Any = None) -> Reader:
        """Create the reader of one subtask, at the start or at a position."""

    def redistribute(self, positions: list[Any], parallelism: int) -> list[Any]:
        """Return positions for this many readers, which together continue where the previous readers stopped.

        The number of previous readers may be different.
        """
        raise UnsupportedOperation(
            f"{type(self).__name__} was read by {len(positions)} subtasks and cannot be restored with {parallelism}"
        )

    def enumerator(self) -> Enumerator | None:
        """Return the driver's part of the source, or None for a source without one."""
        return None


@dataclass(frozen=True)
class ReadLimits:
    """The highest rate of a source, for all its subtasks together."""

    per_second: float | None = None
    per_epoch: int | None = None


class Allowance:
    """One subtask's share of the limits: the number of records it may still read, which grows with processing time."""

    def __init__(self, limits: ReadLimits, context: OperatorContext) -> None:
        self._clock = context.clock
        self._per_second = None if limits.per_second is None else limits.per_second / context.parallelism
        self._per_epoch = None if limits.per_epoch is None else max(1, limits.per_epoch // context.parallelism)
        self._left = 1.0
        self._since = context.clock.now

    def restrict(self, budget: Budget) -> None:
        """Restrict the budget of an epoch that begins.

        Records that were not read in time are made up for, by up to a second's worth.
        """
        if self._per_epoch is not None:
            budget.records = min(budget.records, self._per_epoch)
        if self._per_second is not None:
            passed = max(0, self._clock.now - self._since) / 1000
            self._since = self._clock.now
            self._left = min(self._left + passed * self._per_second, max(1.0, self._per_second))
            budget.records = min(budget.records, int(self._left))

    def use(self, records: int) -> None:
        """Subtract records that were read."""
        if self._per_second is not None:
            self._left -= records

    def is_used_up(self) -> bool:
        """Return True if the rate allows no further record now."""
        return self._per_second is not None and self._left < 1

    def next_due(self) -> int | None:
        """Return the processing time at which the next record may be read, or None if the limits allow it now."""
        if self._per_second is None or self._left >= 1:
            return None
        return self._since + int((1 - self._left) / self._per_second * 1000) + 1


class SourceOperator(Operator):
    """Reads one subtask's share of a source, one bounded slice per epoch."""

    is_source = True

    def __init__(
        self, source: Source, output_type: TypeInformation | None = None, limits: ReadLimits | None = None
    ) -> None:
        super().__init__(output_type)
        self.source = source
        self.limits = limits or ReadLimits()

    def open(self, context: OperatorContext) -> None:
        super().open(context)
        self.finished = self._ended_before = self.idle = self._announces_idle = False
        try:
            self.reader = self._reader()
        except USER_ERRORS as error:
            raise self.failure(error, []) from error
        self._out = _SourceOutput(self)
        self.reader.bind(self._out)
        self.backlog = False
        self.read = 0
        self._allowance = Allowance(self.limits, context)

    def _reader(self) -> Reader:
        restored = self.context.restored
        if restored is None:
            return self.source.reader(self.context)
        own = restored.own()
        if own is not None:
            # If everything continues as it was, downstream operators already know that this source has ended.
            self.finished = self._ended_before = restored.continued and own["finished"]
            self._announces_idle = own.get("idle", False)
            return self.source.reader(self.context, own.get("position"))
        self._announces_idle = all(before.get("idle", False) for before in restored.all_own())
        positions = [before["position"] for before in restored.all_own() if "position" in before]
        if not positions:
            return self.source.reader(self.context)
        shares = self.source.redistribute(positions, self.context.parallelism)
        return self.source.reader(self.context, shares[self.context.subtask])

    def inputs(self) -> Sequence[Callable[[Chunk], None]]:
        return ()

    def run(self, budget: Budget) -> None:
        self.backlog = False
        self.read = 0
        if self._announces_idle:
            self._announces_idle = False
            self._out.status(True)
        if budget.settles:
            self._settle()
        self._allowance.restrict(budget)
        # A source must take the payload from the driver even if it should wait for others.
        while not self.finished and (budget.payload is not None or not (self._is_paused() or budget.records <= 0)):
            if self.context.markers is not None:
                self._mark(self.context.markers)
            try:
                taken = self.reader.poll(self._out, budget)
            except USER_ERRORS as error:
                raise self.failure(error, []) from error
            budget.between_chunks()
            budget.records -= taken
            self.read += taken
            self._allowance.use(taken)
            if self.reader.finished:
                self._end()
            elif not taken:
                return
            elif budget.spent():
                self.backlog = not self._allowance.is_used_up()
                return

    def _mark(self, markers: Markers) -> None:
        """Send a latency marker, if it is due, between the records read so far and those to come."""
        marker = markers.due()
        if marker is not None:
            self.output.marker(marker)

    def end_epoch(self) -> None:
        if not self.finished:
            self.reader.end_epoch()

    def _is_paused(self) -> bool:
        alignment, aligned = self.context.alignment, self.context.aligned
        return bool(alignment.full) or any(alignment.is_blocked(group, uid) for group, uid in aligned)

    def _end(self) -> None:
        self.finished = True
        self.output.watermark(MAX_TIMESTAMP)
        self.output.end()

    def settle(self) -> None:
        self.read = 0
        self.backlog = False
        self._settle()

    def _settle(self) -> None:
        if not self.finished:
            try:
                self.reader.settle(self._out)
            except USER_ERRORS as error:
                raise self.failure(error, []) from error

    def watch(self) -> None:
        if not self.finished:
            self.reader.watch()

    def has_news(self) -> bool:
        return not self.finished and not self._is_paused() and self.reader.has_news()

    def drain(self) -> None:
        self._settle()
        if not self.finished:
            self._end()

    # --- checkpoints ---
    def snapshot(self, into: SubtaskSnapshot) -> None:
        with self.reader.steady():
            self.reader.begin_checkpoint(into.checkpoint)
            self.reader.snapshot(into)
            into.own("position", self.reader.position())
            into.own("finished", self.reader.finished or self._ended_before)
            into.own("idle", self.idle)

    def checkpoint_complete(self, checkpoint: int) -> None:
        self.reader.checkpoint_complete(checkpoint)

    def checkpoint_aborted(self, checkpoint: int) -> None:
        self.reader.checkpoint_aborted(checkpoint)

    def next_due(self) -> int | None:
        if self.finished:
            return None
        due = [when for when in (self.reader.next_due(), self._allowance.next_due()) if when is not None]
        return min(due, default=None)

    def waits_for_input(self) -> bool:
        return not self.finished and (self.reader.waits_for_input() or self._is_paused())

    def close(self) -> None:
        reader = getattr(self, "reader", None)
        if reader is not None:
            reader.close()


class _SourceOutput:
    """The receiver for a reader: the output of the operator. It remembers whether the source is idle."""

    def __init__(self, operator: SourceOperator) -> None:
        self.chunk = operator.emit_chunk
        self.watermark = operator.output.watermark
        self.end = operator.output.end
        self.marker = operator.output.marker
        self._operator = operator

    def status(self, idle: bool) -> None:
        self._operator.idle = idle
        self._operator.output.status(idle)
