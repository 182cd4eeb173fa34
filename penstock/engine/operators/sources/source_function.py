"""The source of a Python SourceFunction, whose run loop lives in a thread of the slot and fills a bounded buffer."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from itertools import chain
from typing import Any

from penstock.api.functions.source_functions import ParallelSourceFunction, SourceContext, SourceFunction
from penstock.base.arguments import invalid_argument
from penstock.common.watermark_strategy import Watermark
from penstock.engine.operators.functions.slot_contexts import SlotRuntimeContext, open_function
from penstock.engine.operators.operator import OperatorContext
from penstock.engine.operators.participation import Participation
from penstock.engine.operators.sources.readers import dealt_out
from penstock.engine.operators.sources.source_operator import CHUNK_RECORDS, Budget, Reader, Source
from penstock.engine.records.elements import Chunk, Receiver, whole_millis
from penstock.engine.snapshots.snapshot_parts import SubtaskSnapshot
from penstock.errors import ContextError

BUFFERED_ELEMENTS = 65_536
LOCK_SECONDS = 30
_RECORD, _WATERMARK, _IDLE = range(3)
Element = tuple[int, Any, int | None]
"""(kind, value, timestamp)"""
Position = tuple[bool, list[Element]]
"""Whether the source is active, and its emitted elements that have not been read yet."""


@dataclass
class FunctionSource(Source):
    """A source that runs a SourceFunction. It is parallel if the function is a ParallelSourceFunction."""

    function: SourceFunction
    bounded = False

    @property
    def parallel(self) -> bool:  # type: ignore[override]
        return isinstance(self.function, ParallelSourceFunction)

    def reader(self, context: OperatorContext, position: Any = None) -> Reader:
        return FunctionReader(self.function, context, position)

    def redistribute(self, positions: list[Any], parallelism: int) -> list[Any]:
        """Distribute the elements that waited in the buffers. The function's own state tells where it continues."""
        dealt = dealt_out([waiting for _, waiting in positions], parallelism)
        active = not all(not active for active, _ in positions)
        return [(active, list(chain.from_iterable(part))) for part in dealt]


class Cancelled(BaseException):
    """Ends a run loop that tries to emit after it was cancelled.

    It is not an Exception, so `except Exception` does not catch it.
    """


