"""The operator of AsyncDataStream: it makes a request for each element, and emits results in line with event time."""

from __future__ import annotations

import asyncio
import time
import weakref
from collections import deque
from dataclasses import dataclass, field, replace
from itertools import chain, repeat
from typing import Any, Protocol

from penstock.api.functions.async_functions import AsyncFunctionDescriptor
from penstock.common.time import to_millis
from penstock.common.typeinfo import TypeInformation
from penstock.engine.operators.functions.async_requests import Request, RequestLoop
from penstock.engine.operators.functions.slot_contexts import SlotRuntimeContext, stamps_or_none
from penstock.engine.operators.operator import Operator, OperatorContext
from penstock.engine.operators.participation import Participation
from penstock.engine.records.elements import MIN_TIMESTAMP, Timestamps, Values, join_receivers
from penstock.engine.records.failures import USER_ERRORS, OperatorFailed, failure_of
from penstock.engine.snapshots.restore import RestoredOperator, split_evenly
from penstock.engine.snapshots.snapshot_parts import SubtaskSnapshot

DUE_MILLIS = 5
"""Milliseconds after which another epoch is due while requests are in flight."""
LINGER_SECONDS = 0.02
"""Seconds that an epoch waits at its end for requests in flight. Quick answers then need no other epoch."""
IDLE_LINGER_SECONDS = 0.05
"""Seconds that an epoch without input waits at its end for requests in flight."""
_NO_STATE = "in an asynchronous function, where requests for many keys run at once: keep it in a function before it"
_RECORD, _WATERMARK, _STATUS = "record", "watermark", "idle"
Element = tuple[str, Any, int | None]
"""An element in a checkpoint: (kind, value, timestamp)."""


@dataclass(frozen=True)
class QueuedWatermark:
    """A watermark that leaves when everything before it has been emitted."""

    timestamp: int

    def pass_on(self, operator: Operator) -> None:
        """Emit the watermark."""
        Operator.watermark(operator, self.timestamp)

    def element(self) -> Element:
        """Return the form in which a checkpoint stores this mark."""
        return _WATERMARK, self.timestamp, None


@dataclass(frozen=True)
class QueuedStatus:
    """Idleness, or its end, in its place between the elements."""

    idle: bool

    def pass_on(self, operator: Operator) -> None:
        """Emit the status."""
        Operator.status(operator, self.idle)

    def element(self) -> Element:
        """Return the form in which a checkpoint stores this mark."""
        return _STATUS, self.idle, None


Mark = QueuedWatermark | QueuedStatus


class ResultQueue(Protocol):
    """Decides which results may be emitted next. A mark separates earlier elements from later ones."""

    def add(self, requests: list[Request]) -> None:
        """Add requests that were made."""

    def mark(self, mark: Mark) -> None:
        """Add a mark after everything so far. A mark that directly follows another of its kind replaces it."""

    def add_results(self, requests: list[Request]) -> None:
        """Note that these requests have their results."""

    def take(self) -> tuple[list[Request], Mark | None]:
        """Return the requests whose results may be emitted now, and the next mark if it may be emitted.

        If there is a mark, call again: more requests may follow it.
        """

    def elements(self) -> list[Request | Mark]:
        """Return the requests and marks that have not been emitted, in their order."""


class OrderedQueue:
    """Results leave in the order of their elements."""

    def __init__(self) -> None:
        self._elements: deque[Request | Mark] = deque()

    def add(self, requests: list[Request]) -> None:
        self._elements.extend(requests)

    def mark(self, mark: Mark) -> None:
        if self._elements and type(self._elements[-1]) is type(mark):
            self._elements.pop()
        self._elements.append(mark)

    def add_results(self, requests: list[Request]) -> None:
        """Do nothing: `take` checks the oldest request each time."""

    def take(self) -> tuple[list[Request], Mark | None]:
        elements, ready = self._elements, list[Request]()
        while elements:
            first = elements[0]
            if not isinstance(first, Request):
                return ready, elements.popleft()  # type: ignore[return-value]
            if first.results is None:
                break
            ready.append(first)
            elements.popleft()
        return ready, None

    def elements(self) -> list[Request | Mark]:
        return list(self._elements)


@dataclass
class Segment:
    """The requests between two marks. `requests` have not been emitted; those in `ready` may be."""

    requests: dict[Request, None] = field(default_factory=dict)
    ready: list[Request] = field(default_factory=list)
    mark: Mark | None = None


