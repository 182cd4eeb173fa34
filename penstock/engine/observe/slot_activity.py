"""The activity of a slot since it was opened: records and bytes of every chain, and the time of every stage."""

from __future__ import annotations

import time
from typing import NamedTuple, Protocol

from penstock.engine.records.elements import Chunk, Receiver
from penstock.graph.plan import Plan


class Traffic:
    """The number of records and bytes in one direction."""

    __slots__ = ("bytes", "records")

    def __init__(self) -> None:
        self.records = 0
        self.bytes = 0


class Figures(NamedTuple):
    """The counters of one subtask of a chain since its slot was opened. Times are in seconds."""

    records_in: int = 0
    bytes_in: int = 0
    records_out: int = 0
    bytes_out: int = 0
    busy: float = 0.0
    held: float = 0.0
    """Seconds in which it could have read more, while operators after it were at work."""
    since: float = 0.0
    """Seconds since the slot was opened."""


class Sending(Protocol):
    """A writer that counts the records and bytes that it sends."""

    sent: Traffic

    def count_sent(self) -> int: ...


class Activity:
    """The counters of a slot. The uid of its first operator stands for a chain."""

    def __init__(self, plan: Plan, index: int) -> None:
        self._opened = time.monotonic()
        self._firsts = {node.chain: node for node in reversed(plan.nodes) if index < node.parallelism}
        self.received = {chain: Traffic() for chain in self._firsts}
        self.sent = {chain: Traffic() for chain in self._firsts}
        """Traffic to another chain without an exchange. Writers count the rest."""
        self._writers: dict[int, list[Sending]] = {chain: [] for chain in self._firsts}
        self._busy = [0.0] * plan.stages
        self._held = [0.0] * plan.stages
        self._began = self._opened
        self._now_busy = [0.0] * plan.stages

    def add_writer(self, chain: int, writer: Sending) -> None:
        """Count the records that a chain sends through a writer."""
        self._writers[chain].append(writer)

    def begin_epoch(self) -> None:
        """Start to measure an epoch."""
        self._began = time.monotonic()
        self._now_busy = [0.0] * len(self._busy)

    def add_work(self, stage: int, seconds: float) -> None:
        """Add seconds of work of a stage in this epoch."""
        self._now_busy[stage] += seconds

    def end_epoch(self, backlog: bool) -> None:
        """Add the times of the epoch. With a backlog, a stage had more to do whenever it was not at work itself."""
        whole = time.monotonic() - self._began
        for stage, seconds in enumerate(self._now_busy):
            self._busy[stage] += seconds
            if backlog:
                self._held[stage] += max(0.0, whole - seconds)

    def figures(self) -> dict[str, tuple[float, ...]]:
        """Return the values of Figures, by the uid of the first operator of a chain.

        They are plain tuples, which are pickled faster.
        """
        since = time.monotonic() - self._opened
        figures: dict[str, tuple[float, ...]] = {}
        for chain, first in self._firsts.items():
            received, records, size = self.received[chain], self.sent[chain].records, 0
            for writer in self._writers[chain]:
                records += writer.count_sent()
                size += writer.sent.bytes
            busy, held = self._busy[first.stage], self._held[first.stage]
            figures[first.uid] = (received.records, received.bytes, records, size, busy, held, since)
        return figures


class Counted:
    """Counts the records from one chain to the next inside a stage."""

    def __init__(self, receiver: Receiver, sent: Traffic, received: Traffic) -> None:
        self._chunk = receiver.chunk
        self._sent, self._received = sent, received
        self.watermark = receiver.watermark
        self.status = receiver.status
        self.end = receiver.end
        self.marker = receiver.marker

    def chunk(self, chunk: Chunk) -> None:
        count = len(chunk)
        self._sent.records += count
        self._received.records += count
        self._chunk(chunk)
