"""The common base of operators that handle records and timers: gathered output, event time, the end of a key."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import repeat
from typing import Any

from penstock.engine.operators.function_operator import FunctionOperator
from penstock.engine.operators.functions.slot_contexts import Collected
from penstock.engine.operators.operator import OperatorContext
from penstock.engine.operators.timers import Timers
from penstock.engine.records.elements import Timestamps, Values
from penstock.engine.records.failures import USER_ERRORS, OperatorFailed
from penstock.errors import PenstockError

Loop = Callable[[Iterator[Any], Iterable[int | None]], None]
"""Function that processes values with their timestamps and gathers the output in `collected`."""


class KeyedTimerOperator(FunctionOperator):
    """Base of operators with timers for their keys: process functions, windows, joins, patterns.

    A subclass processes its records with `go_through` and registers timers in `timers`. Its methods `on_event_time` and
    `on_processing_time` define the effect of a timer. It only gathers output in `collected`; this class sends the
    output on after every chunk and every round of timers. A stream without keys has no timers; everything else is the
    same.
    """

    timers: Timers
    collected: Collected

    def open(self, context: OperatorContext) -> None:
        super().open(context)
        self.timers = Timers(context.clock, self.keyed)
        self.collected = Collected(context, self.emit)

    def on_event_time(self, time: int, key: Any, namespace: Any) -> None:
        """Handle an event-time timer that fires."""
        raise NotImplementedError(
            f"{type(self).__name__} has registered an event-time timer but does not define on_event_time"
        )

    def on_processing_time(self, time: int, key: Any, namespace: Any) -> None:
        """Handle a processing-time timer that fires."""
        raise NotImplementedError(
            f"{type(self).__name__} has registered a processing-time timer but does not define on_processing_time"
        )

    # --- records ---
    def go_through(self, loop: Loop, values: Values, timestamps: Timestamps) -> None:
        """Let a loop process the records of a chunk, and send on the gathered output. An error names the record."""
        feed = iter(values)
        try:
            loop(feed, repeat(None) if timestamps is None else timestamps)
        except USER_ERRORS as error:
            self.collected.forget()
            raise self.failure(error, values, feed) from error
        self.flush()

    def flush(self) -> None:
        """Send on the gathered output.

        A value that does not fit the type of its side output is an error of this operator.
        """
        try:
            self.collected.flush()
        except PenstockError as error:
            self.collected.forget()
            raise self.failure(error, []) from error

    # --- time ---
    def watermark(self, timestamp: int) -> None:
        """Fire timers, then pass the watermark on, so that their output is never behind it."""
        self.current_watermark = self.timers.watermark = timestamp
        self._fire(self.timers.event_time.fire, timestamp, self.on_event_time)
        self.output.watermark(timestamp)

    def resume_at(self, watermark: int) -> None:
        self.current_watermark = self.timers.watermark = watermark

    def advance_processing_time(self, now: int) -> None:
        self._fire(self.timers.processing_time.fire_once, now, self.on_processing_time)

    def next_due(self) -> int | None:
        return self.timers.processing_time.next_time()

    def finish_key(self, key: Any) -> None:
        """Finish a key that is complete in BATCH mode.

        Its timers fire as if time had ended. Then its state is dropped.
        """
        self._fire(self.timers.finish, self.on_event_time, self.on_processing_time)
        super().finish_key(key)

    def _fire(self, fire: Callable[..., None], *how: Any) -> None:
        try:
            fire(*how)
        except USER_ERRORS as error:
            self.collected.forget()
            raise self._timer_failed(error) from error
        self.flush()

    def _timer_failed(self, error: BaseException) -> OperatorFailed:
        if self.timers.firing is None:
            return self.failure(error, [])
        time, key, namespace = self.timers.firing
        where = "" if namespace is None else f" in {namespace}"
        return self.failure(error, [f"timer at {time} of key {key!r}{where}"], iter(()))
