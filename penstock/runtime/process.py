"""Process functions: one loop over a chunk that sets key and timestamp, calls the user and gathers what he yields."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import repeat
from typing import Any

from penstock.common.typeinfo import TypeInformation
from penstock.datastream.output_tag import OutputTag
from penstock.datastream.time_domain import TimeDomain
from penstock.errors import PenstockError
from penstock.runtime.context import Collected, FunctionContext, KeyedBroadcastContext
from penstock.runtime.elements import Timestamps, Values
from penstock.runtime.failures import USER_ERRORS
from penstock.runtime.operator import OperatorContext
from penstock.runtime.snapshots import SubtaskSnapshot
from penstock.runtime.stateless import FunctionOperator
from penstock.runtime.timers import KeyedTimerService, KeylessTimerService
from penstock.state.backend import BroadcastStateBackend

KeySelector = Callable[[Any], Any]


class ProcessOperator(FunctionOperator):
    """A process function on one stream, with keys and timers when a key selector is given."""

    method = "process_element"

    def open(self, context: OperatorContext) -> None:
        super().open(context)
        self.collected = Collected(context, self.emit)
        self.timers: KeyedTimerService | KeylessTimerService
        if self.keyed is not None:
            self.timers = KeyedTimerService(self.keyed, context.clock)
        else:
            self.timers = KeylessTimerService(context.clock)
        self.function_context = FunctionContext(self.collected, self.timers, self.keyed, self.broadcast_backend())
        self._on_timer = getattr(self.function, "on_timer", None)

    def records(self, values: Values, timestamps: Timestamps) -> None:
        self.drive(self.call(), self.key_selector, values, timestamps)

    def drive(
        self, process: Callable[..., Any], key_of: KeySelector | None, values: Values, timestamps: Timestamps
    ) -> None:
        """Call `process(value, ctx)` for each record of a chunk and send on what came out."""
        feed = iter(values)
        stamps = repeat(None) if timestamps is None else timestamps
        try:
            if key_of is None:
                self._drive_plain(process, self.function_context, feed, stamps)
            else:
                self._drive_keyed(process, key_of, feed, stamps)
        except USER_ERRORS as error:
            self.collected.forget()
            raise self.failed(error, values, feed) from error
        self.flush()

    def _drive_plain(self, process: Any, context: FunctionContext, feed: Iterator[Any], stamps: Any) -> None:
        gather = self.collected.gather
        for value, timestamp in zip(feed, stamps, strict=False):
            context.record_timestamp = timestamp
            results = process(value, context)
            if results is not None:
                gather(results, timestamp)

    def _drive_keyed(self, process: Any, key_of: KeySelector, feed: Iterator[Any], stamps: Any) -> None:
        """The hot loop. What `Collected.gather` does is written out here, since a call a record would show."""
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

    def flush(self) -> None:
        """Send on what was gathered; a side output's value that does not fit its type is this operator's error."""
        try:
            self.collected.flush()
        except PenstockError as error:
            self.collected.forget()
            raise self.failed(error, []) from error

    # --- time ---
    def watermark(self, timestamp: int) -> None:
        """Timers fire before the watermark goes on, so that their output is never behind it."""
        self.current_watermark = self.timers.watermark = timestamp
        if isinstance(self.timers, KeyedTimerService):
            self.timers.event_time.fire(timestamp, self._event_timer)
            self.flush()
        self.output.watermark(timestamp)

    def resume_at(self, watermark: int) -> None:
        self.current_watermark = self.timers.watermark = watermark

    def advance_processing_time(self, now: int) -> None:
        if isinstance(self.timers, KeyedTimerService):
            self.timers.processing_time.fire_once(now, self._processing_timer)
            self.flush()

    def next_due(self) -> int | None:
        return self.timers.processing_time.next_time() if isinstance(self.timers, KeyedTimerService) else None

    def _event_timer(self, time: int, key: Any, _: Any) -> None:
        self._fire(time, key, TimeDomain.EVENT_TIME)

    def _processing_timer(self, time: int, key: Any, _: Any) -> None:
        self._fire(time, key, TimeDomain.PROCESSING_TIME)

    def _fire(self, time: int, key: Any, domain: TimeDomain) -> None:
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
        except USER_ERRORS as error:
            raise self.failed(error, [f"timer at {time} of key {key!r}"], _spent()) from error
        finally:
            context.at_timer(None, None)

    # --- BATCH ---
    def finish_key(self, key: Any) -> None:
        """In BATCH mode a key is done: its timers fire as if time had ended, then its state goes."""
        assert isinstance(self.timers, KeyedTimerService)
        self.timers.finish(self._event_timer, self._processing_timer)
        self.flush()
        super().finish_key(key)


def _spent() -> Iterator[Any]:
    """An exhausted list iterator: `failed` then takes the last value as the culprit."""
    spent = iter([None])
    next(spent)
    return spent


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

    def inputs(self) -> Sequence[Callable[[Values, Timestamps], None]]:
        return (self._input(0), self._input(1))

    def _input(self, side: int) -> Callable[[Values, Timestamps], None]:
        process = self.adapt(getattr(self.function, self.methods[side]))
        key_of = self.key_selectors[side] if self.key_selectors else None

        def records(values: Values, timestamps: Timestamps) -> None:
            self.drive(process, key_of, values, timestamps)

        return records

    def adapt(self, method: Callable[..., Any]) -> Callable[[Any, Any], Any]:
        """Make the user's method a `process(value, ctx)`."""
        return method


class CoFlatMapOperator(CoProcessOperator):
    """A CoFlatMapFunction: no context."""

    def adapt(self, method: Callable[..., Any]) -> Callable[[Any, Any], Any]:
        return lambda value, _: method(value)


class CoMapOperator(CoProcessOperator):
    """A CoMapFunction: one value for each, no context."""

    def adapt(self, method: Callable[..., Any]) -> Callable[[Any, Any], Any]:
        return lambda value, _: (method(value),)


class BroadcastProcessOperator(ProcessOperator):
    """A (Keyed)BroadcastProcessFunction: input 0 is the stream, input 1 what is broadcast to every subtask."""

    def open(self, context: OperatorContext) -> None:
        self.broadcast = BroadcastStateBackend(context.restored.broadcast() if context.restored is not None else ())
        super().open(context)
        if self.keyed is not None and isinstance(self.timers, KeyedTimerService):
            self.broadcast_context: FunctionContext = KeyedBroadcastContext(
                self.collected, self.timers, self.broadcast, self.keyed
            )
        else:
            self.broadcast_context = FunctionContext(self.collected, self.timers, None, self.broadcast, read_only=False)

    def broadcast_backend(self) -> BroadcastStateBackend:
        return self.broadcast

    def snapshot(self, into: SubtaskSnapshot) -> None:
        super().snapshot(into)
        into.broadcast(self.broadcast)

    def end_epoch(self) -> None:
        super().end_epoch()
        self.broadcast.end_epoch()

    def inputs(self) -> Sequence[Callable[[Values, Timestamps], None]]:
        return (self.records, self.broadcast_records)

    def broadcast_records(self, values: Values, timestamps: Timestamps) -> None:
        """A chunk of the broadcast side: it belongs to no key."""
        self.leave_key()
        feed = iter(values)
        try:
            self._drive_plain(
                self.function.process_broadcast_element,
                self.broadcast_context,
                feed,
                repeat(None) if timestamps is None else timestamps,
            )
        except USER_ERRORS as error:
            self.collected.forget()
            raise self.failed(error, values, feed) from error
        self.flush()
