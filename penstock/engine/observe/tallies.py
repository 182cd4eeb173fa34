"""How many records go into and out of every operator of a slot. Counting costs a chunk, not a record."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import NamedTuple, Protocol

from penstock.engine.records.elements import Chunk, Receiver
from penstock.graph.plan import Node, Plan


class OperatorFigures(NamedTuple):
    """One operator in one slot, counted since the slot was opened. Times are in milliseconds since 1970."""

    records_in: int = 0
    records_out: int = 0
    input_watermark: int | None = None
    """None for a source, which has no input."""
    emitted: int | None = None
    """Of a source, or where records get their event time: when it last emitted something."""
    event_time: int | None = None
    """Of such an operator: the event time of what it emitted then; None if it is not known."""


Told = tuple[int | None, ...]
"""Values of OperatorFigures."""


class Watermarked(Protocol):
    """What is in front of an operator and knows how far event time has come there."""

    watermark: int


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


class AgedTally(Tally):
    """Counts what is emitted, and remembers when that was and the last chunk, until someone asks."""

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


class _Counted:
    """What is asked about one operator at the end of every epoch."""

    __slots__ = ("aged", "edges", "entered", "gate", "sent", "told", "uid")

    def __init__(self, uid: str, gate: Watermarked | None, sent: list[Tally]) -> None:
        self.uid = uid
        self.gate = gate
        self.sent = sent
        self.aged = next((tally for tally in sent if isinstance(tally, AgedTally)), None)
        self.entered: list[Tally] = []
        """Outputs in the same slot that end here: what was sent has arrived."""
        self.edges: list[int] = []
        self.told: Told = ()

    def figures(self, arrived: Mapping[int, int]) -> Told:
        """The values of OperatorFigures. Idle epochs come here, too: loops are the quickest for one or two items."""
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
        """By operator and side output."""
        self.arrived: Counter[int] = Counter()
        """By edge: what came over an exchange."""
        self._operators: list[_Counted] = []

    def count_output(self, node: Node, tag: str | None, receiver: Receiver, aged: bool) -> Receiver:
        """A receiver that counts what an operator sends to this one; `aged` if it is also asked how old that is."""
        kind = AgedTally if aged else Tally
        tally = self._sent[node.id, tag] = kind(receiver)
        return tally

    def changes(self, nodes: Sequence[Node], gates: Mapping[int, Watermarked]) -> dict[str, Told]:
        """By uid: the figures that differ from those of the last call, as plain tuples, which are pickled faster."""
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
