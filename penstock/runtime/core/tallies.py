"""How many records go into and out of every operator of a slot. Counting costs a chunk, not a record."""

from __future__ import annotations

import time
from collections import Counter
from typing import NamedTuple

from penstock.graph.plan import Edge, Node, Plan
from penstock.runtime.core.elements import MIN_TIMESTAMP, Chunk, Receiver


class OperatorFigures(NamedTuple):
    """One operator in one slot, counted since the slot was opened. Times are in milliseconds since 1970."""

    records_in: int = 0
    records_out: int = 0
    input_watermark: int = MIN_TIMESTAMP
    emitted: int | None = None
    """Of a source: when it last emitted something."""
    event_time: int | None = None
    """Of a source: the event time of what it emitted then; None if it is not known."""


class Tally:
    """Counts what goes through one output."""

    def __init__(self, receiver: Receiver) -> None:
        self.records = 0
        self._chunk = receiver.chunk
        self.watermark = receiver.watermark
        self.status = receiver.status
        self.end = receiver.end
        self.marker = receiver.marker

    def chunk(self, chunk: Chunk) -> None:
        self.records += len(chunk)
        self._chunk(chunk)


class SourceTally(Tally):
    """Counts what a source emits, and remembers when that was and the last chunk, until someone asks."""

    emitted: int | None = None
    event_time: int | None = None
    _last: Chunk | None = None

    def chunk(self, chunk: Chunk) -> None:
        self.records += len(chunk)
        self.emitted = time.time_ns() // 1_000_000
        self._last = chunk
        self._chunk(chunk)

    def settle(self) -> None:
        """Find out the event time of the last record; once for an epoch, since it may be in columns."""
        last, self._last = self._last, None
        if last is not None and len(last):
            self.event_time = last.columns.latest() if last.columns is not None else (last.timestamps or (None,))[-1]


class Tallies:
    """The counters of all operators of a slot."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._sent: dict[tuple[int, str | None], Tally] = {}
        """By operator and side output."""
        self.arrived: Counter[int] = Counter()
        """By edge: what came over an exchange."""
        self._told: dict[str, OperatorFigures] = {}

    def counted(self, node: Node, tag: str | None, receiver: Receiver) -> Receiver:
        """A receiver that counts what an operator sends to this one."""
        kind = SourceTally if node.kind == "source" and tag is None else Tally
        tally = self._sent[node.id, tag] = kind(receiver)
        return tally

    def changes(self, nodes: list[Node], watermarks: dict[int, int]) -> dict[str, tuple[int | None, ...]]:
        """By uid: the figures that differ from those of the last call, as plain tuples, which are pickled faster."""
        changed = {}
        for node in nodes:
            figures = self._figures(node, watermarks.get(node.id, MIN_TIMESTAMP))
            if self._told.get(node.uid) != figures:
                self._told[node.uid] = figures
                changed[node.uid] = tuple(figures)
        return changed

    def _figures(self, node: Node, watermark: int) -> OperatorFigures:
        sent = sum(tally.records for (sender, _), tally in self._sent.items() if sender == node.id)
        main = self._sent.get((node.id, None))
        if isinstance(main, SourceTally):
            main.settle()
            return OperatorFigures(sent, sent, watermark, main.emitted, main.event_time)
        return OperatorFigures(sum(map(self._entered, self._plan.incoming[node.id])), sent, watermark)

    def _entered(self, edge: Edge) -> int:
        """An edge inside a slot has no counter of its own: what was sent has arrived."""
        sent = self._sent.get((edge.source, edge.tag)) if edge.local else None
        return sent.records if sent is not None else self.arrived[edge.id]
