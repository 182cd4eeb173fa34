"""The operators of a loop: the head that reads its feedback edge, the sinks that write to it, and its input."""

from __future__ import annotations

import logging
import pickle
from collections.abc import Iterator
from typing import Any

from penstock.engine.operators.feedback.feedback_queue import (
    FeedbackOrder,
    FeedbackQueue,
    FeedbackRecords,
    FeedbackReport,
    distribute,
)
from penstock.engine.operators.operator import Operator, OperatorContext
from penstock.engine.operators.slot_objects import forget_slot_object, slot_object
from penstock.engine.operators.sources.source_operator import (
    CHUNK_RECORDS,
    Budget,
    Enumerator,
    Reader,
    Source,
    SourceOperator,
)
from penstock.engine.records.elements import MAX_TIMESTAMP, Chunk, Receiver, Timestamps, Values
from penstock.engine.snapshots.snapshot_parts import SubtaskSnapshot
from penstock.errors import ProgramError

log = logging.getLogger("penstock.job")


class FeedbackEnumerator(Enumerator):
    """The driver's part of a loop. It ends the loop when the edge is quiet in all slots after the same epoch."""

    exhausted = True

    def __init__(self) -> None:
        self._reports: dict[int, FeedbackReport] = {}
        self._attempt = -1
        self._parallelism = 0
        self._order = FeedbackOrder(False, False)

    def put(self, payload: bytes) -> None:
        """Take the report of a slot."""
        report: FeedbackReport = pickle.loads(payload)
        if report.attempt < self._attempt:
            return
        if report.attempt > self._attempt:
            self._attempt, self._reports = report.attempt, {}
        self._reports[report.subtask] = report
        reports = self._reports.values()
        agree = len(reports) == self._parallelism and len({each.epoch for each in reports}) == 1
        order = FeedbackOrder(
            ends=self._order.ends or (agree and all(each.is_quiet for each in reports)),
            holds_sources=any(each.is_full for each in reports),
        )
        if order != self._order:
            self._order = order
            self.exhausted = False
            self.news()

    def assign(self, parallelism: int, max_records: int) -> list[Any]:
        self._parallelism = parallelism
        if self.exhausted:
            return [None] * parallelism
        self.exhausted = True
        return [self._order] * parallelism


class FeedbackSource(Source):
    """The source at the head of a loop."""

    def __init__(self, edge: str, quiet_millis: int) -> None:
        """Create the source of the edge with this name.

        The loop ends if its input has ended, the edge is empty, and nothing has come for `quiet_millis`.
        """
        self.edge = edge
        self.quiet_millis = quiet_millis
        self.is_closed = False
        """True if the program has said which stream returns to the head."""
        self._enumerator: FeedbackEnumerator | None = None

    def reader(self, context: OperatorContext, position: FeedbackRecords | None = None) -> Reader:
        return FeedbackReader(self, context, position)

    def redistribute(self, positions: list[FeedbackRecords], parallelism: int) -> list[FeedbackRecords]:
        return distribute(positions, parallelism)

    def enumerator(self) -> Enumerator:
        if not self.is_closed:
            raise ProgramError("iterate() was called without close_with(...), so that no record returns to the head")
        self._enumerator = FeedbackEnumerator()
        return self._enumerator

    def put(self, payload: bytes) -> None:
        """Take the report of a slot. The driver calls this."""
        if self._enumerator is not None:
            self._enumerator.put(payload)

    def __getstate__(self) -> dict[str, Any]:
        """Leave out the driver's part, which stays with the driver."""
        return {**self.__dict__, "_enumerator": None}


class FeedbackReader(Reader):
    """Reads the records that arrived at the end of the loop in earlier epochs."""

    def __init__(self, source: FeedbackSource, context: OperatorContext, position: FeedbackRecords | None) -> None:
        self._edge = source.edge
        self._quiet_millis = source.quiet_millis
        self._context = context
        self._has_begun = False
        self.order = FeedbackOrder(False, False)
        self.queue = slot_object(context, source.edge, FeedbackQueue)
        if position is not None:
            self.queue.restore(FeedbackRecords(*position))

    def poll(self, output: Receiver, budget: Budget) -> int:
        if not self._has_begun:
            # The event time of a loop is that of its input. Records that return must not hold it back.
            output.watermark(MAX_TIMESTAMP)
            self._has_begun = True
        if budget.payload is not None:
            self.order, budget.payload = budget.payload, None
            self.finished = self.queue.is_over = self.order.ends
        chunk = self.queue.take(min(budget.records, CHUNK_RECORDS))
        if chunk.values:
            output.chunk(chunk)
        return len(chunk.values)

    def is_quiet(self) -> bool:
        """Return True if the loop may end as far as this slot knows."""
        due = self._end_of_quiet()
        return due is not None and due <= self._context.clock.now

    def next_due(self) -> int | None:
        """Return the processing time at which the edge will have been quiet for long enough."""
        due = self._end_of_quiet()
        return due if due is not None and due > self._context.clock.now else None

    def _end_of_quiet(self) -> int | None:
        if self.finished or len(self.queue) or not self.queue.input_has_ended:
            return None
        return self.queue.changed_at + self._quiet_millis

    def position(self) -> FeedbackRecords:
        return self.queue.records()

    def close(self) -> None:
        forget_slot_object(self._context, self._edge)


