"""The number of records into and out of every operator of a slot. Counting costs time per chunk, not per record."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import NamedTuple, Protocol

from penstock.engine.records.elements import Chunk, Receiver
from penstock.graph.plan import Node, Plan


class OperatorFigures(NamedTuple):
    """The counters of one operator in one slot since the slot was opened. Times are in milliseconds since 1970."""

    records_in: int = 0
    records_out: int = 0
    input_watermark: int | None = None
    """The watermark at the input; None for a source, which has no input."""
    emitted: int | None = None
    """The time of the last output of a source, or of an operator that gives records their event time."""
    event_time: int | None = None
    """The event time of that output; None if it is not known."""


Told = tuple[int | None, ...]
"""The values of OperatorFigures."""


class Watermarked(Protocol):
    """The gate of an operator, which knows its event time."""

    watermark: int


class Tally:
    """Counts the records of one output."""

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


class AgedTally(Tally):
    """Counts emitted records, and remembers the last chunk and its time until `settle`."""

    emitted: int | None = None
    event_time: int | None = None
    _last: Chunk | None = None

    def chunk(self, chunk: Chunk) -> None:
        self.records += len(chunk)
        self.emitted = time.time_ns() // 1_000_000
        self._last = chunk
        self._chunk(chunk)

    def settle(self) -> None:
        """Find out the event time of the last record.

        This happens once per epoch, since the record may be in columns.
        """
        last, self._last = self._last, None
        if last is not None and len(last):
            self.event_time = last.columns.latest() if last.columns is not None else (last.timestamps or (None,))[-1]


class _Counted:
    """The counters of one operator, which are read at the end of every epoch."""

    __slots__ = ("aged", "edges", "entered", "gate", "sent", "told", "uid")

    def __init__(self, uid: str, gate: Watermarked | None, sent: list[Tally]) -> None:
        self.uid = uid
        self.gate = gate
        self.sent = sent
        self.aged = next((tally for tally in sent if isinstance(tally, AgedTally)), None)
        self.entered: list[Tally] = []
        """Outputs of other operators in the same slot that end here: sent records have arrived."""
        self.edges: list[int] = []
        self.told: Told = ()

    def figures(self, arrived: Mapping[int, int]) -> Told:
        """Return the values of OperatorFigures.

        This also runs in idle epochs, so it must be fast. For one or two items, loops are faster than sum().
        """
        sent = entered = 0
        for tally in self.sent:
            sent += tally.records
        for tally in self.entered:
            entered += tally.records
        for edge in self.edges:
            entered += arrived[edge]
        watermark = None if self.gate is None else self.gate.watermark
        if self.aged is None:
            return entered, sent, watermark
        self.aged.settle()
        return sent if self.gate is None else entered, sent, watermark, self.aged.emitted, self.aged.event_time


class Tallies:
    """The counters of all operators of a slot."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._sent: dict[tuple[int, str | None], Tally] = {}
        """Tallies by operator and side output."""
        self.arrived: Counter[int] = Counter()
        """Number of records that came over an exchange, by edge."""
        self._operators: list[_Counted] = []

    def count_output(self, node: Node, tag: str | None, receiver: Receiver, aged: bool) -> Receiver:
        """Return a receiver that counts the records of an operator and passes them to the given one.

        With `aged`, it also measures their age.
        """
        kind = AgedTally if aged else Tally
        tally = self._sent[node.id, tag] = kind(receiver)
        return tally

    def changes(self, nodes: Sequence[Node], gates: Mapping[int, Watermarked]) -> dict[str, Told]:
        """Return the figures that have changed since the last call, by uid.

        They are plain tuples, which are pickled faster.
        """
        if not self._operators:
            self._operators = [self._counters_of(node, gates.get(node.id)) for node in nodes]
        changed = {}
        for operator in self._operators:
            figures = operator.figures(self.arrived)
            if figures != operator.told:
                operator.told = changed[operator.uid] = figures
        return changed

    def _counters_of(self, node: Node, gate: Watermarked | None) -> _Counted:
        sent = [tally for (sender, _), tally in self._sent.items() if sender == node.id]
        counted = _Counted(node.uid, gate, sent)
        for edge in self._plan.incoming[node.id]:
            tally = self._sent.get((edge.source, edge.tag)) if edge.local else None
            if tally is not None:
                counted.entered.append(tally)
            else:
                counted.edges.append(edge.id)
        return counted
