"""Event time of a table: watermarks from an expression over its rows."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.engine.operators.operator import OperatorContext
from penstock.engine.records.elements import MAX_TIMESTAMP, MIN_TIMESTAMP
from penstock.engine.snapshots.snapshot_parts import SubtaskSnapshot
from penstock.errors import RecordError
from penstock.table.logical.rex import Rex
from penstock.table.operators.base.compiled_expressions import evaluator, moment_of
from penstock.table.operators.base.output_form import OutputForm
from penstock.table.operators.base.table_operator import TableOperator
from penstock.table.operators.io.row_conversions import millis_of


class WatermarkOperator(TableOperator):
    """Sends watermarks: after every row that advances them if the interval is 0, else at the end of an epoch.

    It drops watermarks from upstream, except the last one. BATCH mode has only the last one. If no row has come for
    `idle_timeout` milliseconds, the operator is idle until the next row.
    """

    def __init__(
        self,
        form: OutputForm,
        rowtime: int,
        expr: Rex,
        interval: int | None,
        zone: str,
        idle_timeout: int | None = None,
    ) -> None:
        super().__init__(form)
        self.rowtime = rowtime
        self.expr = expr
        self.interval = interval
        self.zone = zone
        self.idle_timeout = idle_timeout

    def open(self, context: OperatorContext) -> None:
        super().open(context)
        self._watermark_of = evaluator(self.expr)
        self._interval = context.watermark_interval if self.interval is None else self.interval
        self._reached = MIN_TIMESTAMP
        """The highest watermark that the rows so far allow, sent or not."""
        self._ended = False
        self._idle = False
        self._active_at = context.clock.now
        if context.restored is not None and not context.restored.drained:
            own = context.restored.own()
            found = [own] if own else context.restored.all_own()
            reached = [before["reached"] for before in found if before]
            self._reached = self.current_watermark = min(reached, default=MIN_TIMESTAMP)

    def snapshot(self, into: SubtaskSnapshot) -> None:
        into.own("reached", self._reached)

    def resume_at(self, watermark: int) -> None:
        """Ignore the watermark of the input. The operator has its own event time."""

    def batch(self, batch: pa.RecordBatch) -> None:
        if batch.column(self.rowtime).null_count:
            name = batch.schema.names[self.rowtime]
            raise RecordError(f"the event time {name} of a row is NULL: every row needs a time")
        if self.idle_timeout is not None:
            self._active_at = self.context.clock.now
            if self._idle:
                self.status(False)
        allowed = millis_of(self._watermark_of(batch, moment_of(self, self.zone)))
        if self._interval == 0 and not self.context.batch:
            self._cut(batch, allowed)
            return
        highest = pc.max(allowed).as_py()
        if highest is not None:
            self._reached = max(self._reached, highest)
        self.send(batch)

    def _cut(self, batch: pa.RecordBatch, allowed: pa.Array) -> None:
        """Send the rows up to each one that advances the watermark, and then the watermark."""
        marks = allowed.fill_null(MIN_TIMESTAMP).to_numpy(zero_copy_only=False)
        highest = np.maximum.accumulate(np.maximum(marks, self._reached))
        before = np.concatenate(([self._reached], highest[:-1]))
        start = 0
        for position in np.flatnonzero(highest > before).tolist():
            self.send(batch.slice(start, position + 1 - start))
            start = position + 1
            self._reached = int(highest[position])
            self._advance()
        self.send(batch.slice(start))

    def _advance(self) -> None:
        if self._reached > self.current_watermark:
            self.current_watermark = self._reached
            self.output.watermark(self._reached)

    def watermark(self, timestamp: int) -> None:
        if timestamp == MAX_TIMESTAMP:
            super().watermark(timestamp)

    def status(self, idle: bool) -> None:
        self._idle = idle
        super().status(idle)

    def finish(self) -> None:
        self._ended = True

    def end_epoch(self) -> None:
        if self._ended or self.context.batch:
            return
        self._advance()
        due = self.next_due()
        if due is not None and due <= self.context.clock.now:
            self.status(True)

    def next_due(self) -> int | None:
        """Return the time at which the operator becomes idle, or None."""
        if self.idle_timeout is None or self._idle or self._ended or self.context.batch:
            return None
        return self._active_at + self.idle_timeout
