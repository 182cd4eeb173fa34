"""The operator that finds patterns. It keeps events until the watermark reaches them, and then matches them."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import groupby, islice
from typing import Any

from penstock.api.output_tag import OutputTag
from penstock.api.state.descriptors import ValueStateDescriptor
from penstock.base.pickling import can_be_saved
from penstock.cep.comparing import in_order, sort_key
from penstock.cep.compiler import compile_pattern
from penstock.cep.event_matching import Match, Matcher
from penstock.cep.growth import Growth
from penstock.cep.partial_matches import PartialMatches
from penstock.cep.pattern import Pattern
from penstock.cep.pattern_functions import EventComparator, PatternProcessFunction, TimedOutPartialMatchHandler
from penstock.cep.waiting_keys import TIME, WaitingKeys
from penstock.common.typeinfo import TypeInformation
from penstock.engine.operators.functions.slot_contexts import Collected, open_function
from penstock.engine.operators.keyed_timer_operator import KeyedTimerOperator
from penstock.engine.operators.operator import OperatorContext
from penstock.engine.records.elements import MAX_TIMESTAMP, Timestamps, Values
from penstock.engine.records.failures import USER_ERRORS, OperatorFailed
from penstock.engine.snapshots.snapshot_parts import SubtaskSnapshot
from penstock.engine.state.key_groups import short_repr
from penstock.errors import MissingTimestamp, NotSerializable

MATCHES, WAITING = "_pattern_matches", "_pattern_waiting"
MANY = 10_000
"""Number of partial matches of one key, or of events in them, that causes a warning.

