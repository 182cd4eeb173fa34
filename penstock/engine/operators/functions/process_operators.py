"""The operators of process functions.

One loop over a chunk sets key and timestamp, calls the function, gathers results.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

from penstock.api.functions.contexts import TimerService
from penstock.api.output_tag import OutputTag
from penstock.api.time_domain import TimeDomain
from penstock.common.typeinfo import TypeInformation
from penstock.engine.operators.batch.batch_operator import no_key
from penstock.engine.operators.functions.slot_contexts import FunctionContext, KeyedBroadcastContext
from penstock.engine.operators.keyed_timer_operator import KeyedTimerOperator
from penstock.engine.operators.operator import OperatorContext
from penstock.engine.operators.timers import KeyedTimerService, KeylessTimerService
from penstock.engine.records.elements import Chunk, Timestamps, Values
from penstock.engine.snapshots.snapshot_parts import SubtaskSnapshot
from penstock.engine.state.backend import BroadcastStateBackend

KeySelector = Callable[[Any], Any]


class ProcessOperator(KeyedTimerOperator):
    """A process function on one stream. It has keys and timers if there is a key selector."""

    method = "process_element"

    def open(self, context: OperatorContext) -> None:
        super().open(context)
        service: TimerService = KeylessTimerService(self.timers)
        if self.keyed is not None:
            service = KeyedTimerService(self.timers, self.keyed.scope)
        self.function_context = FunctionContext(self.collected, service, self.keyed, self.broadcast_backend())
        self._on_timer = getattr(self.function, "on_timer", None)

    def records(self, values: Values, timestamps: Timestamps) -> None:
        self.drive(self.call(), self.key_selector, values, timestamps)

    def drive(
        self, process: Callable[..., Any], key_of: KeySelector | None, values: Values, timestamps: Timestamps
    ) -> None:
        """Call `process(value, ctx)` for each record of a chunk, and send on the results."""
        if key_of is None:
            loop = partial(self._drive_plain, process, self.function_context)
        else:
            loop = partial(self._drive_keyed, process, key_of)
        self.go_through(loop, values, timestamps)

    def _drive_plain(self, process: Any, context: FunctionContext, feed: Iterator[Any], stamps: Any) -> None:
        gather = self.collected.gather
        for value, timestamp in zip(feed, stamps, strict=False):
            context.record_timestamp = timestamp
            results = process(value, context)
            if results is not None:
                gather(results, timestamp)

    def _drive_keyed(self, process: Any, key_of: KeySelector, feed: Iterator[Any], stamps: Any) -> None:
        """Process records of a keyed stream in the hot loop.

        The loop contains the code of `Collected.gather`, because one more call per record would cost too much.
        """
        assert self.keyed is not None
        scope, context, collected = self.keyed.scope, self.function_context, self.collected
        add_value, add_timestamp = collected.values.append, collected.timestamps.append
        for value, timestamp in zip(feed, stamps, strict=False):
            scope.key = key_of(value)
            context.record_timestamp = timestamp
            results = process(value, context)
            if results is not None:
                for item in results:
                    if type(item) is tuple and item and type(item[0]) is OutputTag:
                        collected.side(item[0], item[1], timestamp)
                    else:
                        add_value(item)
                        add_timestamp(timestamp)

    def on_event_time(self, time: int, key: Any, namespace: Any) -> None:
        self._call_on_timer(time, key, TimeDomain.EVENT_TIME)

    def on_processing_time(self, time: int, key: Any, namespace: Any) -> None:
        self._call_on_timer(time, key, TimeDomain.PROCESSING_TIME)

    def _call_on_timer(self, time: int, key: Any, domain: TimeDomain) -> None:
        assert self.keyed is not None
        self.keyed.scope.key = key
        if self._on_timer is None:
            return
        context = self.function_context
        context.at_timer(time, domain)
        try:
            results = self._on_timer(time, context)
            if results is not None:
                self.collected.gather(results, time)
        finally:
            context.at_timer(None, None)


class CoProcessOperator(ProcessOperator):
    """A function over two connected streams, with shared state and timers."""

    def __init__(
        self,
        function: Any,
        methods: tuple[str, str],
        output_type: TypeInformation | None = None,
        key_selectors: tuple[KeySelector, KeySelector] | None = None,
    ) -> None:
        super().__init__(function, output_type, key_selectors[0] if key_selectors else None)
        self.methods = methods
        self.key_selectors = key_selectors

    def batch_keys(self) -> Sequence[KeySelector | None]:
        return self.key_selectors or ()

    def inputs(self) -> Sequence[Callable[[Chunk], None]]:
        return (self._input(0), self._input(1))

    def _input(self, side: int) -> Callable[[Chunk], None]:
        process = self.adapt(getattr(self.function, self.methods[side]))
        key_of = self.key_selectors[side] if self.key_selectors else None

        def take(chunk: Chunk) -> None:
            self.drive(process, key_of, chunk.values, chunk.timestamps)

        return take

    def adapt(self, method: Callable[..., Any]) -> Callable[[Any, Any], Any]:
        """Turn the user's method into a `process(value, ctx)`."""
        return method


class CoFlatMapOperator(CoProcessOperator):
    """A CoFlatMapFunction, which has no context."""

    def adapt(self, method: Callable[..., Any]) -> Callable[[Any, Any], Any]:
        return lambda value, _: method(value)


class CoMapOperator(CoProcessOperator):
    """A CoMapFunction, which has no context and gives one result for each value."""

    def adapt(self, method: Callable[..., Any]) -> Callable[[Any, Any], Any]:
        return lambda value, _: (method(value),)


class BroadcastProcessOperator(ProcessOperator):
    """A (Keyed)BroadcastProcessFunction. Input 0 is the stream; every subtask gets all of input 1."""

    def open(self, context: OperatorContext) -> None:
        self.broadcast = BroadcastStateBackend(context.restored.broadcast() if context.restored is not None else ())
        super().open(context)
        keyless = KeylessTimerService(self.timers)
        self.broadcast_context = FunctionContext(self.collected, keyless, None, self.broadcast, read_only=False)
        if self.keyed is not None:
            self.broadcast_context = KeyedBroadcastContext(self.collected, keyless, self.broadcast, self.keyed)

    def broadcast_backend(self) -> BroadcastStateBackend:
        return self.broadcast

    def snapshot(self, into: SubtaskSnapshot) -> None:
        super().snapshot(into)
        into.broadcast(self.broadcast)

    def end_epoch(self) -> None:
        super().end_epoch()
        self.broadcast.end_epoch()

    def inputs(self) -> Sequence[Callable[[Chunk], None]]:
        return (self.chunk, self.broadcast_chunk)

    def broadcast_chunk(self, chunk: Chunk) -> None:
        """Process a chunk of the broadcast side, which belongs to no key."""
        self.leave_key()
        process = self.function.process_broadcast_element
        self.go_through(partial(self._drive_plain, process, self.broadcast_context), chunk.values, chunk.timestamps)

    def batch_keys(self) -> Sequence[KeySelector | None]:
        """Return no selector for the broadcast side.

        BATCH mode does not hold it back, so it is complete before the first record of the other side.
        """
        return (self.key_selector or no_key, None)