class UnorderedQueue:
    """Emits results as they arrive, but never across a mark: the results of elements after a mark come after it."""

    def __init__(self) -> None:
        self._segments = deque([Segment()])

    def add(self, requests: list[Request]) -> None:
        segment = self._segments[-1]
        segment.requests.update(zip(requests, repeat(None)))
        for request in requests:
            request.segment = segment

    def mark(self, mark: Mark) -> None:
        last = self._segments[-1]
        before = self._segments[-2] if len(self._segments) > 1 else None
        if not last.requests and before is not None and type(before.mark) is type(mark):
            before.mark = mark
        else:
            last.mark = mark
            self._segments.append(Segment())

    def add_results(self, requests: list[Request]) -> None:
        for request in requests:
            request.segment.ready.append(request)

    def take(self) -> tuple[list[Request], Mark | None]:
        segment = self._segments[0]
        ready, segment.ready = segment.ready, []
        for request in ready:
            del segment.requests[request]
        if segment.requests or segment.mark is None:
            return ready, None
        self._segments.popleft()
        return ready, segment.mark

    def elements(self) -> list[Request | Mark]:
        left: list[Request | Mark] = []
        for segment in self._segments:
            left.extend(segment.requests)
            if segment.mark is not None:
                left.append(segment.mark)
        return left