The next warning comes at ten times that number.
"""


@dataclass
class PatternSpec:
    """The pattern to look for, with the settings for the search."""

    pattern: Pattern
    event_time: bool = True
    comparator: EventComparator | Callable[[Any, Any], int] | None = None
    late_tag: OutputTag | None = None


class PatternOperator(KeyedTimerOperator):
    """Finds a pattern in the events of each key.

    Two tables hold its state: the events that wait for the watermark, as a list of (time, event) with the earliest
    event first, and the partial matches. A key whose tables are empty costs nothing. Timers serve only for limits
    of time, because the operator knows the keys with waiting events without them.
    """

    def __init__(
        self,
        spec: PatternSpec,
        function: PatternProcessFunction,
        key_selector: Callable[[Any], Any],
        output_type: TypeInformation | None = None,
    ) -> None:
        super().__init__(function, output_type, key_selector)
        self.spec = spec

    # --- life ---
    def open(self, context: OperatorContext) -> None:
        super().open(context)
        assert self.keyed is not None
        self._matches = self.keyed.table(ValueStateDescriptor(MATCHES))
        self._waiting = self.keyed.table(ValueStateDescriptor(WAITING))
        self._context = _MatchContext(self.collected, context, self.spec.event_time)
        self._process_match = self.function.process_match
        self._process_timeout = getattr(self.function, "process_timed_out_match", None)
        self._sort_key = sort_key(self.spec.comparator)
        self._late_dropped = context.metrics.counter("numLateRecordsDropped")
        self._begun = False
        """True if a match has begun in this round of the current key."""
        self._key: Any = None
        """The key whose waiting events are being matched."""
        at_once = self._match_at_once if self._sort_key is None else self._gather_now
        self._drive = self._gather if self.spec.event_time else at_once
        held = self._waiting.items() if self.spec.event_time else ()
        self._keys = WaitingKeys((events[0][0], key) for key, events in held)
        self._use(self.pattern())
        self._check_restored()

    def _check_restored(self) -> None:
        """Refuse matches of another pattern before the first record. All of them are of the same one."""
        try:
            for _, matches in islice(self._matches.items(), 1):
                self._matcher.check(matches)
        except USER_ERRORS as error:
            raise self.failure(error, []) from error

    def pattern(self) -> Pattern:
        """Return the initial pattern."""
        return self.spec.pattern

    def _use(self, pattern: Pattern) -> None:
        """Look for this pattern from now on."""
        clock, handler = self.context.clock, isinstance(self.function, TimedOutPartialMatchHandler)
        self._matcher = Matcher(compile_pattern(pattern), handler, lambda: clock.now)
        self._growth = Growth(self.context.name, self._matcher.elements, MANY)
        self._spare = self._matcher.new()
        """State for keys without state. It is reused as long as no match begins."""
        try:
            for leaf in self._matcher.leaves:
                open_function(leaf.condition, self.runtime_context)
        except USER_ERRORS as error:
            raise self.failure(error, []) from error

    def close(self) -> None:
        super().close()
        for leaf in self._matcher.leaves:
            leaf.condition.close()

    # --- records ---
    def records(self, values: Values, timestamps: Timestamps) -> None:
        self.go_through(self._drive, values, timestamps)

    def _gather(self, feed: Iterator[Any], stamps: Iterable[int | None]) -> None:
        """Event time: keep events until the watermark reaches them."""
        assert self.keyed is not None and self.key_selector is not None
        key_of, scope, wait = self.key_selector, self.keyed.scope, self._keys.add
        entries, mark, watermark = self._waiting.entries, self._waiting.changed.add, self.timers.watermark
        for value, time in zip(feed, stamps, strict=False):
            if time is None:
                raise MissingTimestamp(
                    "a pattern in event time needs events with timestamps: call assign_timestamps_and_watermarks(...) "
                    "before, or in_processing_time() on the pattern stream"
                )
            if time <= watermark:
                self._late(value, time)
                continue
            scope.key = key = key_of(value)
            held = entries.get(key)
            if held is None:
                entries[key] = [(time, value)]
                wait((time, key))
            elif time < held[0][0]:
                held.insert(0, (time, value))
                wait((time, key))
            else:
                held.append((time, value))
            mark(key)

    def _gather_now(self, feed: Iterator[Any], stamps: Iterable[int | None]) -> None:
        """Keep the events of this moment until it is over. Used for processing time with a comparator."""
        assert self.keyed is not None and self.key_selector is not None
        now, entries = self.context.clock.now, self._waiting.entries
        for value, _ in zip(feed, stamps, strict=False):
            self.keyed.scope.key = key = self.key_selector(value)
            self._waiting.put(key, [*entries.get(key, ()), (now, value)])
            self.timers.processing_time.register(now + 1, key)

    def _match_at_once(self, feed: Iterator[Any], stamps: Iterable[int | None]) -> None:
        """Match each event when it arrives. Used for processing time, where arrival defines the order."""
        assert self.keyed is not None and self.key_selector is not None
        now = self.context.clock.now
        for value, _ in zip(feed, stamps, strict=False):
            self.keyed.scope.key = key = self.key_selector(value)
            self._run(key, [(now, value)], now)

    def _late(self, value: Any, timestamp: int) -> None:
        if self.spec.late_tag is None:
            self._late_dropped.inc()
        else:
            self.collected.side(self.spec.late_tag, value, timestamp)

    # --- time ---
    def watermark(self, timestamp: int) -> None:
        self.timers.watermark = timestamp
        self._fire(self._catch_up_all, timestamp)
        super().watermark(timestamp)

    def _catch_up_all(self, watermark: int) -> None:
        for key in self._keys.due(watermark):
            self._key = key
            self._catch_up(key, watermark)

    def _timer_failed(self, error: BaseException) -> OperatorFailed:
        if self.timers.firing is not None:
            return super()._timer_failed(error)
        return self.failure(error, [f"waiting events of key {self._key!r}"], iter(()))

    def finish_key(self, key: Any) -> None:
        self._key = key
        self._fire(self._catch_up, key, MAX_TIMESTAMP)
        self._keys.clear()
        super().finish_key(key)

    def on_event_time(self, time: int, key: Any, namespace: Any) -> None:
        self._catch_up(key, self.timers.watermark)

    def on_processing_time(self, time: int, key: Any, namespace: Any) -> None:
        self._catch_up(key, self.context.clock.now)

    def _catch_up(self, key: Any, now: int) -> None:
        """Process the waiting events of a key up to `now`."""
        assert self.keyed is not None
        self.keyed.scope.key = key
        due = self._due(key, now)
        self._run(key, due if self._sort_key is None else self._sort_events(due), now)

    def _due(self, key: Any, now: int) -> list[tuple[int, Any]]:
        """Remove and return the events of a key that need not wait longer, in the order of their times."""
        held = self._waiting.entries.get(key)
        if held is None or held[0][0] > now:
            return []
        if len(held) > 1:
            held.sort(key=TIME)
            count = bisect_right(held, now, key=TIME)
            if count < len(held):
                self._waiting.put(key, held[count:])
                self._keys.add((held[count][0], key))
                return held[:count]  # type: ignore[no-any-return]
        self._waiting.remove(key)
        return held  # type: ignore[no-any-return]

    def _sort_events(self, due: list[tuple[int, Any]]) -> Iterator[tuple[int, Any]]:
        """Yield the events by timestamp, and within one timestamp in the comparator's order."""
        assert self._sort_key is not None
        for time, pairs in groupby(due, TIME):
            yield from ((time, event) for event in in_order([event for _, event in pairs], self._sort_key))

    # --- matching ---
    def _run(self, key: Any, events: Iterable[tuple[int, Any]], now: int) -> None:
        """Match the events of a key in turn, then advance its time to `now`."""
        held = self._matches.entries.get(key)
        matches, self._begun = self._spare if held is None else held, False
        matcher, changed, reached = self._matcher, False, None
        for time, event in events:
            if time != reached:
                reached = time
                changed = self._advance(matches, time) or changed
            found, moved = matcher.feed(matches, event, time)
            if moved:
                changed = True
                self._note_progress(matches, found, time, key)
            elif self._begun and matcher.limits:
                self._limit(time, key)
        changed = self._advance(matches, now) or changed
        if changed:
            self._keep(key, matches)

    def _keep(self, key: Any, matches: PartialMatches) -> None:
        if matches:
            self._matches.put(key, matches)
        else:
            self._matches.remove(key)
        if matches is self._spare:
            self._spare = self._matcher.new()

    def _note_progress(self, matches: PartialMatches, found: Sequence[Match], time: int, key: Any) -> None:
        """Emit the matches of an event that had an effect, and set the limits that it started."""
        if matches.begun and time > 0:
            self._begun = True
            self._limit(time, key)
        elif self._begun and self._matcher.limits:
            self._limit(time, key)
        if found:
            self._emit(found, time)
        if self._growth.may_be_much(matches):
            self._growth.warn(matches, key)

    def _limit(self, time: int, key: Any) -> None:
        """Register a timer for the time by which a match that began now must be complete.

        Once a match has begun, Flink does this for each further event of the same round. The difference shows
        only if there are other limits, which apply whenever the key is processed, so it is done only in that
        case.
        """
        window = self._matcher.window
        if window is None:
            return
        if self.spec.event_time:
            self.timers.event_time.register(time + window, key)
        else:
            self.timers.processing_time.register(time + window + 1, key)

    def _advance(self, matches: PartialMatches, time: int) -> bool:
        before = matches.partials
        if not before:
            return False
        found, late = self._matcher.advance(matches, time)
        if found:
            self._emit(found, time)
        for match, limit in late:
            assert self._process_timeout is not None
            results = self._process_timeout(match, self._context.at(limit))
            if results is not None:
                self.collected.gather(results, self._context.stamp)
        return matches.partials is not before

    def _emit(self, found: Sequence[Match], time: int) -> None:
        context = self._context.at(time)
        for match in found:
            results = self._process_match(match, context)
            if results is not None:
                self.collected.gather(results, context.stamp)

    # --- checkpoints ---
    def snapshot(self, into: SubtaskSnapshot) -> None:
        with self._naming_unsaved():
            super().snapshot(into)

    def end_epoch(self) -> None:
        with self._naming_unsaved():
            super().end_epoch()

    @contextmanager
    def _naming_unsaved(self) -> Iterator[None]:
        """Add the event that cannot be saved to an error of saving state."""
        try:
            yield
        except USER_ERRORS as error:
            for key, where, event in self._all_events():
                if not can_be_saved(event):
                    text = f"the event {short_repr(event)} of key {short_repr(key)} cannot be saved: {error}; {where}"
                    raise self.failure(NotSerializable(text), []) from error
            raise

    def _all_events(self) -> Iterator[tuple[Any, str, Any]]:
        for table in (self._matches, self._waiting):
            for key in list(table.changed) or list(table.addresses()):
                held = table.peek(key)
                if isinstance(held, PartialMatches):
                    yield from (
                        (key, f"the element '{name}' has taken it", event) for name, _, event, _ in held.nodes()
                    )
                elif isinstance(held, list):
                    yield from ((key, "it waits for the watermark", event) for _, event in held)


class _MatchContext(PatternProcessFunction.Context):
    """The `ctx` of a pattern process function."""

    def __init__(self, collected: Collected, context: OperatorContext, event_time: bool) -> None:
        self._collected = collected
        self._clock = context.clock
        self._event_time = event_time
        self._time = 0
        self.stamp: int | None = None
        """Timestamp of the emitted results."""

    def at(self, time: int) -> _MatchContext:
        self._time = time
        self.stamp = time if self._event_time else None
        return self

    def timestamp(self) -> int:
        return self._time

    def current_processing_time(self) -> int:
        return self._clock.now

    def output(self, tag: OutputTag, value: Any) -> None:
        self._collected.side(tag, value, self.stamp)