class FeedbackHead(SourceOperator):
    """The head of a loop. It tells the driver when the edge is quiet or full in its slot."""

    source: FeedbackSource
    reader: FeedbackReader

    def open(self, context: OperatorContext) -> None:
        super().open(context)
        queue = self.reader.queue
        queue.is_over = self.finished
        queue.on_change = self._ask_for_epoch
        self._epochs = 0
        self._was_full = False

    def _ask_for_epoch(self) -> None:
        self.backlog = True

    def run(self, budget: Budget) -> None:
        queue = self.reader.queue
        self._epochs += 1
        if not self.finished and (queue.input_has_ended or queue.is_full != self._was_full):
            self._report()
        queue.begin_epoch()
        super().run(budget)
        # The epoch after the last record tells the driver that the edge is quiet.
        self.backlog = self.backlog or self.read > 0 or bool(len(queue))
        self._hold_sources(not self.finished and (queue.is_full or self.reader.order.holds_sources))

    def _hold_sources(self, is_full: bool) -> None:
        """Let the other sources of the slot wait, or read on."""
        if is_full:
            self.context.alignment.full.add(self.context.uid)
        else:
            self.context.alignment.full.discard(self.context.uid)

    def _report(self) -> None:
        """Tell the driver of the state at the end of the epoch before."""
        queue, context = self.reader.queue, self.context
        self._was_full = queue.is_full
        report = FeedbackReport(context.attempt, context.subtask, self._epochs, self.reader.is_quiet(), self._was_full)
        assert context.results is not None
        context.results(context.uid, pickle.dumps(report))

    def settle(self) -> None:
        super().settle()
        self.backlog = bool(len(self.reader.queue))

    def _is_paused(self) -> bool:
        return False

    def drain(self) -> None:
        """End the loop here. Records on the edge go through it once more, and then no record returns."""
        self.reader.queue.is_over = True
        self.reader.queue.begin_epoch()
        while self.reader.poll(self._out, Budget(CHUNK_RECORDS, 0.0)):
            pass
        super().drain()


class FeedbackInput(Operator):
    """Passes on the stream that enters a loop, and notes its end."""

    def __init__(self, edge: str) -> None:
        super().__init__()
        self.edge = edge
        self._has_ended = False

    def open(self, context: OperatorContext) -> None:
        super().open(context)
        self._queue = slot_object(context, self.edge, FeedbackQueue)
        restored = context.restored
        own = restored.own() if restored is not None and restored.continued else None
        if own is not None and own["ended"]:
            self.finish()

    def chunk(self, chunk: Chunk) -> None:
        self.emit_chunk(chunk)

    def finish(self) -> Iterator[None] | None:
        self._has_ended = True
        self._queue.end_input(self.context.clock.now)
        return None

    def snapshot(self, into: SubtaskSnapshot) -> None:
        into.own("ended", self._has_ended)


class FeedbackSink(Operator):
    """The end of a loop: it puts records onto the feedback edge of its slot."""

    def __init__(self, edge: str) -> None:
        super().__init__()
        self.edge = edge

    def open(self, context: OperatorContext) -> None:
        super().open(context)
        self._queue = slot_object(context, self.edge, FeedbackQueue)
        self._has_warned = False

    def records(self, values: Values, timestamps: Timestamps) -> None:
        if not self._queue.is_over:
            self._queue.add(values, timestamps, self.context.clock.now)
        elif not self._has_warned:
            self._has_warned = True
            log.warning("%s: the loop has ended, so records that reach its end now do not return", self.context.name)

    def watermark(self, timestamp: int) -> None:
        """Ignore watermarks: they do not return to the head."""
