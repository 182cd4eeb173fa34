"""Sources inside a slot: a source is plain data that makes a reader, and the operator drains it within a budget."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

from penstock.common.typeinfo import TypeInformation
from penstock.runtime.elements import MAX_TIMESTAMP, Receiver
from penstock.runtime.failures import USER_ERRORS
from penstock.runtime.operator import Operator, OperatorContext

CHUNK_RECORDS = 4096


@dataclass
class Budget:
    """How much one subtask of a source may read in one epoch."""

    records: int
    deadline: float
    """On time.monotonic()."""
    wait: float = 0.0
    """Seconds to wait for the first record when there is none."""
    payload: Any = None
    """What the driver's enumerator assigned to this subtask."""

    def spent(self) -> bool:
        return self.records <= 0 or time.monotonic() >= self.deadline


class Reader(ABC):
    """One subtask's share of a source. `finished` becomes true after the last record of a bounded source."""

    finished = False

    @abstractmethod
    def poll(self, output: Receiver, budget: Budget) -> int:
        """Emit at most one chunk and return its size; 0 means that there is nothing to read now."""

    def next_due(self) -> int | None:
        """The processing time at which there will be something to read, where that is known."""
        return None

    def waits_for_input(self) -> bool:
        """Whether only an epoch can tell if input has arrived, so that the driver must look from time to time."""
        return False

    def position(self) -> Any:
        """From where a new reader would have to go on."""
        return None

    def close(self) -> None:  # noqa: B027 - most readers hold nothing
        """Stop reading."""


class Enumerator(ABC):
    """The driver's part of a source that is fed by the driver: asked once an epoch what each subtask shall read.

    `exhausted` becomes true when there is nothing left to assign.
    """

    exhausted = False

    @abstractmethod
    def assign(self, parallelism: int, max_records: int) -> list[Any]:
        """A payload per subtask."""

    def close(self) -> None:  # noqa: B027 - most hold nothing
        """The job has ended."""


class Source(ABC):
    """A source as plain data."""

    bounded = True
    parallel = True

    @abstractmethod
    def reader(self, context: OperatorContext) -> Reader:
        """The reader of one subtask."""

    def enumerator(self) -> Enumerator | None:
        """The driver's part, for sources that have one."""
        return None


class SourceOperator(Operator):
    """Reads one subtask's share of a source, a bounded slice an epoch."""

    def __init__(self, source: Source, output_type: TypeInformation | None = None) -> None:
        super().__init__(output_type)
        self.source = source
        self.aligned: tuple[tuple[str, str], ...] = ()

    def open(self, context: OperatorContext) -> None:
        super().open(context)
        try:
            self.reader = self.source.reader(context)
        except USER_ERRORS as error:
            raise self.failed(error, []) from error
        self._out = _SourceOutput(self)
        self.backlog = False
        self.finished = False

    def run(self, budget: Budget) -> None:
        """One epoch's reading."""
        self.backlog = False
        while not (self.finished or self._paused()):
            try:
                taken = self.reader.poll(self._out, budget)
            except USER_ERRORS as error:
                raise self.failed(error, []) from error
            budget.records -= taken
            if self.reader.finished:
                self._end()
            elif not taken:
                return
            elif budget.spent():
                self.backlog = True
                return

    def _paused(self) -> bool:
        alignment = self.context.alignment
        return alignment is not None and any(alignment.blocked(group, uid) for group, uid in self.aligned)

    def _end(self) -> None:
        self.finished = True
        self.output.watermark(MAX_TIMESTAMP)
        self.output.end()

    def next_due(self) -> int | None:
        return None if self.finished else self.reader.next_due()

    def waits_for_input(self) -> bool:
        return not self.finished and (self.reader.waits_for_input() or self._paused())

    def close(self) -> None:
        reader = getattr(self, "reader", None)
        if reader is not None:
            reader.close()


class _SourceOutput:
    """What a reader writes into: the operator's output, with records checked against the declared type."""

    def __init__(self, operator: SourceOperator) -> None:
        self.records = operator.emit
        self.watermark = operator.output.watermark
        self.status = operator.output.status
        self.end = operator.output.end
