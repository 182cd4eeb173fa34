"""The bases of a query's operators: they receive and send batches, and handle state by key and event time."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import pyarrow as pa

from penstock.api.functions.key_selectors import ColumnKeys
from penstock.api.state.descriptors import ValueStateDescriptor
from penstock.engine.operators.function_operator import FunctionOperator
from penstock.engine.operators.operator import Operator, OperatorContext
from penstock.engine.operators.timers import Timers
from penstock.engine.records.columns import Columns
from penstock.engine.records.elements import Chunk
from penstock.engine.records.failures import USER_ERRORS
from penstock.engine.state.tables import Layout, Table
from penstock.table.operators.base.output_form import OutputForm
from penstock.table.operators.base.query_batches import INSERT, UPDATE_AFTER, Held, batch_of, concatenate
from penstock.table.types.arrow_forms import KIND

MOST_HELD = 1 << 17
"""Maximum number of rows that are held back within an epoch."""


class Backlog:
    """Batches that are held back to be processed as one."""

    def __init__(self) -> None:
        self._batches: list[pa.RecordBatch] = []
        self._rows = 0

    def add(self, batch: pa.RecordBatch) -> bool:
        """Add a batch. Return True if there are enough rows to process them now."""
        self._batches.append(batch)
        self._rows += batch.num_rows
        return self._rows >= MOST_HELD

    def take(self) -> pa.RecordBatch | None:
        """Remove all batches and return them as one, or None if there are none."""
        if not self._batches:
            return None
        whole, self._batches, self._rows = concatenate(self._batches), [], 0
        return whole


class TableOperator(Operator, ABC):
    """An operator without state. A subclass processes a batch in `batch`."""

    def __init__(self, form: OutputForm) -> None:
        super().__init__()
        self.form = form
        self.schema: pa.Schema = form.schema

    def open(self, context: OperatorContext) -> None:
        super().open(context)
        self.emit_chunk = self.form.check_before(self.output.chunk)

    def chunk(self, chunk: Chunk) -> None:
        assert chunk.columns is not None
        try:
            self.batch(chunk.columns.batch)
        except USER_ERRORS as error:
            raise self.failure(error, []) from error

    @abstractmethod
    def batch(self, batch: pa.RecordBatch) -> None:
        """Process a batch of the only input."""

    def send(self, batch: pa.RecordBatch) -> None:
        """Send a batch to the output. Send nothing if it is empty."""
        if batch.num_rows:
            self.emit_chunk(Chunk.of(Columns(batch)))


class HoldingLocalOperator(TableOperator, ABC):
    """Holds its input back until the watermark advances or the epoch ends, for the first phase before an exchange."""

    def open(self, context: OperatorContext) -> None:
        super().open(context)
        self._backlog = Backlog()

    def batch(self, batch: pa.RecordBatch) -> None:
        if self._backlog.add(batch):
            self._process()

    def _process(self) -> None:
        whole = self._backlog.take()
        if whole is not None:
            self.whole(whole)

    @abstractmethod
    def whole(self, batch: pa.RecordBatch) -> None:
        """Process everything that was held back, as one batch."""

    def _release(self) -> None:
        try:
            self._process()
        except USER_ERRORS as error:
            raise self.failure(error, []) from error

    def watermark(self, timestamp: int) -> None:
        self._release()
        super().watermark(timestamp)

    def status(self, idle: bool) -> None:
        """Send held rows before the status. Event time advances without an idle stream, and the rows would be late."""
        self._release()
        super().status(idle)

    def end_epoch(self) -> None:
        self._release()

    def finish(self) -> None:
        self._release()


class KeyedTableOperator(FunctionOperator):
    """An operator with state by key. It gathers output as held rows, and sends it after every batch and watermark.

    In BATCH mode input comes in any order, with no watermark before the last one.
    """

    timers: Timers
    only_final = False
    """True if changes are summed up and only the remaining rows are sent at the end. BATCH mode has no changelogs."""

    def __init__(self, keys: Sequence[int], form: OutputForm) -> None:
        super().__init__(None, None, ColumnKeys(tuple(keys)))
        self.form = form
        self.schema: pa.Schema = form.schema
        self.changelog = KIND in self.schema.names[-1:]

    def open(self, context: OperatorContext) -> None:
        super().open(context)
        self.emit_chunk = self.form.check_before(self.output.chunk)
        assert self.keyed is not None
        self.timers = Timers(context.clock, self.keyed)
        self.gathered: list[Held] = []
        self._left: Counter[Held] = Counter()
        """With `only_final`, the number of copies of each row."""

    def table(self, name: str, layout: Layout | None = None) -> Table:
        """Return the table of a state."""
        assert self.keyed is not None
        return self.keyed.table(ValueStateDescriptor(name), layout)

    def batch_keys(self) -> Sequence[Callable[[Any], Any] | None]:
        return ()

    # --- input ---
    def chunk(self, chunk: Chunk) -> None:
        self.take(self.batch, chunk)

    def take(self, how: Callable[[pa.RecordBatch], None], chunk: Chunk) -> None:
        """Let a method process a batch, and send the output that it gathered."""
        assert chunk.columns is not None
        self.do(how, chunk.columns.batch)

    def batch(self, batch: pa.RecordBatch) -> None:
        """Process a batch of the only input."""
        raise NotImplementedError

    def do(self, how: Callable[..., None], *what: Any) -> None:
        """Call a method, and send the output that it gathered. An error names this operator."""
        try:
            how(*what)
        except USER_ERRORS as error:
            self.gathered.clear()
            raise self.failure(error, []) from error
        self.flush()

    def gather(self, kind: int, row: Held) -> None:
        """Gather a change for the output."""
        if self.only_final:
            self._left[row] += 1 if kind in {INSERT, UPDATE_AFTER} else -1
        elif self.changelog:
            self.gathered.append((*row, kind))
        else:
            self.gathered.append(row)

    def flush(self) -> None:
        """Send the gathered output."""
        if self.gathered:
            rows, self.gathered = self.gathered, []
            self.send(batch_of(rows, self.schema))

    def send(self, batch: pa.RecordBatch) -> None:
        """Send a batch to the output. Send nothing if it is empty."""
        if batch.num_rows:
            self.emit_chunk(Chunk.of(Columns(batch)))

    # --- time ---
    def watermark(self, timestamp: int) -> None:
        """Fire timers that are due before the watermark is passed on."""
        self.current_watermark = self.timers.watermark = timestamp
        self.do(self.timers.event_time.fire, timestamp, self.on_event_time)
        self.output.watermark(timestamp)

    def resume_at(self, watermark: int) -> None:
        self.current_watermark = self.timers.watermark = watermark

    def advance_processing_time(self, now: int) -> None:
        self.do(self.timers.processing_time.fire_once, now, self.on_processing_time)

    def next_due(self) -> int | None:
        return self.timers.processing_time.next_time()

    def on_event_time(self, time: int, key: Any, namespace: Any) -> None:
        """Process an event-time timer that fires."""
        raise NotImplementedError(f"{type(self).__name__} does not handle timers, but a timer has fired")

    def on_processing_time(self, time: int, key: Any, namespace: Any) -> None:
        """Process a processing-time timer that fires."""
        raise NotImplementedError(f"{type(self).__name__} does not handle timers, but a timer has fired")

    def finish(self) -> None:
        self.do(self.at_end)
        if self._left:
            rows = list(self._left.elements())
            self._left.clear()
            self.send(batch_of(rows, self.schema))

    def at_end(self) -> None:
        """Gather the remaining output after all input has come. BATCH mode keeps output until then."""


class HoldingTableOperator(KeyedTableOperator, ABC):
    """Holds its input back until the watermark advances or the epoch ends, so that Python processes each key once."""

    def open(self, context: OperatorContext) -> None:
        super().open(context)
        self._backlog = Backlog()

    def batch(self, batch: pa.RecordBatch) -> None:
        if self._backlog.add(batch):
            self.release()

    def release(self) -> None:
        """Process the input that was held back."""
        whole = self._backlog.take()
        if whole is not None:
            self.whole(whole)

    @abstractmethod
    def whole(self, batch: pa.RecordBatch) -> None:
        """Process everything that was held back, as one batch."""

    def watermark(self, timestamp: int) -> None:
        self.do(self.release)
        super().watermark(timestamp)

    def status(self, idle: bool) -> None:
        """Send held rows before the status. Event time advances without an idle stream, and the rows would be late."""
        self.do(self.release)
        super().status(idle)

    def end_epoch(self) -> None:
        self.do(self.release)
        super().end_epoch()

    def at_end(self) -> None:
        self.release()


class TwoInputTableOperator(KeyedTableOperator, ABC):
    """An operator with two inputs that share state by key."""

    def __init__(self, keys: tuple[Sequence[int], Sequence[int]], form: OutputForm) -> None:
        super().__init__(keys[0], form)
        self.selectors = (ColumnKeys(tuple(keys[0])), ColumnKeys(tuple(keys[1])))

    def inputs(self) -> Sequence[Callable[[Chunk], None]]:
        return (lambda chunk: self.take(self.left, chunk), lambda chunk: self.take(self.right, chunk))

    @abstractmethod
    def left(self, batch: pa.RecordBatch) -> None:
        """Process a batch of the first input."""

    @abstractmethod
    def right(self, batch: pa.RecordBatch) -> None:
        """Process a batch of the second input."""