class AsyncWaitOperator(Operator):
    """Makes a request for each element, at most `capacity` at a time, and emits the results.

    Requests stay in flight between epochs. A checkpoint holds the elements whose results have not been emitted, in
    their order and with the marks between them. After a restore the operator makes their requests again, before it
    takes new input.
    """

    def __init__(self, descriptor: AsyncFunctionDescriptor, output_type: TypeInformation | None = None) -> None:
        super().__init__(output_type)
        self.function = descriptor.async_function
        self.strategy = descriptor.async_retry_strategy
        self.timeout_millis = to_millis(descriptor.timeout)
        self.capacity = descriptor.capacity
        self.ordered = descriptor.output_mode is AsyncFunctionDescriptor.OutputMode.ORDERED

    # --- life ---
    def open(self, context: OperatorContext) -> None:
        super().open(context)
        self._queue: ResultQueue = OrderedQueue() if self.ordered else UnorderedQueue()
        self._held = 0
        """Number of requests whose results have not been emitted."""
        self._quiet = True
        """True until this epoch brings input."""
        self._left = _left_by(context.restored)
        """Elements from the checkpoint whose requests must be made again."""
        self._participation = Participation(self.function, context, None)
        name = f"async {context.name} {context.subtask}"
        self._loop = RequestLoop(name, self.timeout_millis / 1000, self.capacity, context.bell.ring)
        # Nobody closes a slot that is lost; its thread ends with it.
        weakref.finalize(self, self._loop.abandon)
        try:
            self._loop.serve(self.function, self.strategy)
            self._loop.call(self._participation.initialize, patience=None)
            # The loop's thread holds the function; through its context it must not hold the slot, which may be lost.
            alone = replace(
                context,
                output=join_receivers([]),
                side_outputs={},
                results=None,
                to_global_committer=None,
                restored=None,
            )
            runtime_context = SlotRuntimeContext(alone, None, _NO_STATE)
            self.function.set_runtime_context(runtime_context)
            self._loop.call(self.function.open, runtime_context, patience=None)
        except USER_ERRORS as error:
            raise self.failure(error, []) from error

    def close(self) -> None:
        loop = getattr(self, "_loop", None)
        if loop is not None:
            loop.close(self.function)

    # --- input ---
    def records(self, values: Values, timestamps: Timestamps) -> None:
        self._quiet = False
        start = 0
        while start < len(values):
            room = self.capacity - self._held
            if room <= 0:
                self._receive_some()
                continue
            stamps = repeat(None) if timestamps is None else timestamps[start : start + room]
            requests = list(map(Request, values[start : start + room], stamps))
            start += room
            self._held += len(requests)
            self._queue.add(requests)
            self._loop.ask(requests)

    def watermark(self, timestamp: int) -> None:
        self._queue.mark(QueuedWatermark(timestamp))
        self._emit_ready()

    def status(self, idle: bool) -> None:
        self._queue.mark(QueuedStatus(idle))
        self._emit_ready()

    def finish(self) -> None:
        """Wait for every answer, since the input has ended."""
        while self._held:
            self._receive_some()

    # --- output ---
    def _receive(self, wait: float = 0.0) -> None:
        """Emit the answers that have come, after waiting at most this many seconds for the first."""
        try:
            over = self._loop.take(wait)
        except USER_ERRORS as error:
            raise self.failure(error, []) from error
        self._absorb(over)

    def _receive_some(self) -> None:
        """Wait until at least one request is over."""
        try:
            over = self._loop.take_some()
        except USER_ERRORS as error:
            raise self.failure(error, []) from error
        self._absorb(over)

    def _absorb(self, over: list[Request]) -> None:
        for request in over:
            # An error that was raised holds the slot's frames, so no request in flight must hold the error.
            error, request.error = request.error, None
            if error is not None:
                raise self._request_failed(error, request.value)
        self._queue.add_results(over)
        self._emit_ready()

    def _request_failed(self, error: BaseException, value: Any) -> BaseException:
        if not isinstance(error, (*USER_ERRORS, asyncio.CancelledError)):
            return error
        context = self.context
        failed = OperatorFailed(failure_of(error, context.name, context.uid, context.subtask, value))
        failed.__cause__ = error
        return failed

    def _emit_ready(self) -> None:
        while True:
            ready, mark = self._queue.take()
            if ready:
                self._emit_results(ready)
            if mark is None:
                return
            mark.pass_on(self)

    def _emit_results(self, ready: list[Request]) -> None:
        self._held -= len(ready)
        values = list(chain.from_iterable(request.results or () for request in ready))
        if values:
            stamps = [request.timestamp for request in ready for _ in request.results or ()]
            self.emit(values, stamps_or_none(stamps))

    # --- time ---
    def advance_processing_time(self, now: int) -> None:
        """Emit the answers that have come since the last epoch. After a restore, first make requests again."""
        self._quiet = True
        left, self._left = self._left, []
        for kind, value, timestamp in left:
            if kind == _RECORD:
                self.records([value], [timestamp])
            elif kind == _WATERMARK:
                self.watermark(value)
            else:
                self.status(value)
        self._receive()

    def end_epoch(self) -> None:
        """Emit the results that have arrived, after a short wait for quick requests."""
        self._receive()
        if self.context.bell.works:
            return
        deadline = time.monotonic() + (IDLE_LINGER_SECONDS if self._quiet else LINGER_SECONDS)
        while self._held and (wait := deadline - time.monotonic()) > 0:
            self._receive(wait)

    def next_due(self) -> int | None:
        return self.context.clock.now + DUE_MILLIS if self._held and not self.context.bell.works else None

    def has_news(self) -> bool:
        return self._loop.has_over()

    # --- checkpoints ---
    def snapshot(self, into: SubtaskSnapshot) -> None:
        self._loop.call(self._participation.snapshot, into)
        into.own("elements", [_element_of(element) for element in self._queue.elements()])
        into.own("reached", self.current_watermark)

    def resume_at(self, watermark: int) -> None:
        """Set event time, but let it wait for the requests that must be made again."""
        restored = self.context.restored
        if restored is not None and restored.continued:
            self.current_watermark = (restored.own() or {}).get("reached", watermark)
        elif watermark > MIN_TIMESTAMP:
            self._left.append((_WATERMARK, watermark, None))

    def checkpoint_complete(self, checkpoint: int) -> None:
        self._loop.call(self._participation.complete, checkpoint)

    def checkpoint_aborted(self, checkpoint: int) -> None:
        self._loop.call(self._participation.abort, checkpoint)


def _element_of(element: Request | Mark) -> Element:
    return (_RECORD, element.value, element.timestamp) if isinstance(element, Request) else element.element()


def _left_by(restored: RestoredOperator | None) -> list[Element]:
    """Return the elements whose requests this subtask must repeat.

    Include the marks between them only if the same plan continues with the same parallelism.
    """
    if restored is None:
        return []
    if restored.continued:
        return list((restored.own() or {}).get("elements", ()))
    parts = [[e for e in own.get("elements", ()) if e[0] == _RECORD] for own in restored.all_own()]
    return list(split_evenly(parts, restored.parallelism)[restored.subtask])
