"""Log lines that travel from a slot to the driver, and their form in the driver."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import NamedTuple


@dataclass(frozen=True)
class Origin:
    """Place in a job where a line was written."""

    job_id: str = ""
    job_name: str = ""
    operator: str = ""
    """Name of the operator. It is empty if no operator was at work, as in a thread of a library."""
    uid: str = ""
    subtask: int = 0
    parallelism: int = 0
    attempt: int = 0

    def __str__(self) -> str:
        number = f"{self.subtask + 1}/{self.parallelism}"
        return f"{self.job_name}: {self.operator} ({number})" if self.operator else f"{self.job_name}: slot {number}"


class Line(NamedTuple):
    """A record of `logging` as plain values."""

    created: float
    level: int
    logger: str
    text: str
    origin: Origin
    error: str = ""
    """Text of a traceback."""
    path: str = ""
    line: int = 0
    function: str = ""
    thread: str = ""
    process: int = 0


class SlotRecord(logging.LogRecord):
    """A record from a slot. Its message names its origin, whatever format a handler has."""

    origin: Origin
    text: str

    def getMessage(self) -> str:  # noqa: N802 - the name is that of logging
        return f"[{self.origin}] {self.text}"


def record_of(line: Line) -> SlotRecord:
    """Return the line as a record of this process."""
    record = SlotRecord(line.logger, line.level, line.path, line.line, line.text, (), None, line.function)
    record.origin, record.text = line.origin, line.text
    record.created, record.msecs = line.created, (line.created - int(line.created)) * 1000
    record.relativeCreated = max(0.0, record.relativeCreated)
    record.exc_text = line.error or None
    record.threadName, record.process, record.processName = line.thread, line.process, f"slot {line.origin.subtask}"
    return record


def show(line: Line) -> None:
    """Pass a line to the handlers of this process. Its level was checked where it was written."""
    logging.getLogger(line.logger).handle(record_of(line))


class Allowance:
    """Limit for the number of lines: a number each second, and twice as many at once after a quiet time."""

    def __init__(self, per_second: float, now: float) -> None:
        self._per_second = per_second
        self._left = 2 * per_second
        self._last = now

    def takes(self, now: float) -> bool:
        """Return True if a line may pass now, and count it."""
        self._left = min(2 * self._per_second, self._left + (now - self._last) * self._per_second)
        self._last = now
        if self._left < 1:
            return False
        self._left -= 1
        return True