class BufferedSourceContext(SourceContext):
    """The context into which the run loop emits. A full buffer makes the loop wait, which is the backpressure."""

    def __init__(
        self, news: Callable[[], None] = lambda: None, room: int | None = None, patience: float | None = None
    ) -> None:
        """Create an empty buffer for at most `room` elements.

        The buffer calls `news` when an element arrives and no other is waiting. A checkpoint waits for the lock at most
        `patience` seconds.
        """
        self._news = news
        self._room = BUFFERED_ELEMENTS if room is None else room
        self._patience = LOCK_SECONDS if patience is None else patience
        self._changed = threading.Condition()
        self._elements: deque[Element] = deque()
        self._lock = threading.RLock()
        self._closed = False
        self._unbounded = False
        self.done = False
        self.error: BaseException | None = None

    def collect(self, value: Any) -> None:
        self._put((_RECORD, value, None))

    def collect_with_timestamp(self, value: Any, timestamp: int) -> None:
        if type(timestamp) is not int:
            try:
                timestamp = whole_millis(timestamp)
            except (TypeError, ValueError, OverflowError):
                method, allowed = "SourceContext.collect_with_timestamp", "a number of milliseconds"
                raise invalid_argument(method, "timestamp", timestamp, allowed) from None
        self._put((_RECORD, value, timestamp))

    def emit_watermark(self, watermark: Watermark) -> None:
        if not isinstance(watermark, Watermark):
            raise invalid_argument("SourceContext.emit_watermark", "mark", watermark, "a Watermark")
        self._put((_WATERMARK, watermark.timestamp, None))

    def mark_as_temporarily_idle(self) -> None:
        self._put((_IDLE, None, None))

    def get_checkpoint_lock(self) -> Any:
        return self._lock

    def close(self) -> None:
        """Wake a waiting run loop for good."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()

    def mark_done(self, error: BaseException | None) -> None:
        """Note that the run loop has returned, or raised this error."""
        with self._changed:
            self.done, self.error = True, error
            self._changed.notify_all()
        self._news()

    @contextmanager
    def steady(self) -> Iterator[None]:
        """Hold the checkpoint lock. A run loop that waits inside the lock for room in the buffer goes on first."""
        self._set_unbounded(True)
        try:
            if not self._lock.acquire(timeout=self._patience):
                raise ContextError(
                    f"the source has held its checkpoint lock for {self._patience} s: emit and advance inside "
                    "`with ctx.get_checkpoint_lock():`, and release it between elements"
                )
        finally:
            self._set_unbounded(False)
        try:
            yield
        finally:
            self._lock.release()

    def _set_unbounded(self, unbounded: bool) -> None:
        with self._changed:
            self._unbounded = unbounded
            self._changed.notify_all()

    def waiting(self) -> list[Element]:
        """Return the elements that were emitted and not taken yet."""
        with self._changed:
            return list(self._elements)

    def take(self, most: int, wait: float) -> list[Element]:
        """Take at most `most` elements, after waiting at most `wait` seconds for the first."""
        with self._changed:
            if not self._elements and not self.done and wait > 0:
                self._changed.wait(wait)
            taken = [self._elements.popleft() for _ in range(min(most, len(self._elements)))]
            self._changed.notify_all()
        return taken

    def has_news(self) -> bool:
        """Return True if there is something to take."""
        with self._changed:
            return self.done or bool(self._elements)

    def is_exhausted(self) -> bool:
        """Return True if the run loop has ended and every element was taken."""
        with self._changed:
            return self.done and not self._elements

    def _put(self, element: Element) -> None:
        with self._changed:
            while len(self._elements) >= self._room and not (self._closed or self._unbounded):
                self._changed.wait()
            if self._closed:
                raise Cancelled
            self._elements.append(element)
            first = len(self._elements) == 1
            if first:
                self._changed.notify_all()
        if first:
            self._news()


class FunctionReader(Reader):
    """Drains the buffer of a running SourceFunction."""

    def __init__(
        self,
        function: SourceFunction,
        context: OperatorContext,
        position: Position | None = None,
        room: int | None = None,
    ) -> None:
        self._function = function
        self._active, self._left = position or (True, [])
        self._first = position is not None
        self._bell = context.bell
        self._context = BufferedSourceContext(context.bell.ring, room)
        self._participation = Participation(function, context, None)
        try:
            self._participation.initialize()
            open_function(function, SlotRuntimeContext(context, None))
        except Exception:
            function.close()
            raise
        self._thread = threading.Thread(target=self._run, name=f"source {context.name}", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        try:
            self._function.run(self._context)
        except Cancelled:
            self._context.mark_done(None)
        except BaseException as error:
            self._context.mark_done(error)
        else:
            self._context.mark_done(None)

    def poll(self, output: Receiver, budget: Budget) -> int:
        if self._first:
            # Elements that waited in other subtasks may have come to this one, or the other way round. They go first,
            # in an epoch of their own.
            self._first = False
            left, self._left = self._left, []
            self._emit(left, output)
            return 0
        taken = self._context.take(min(CHUNK_RECORDS, budget.records), budget.wait)
        budget.wait = 0.0
        self._emit(taken, output)
        if self._context.is_exhausted():
            if self._context.error is not None:
                raise self._context.error
            self.finished = True
        return len(taken)

    def _emit(self, elements: list[Element], output: Receiver) -> None:
        start = 0
        for position, (kind, payload, _) in enumerate(elements):
            if kind == _RECORD:
                continue
            self._emit_records(elements[start:position], output)
            start = position + 1
            if kind == _WATERMARK:
                self._become(True, output)
                output.watermark(payload)
            else:
                self._become(False, output)
        self._emit_records(elements[start:], output)

    def _emit_records(self, records: list[Element], output: Receiver) -> None:
        if records:
            self._become(True, output)
            timestamps = [timestamp for _, _, timestamp in records]
            timed = any(timestamp is not None for timestamp in timestamps)
            output.chunk(Chunk([value for _, value, _ in records], timestamps if timed else None))

    def _become(self, active: bool, output: Receiver) -> None:
        if active is not self._active:
            self._active = active
            output.status(not active)

    def waits_for_input(self) -> bool:
        return not self._bell.works

    def has_news(self) -> bool:
        return self._first or self._context.has_news()

    # --- checkpoints ---
    def steady(self) -> AbstractContextManager[Any]:
        return self._context.steady()

    def snapshot(self, into: SubtaskSnapshot) -> None:
        self._participation.snapshot(into)

    def position(self) -> Position:
        return self._active, [*self._left, *self._context.waiting()]

    def checkpoint_complete(self, checkpoint: int) -> None:
        self._participation.complete(checkpoint)

    def checkpoint_aborted(self, checkpoint: int) -> None:
        self._participation.abort(checkpoint)

    def close(self) -> None:
        self._function.cancel()
        self._context.close()
        self._thread.join(timeout=3)
        self._function.close()
