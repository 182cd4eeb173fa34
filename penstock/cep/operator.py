"""The operator that finds patterns: it keeps events until the watermark has reached them, and matches them then."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import groupby
from operator import itemgetter
from typing import Any

from penstock.cep.comparing import in_order, sort_key
from penstock.cep.compiler import compiled
from penstock.cep.functions import EventComparator, PatternProcessFunction, TimedOutPartialMatchHandler
from penstock.cep.growth import Growth
from penstock.cep.matching import Match, Matcher
from penstock.cep.partial_matches import PartialMatches
from penstock.cep.pattern import Pattern
from penstock.common.typeinfo import TypeInformation
from penstock.errors import MissingTimestamp, NotSerializable
from penstock.pickling import can_be_saved
from penstock.runtime.checkpoints.gathering import SubtaskSnapshot
from penstock.runtime.core.elements import Timestamps, Values
from penstock.runtime.core.failures import USER_ERRORS
from penstock.runtime.core.keyed_timer_operator import KeyedTimerOperator
from penstock.runtime.core.operator import OperatorContext
from penstock.runtime.functions.slot_contexts import Collected, open_function
from penstock.state.key_groups import shortened
from penstock.vocabulary.output_tag import OutputTag
from penstock.vocabulary.state.descriptors import ValueStateDescriptor

MATCHES, WAITING = "_pattern_matches", "_pattern_waiting"
MANY = 10_000
"""From so many partial matches, or events in them, of one key on, a warning is logged, and again whenever there are ten
times as many."""
_TIME = itemgetter(0)


@dataclass
class PatternSpec:
    """Which pattern is looked for, and how."""

    pattern: Pattern
    event_time: bool = True
    comparator: EventComparator | Callable[[Any, Any], int] | None = None
    late_tag: OutputTag | None = None


class PatternOperator(KeyedTimerOperator):
    """Finds a pattern in the events of each key.

    Two tables hold its state: events that wait for the watermark, as a list of (time, event) of which the first has the
    least time, and the partial matches. A key whose tables are empty costs nothing.
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
        clock, handler = context.clock, isinstance(self.function, TimedOutPartialMatchHandler)
        self._matcher = Matcher(compiled(self.spec.pattern), handler, lambda: clock.now)
        self._matches = self.keyed.table(ValueStateDescriptor(MATCHES))
        self._waiting = self.keyed.table(ValueStateDescriptor(WAITING))
        self._context = _MatchContext(self.collected, context, self.spec.event_time)
        self._process_match = self.function.process_match
        self._process_timeout = getattr(self.function, "process_timed_out_match", None)
        self._sort_key = sort_key(self.spec.comparator)
        self._late_dropped = context.metrics.counter("numLateRecordsDropped")
        self._growth = Growth(context.name, self._matcher.elements, MANY)
        self._begun = False
        """Whether a match has begun in this round of the current key."""
        self._drive = self._gather if self.spec.event_time or self._sort_key is not None else self._match_at_once
        try:
            for leaf in self._matcher.leaves:
                open_function(leaf.condition, self.runtime_context)
        except USER_ERRORS as error:
            raise self.failed(error, []) from error

    def close(self) -> None:
        super().close()
        for leaf in self._matcher.leaves:
            leaf.condition.close()

    # --- records ---
    def records(self, values: Values, timestamps: Timestamps) -> None:
        self.go_through(self._drive, values, timestamps)

    def _gather(self, feed: Iterator[Any], stamps: Iterable[int | None]) -> None:
        """Keep events until time reaches theirs."""
        assert self.keyed is not None and self.key_selector is not None
        event_time, now, key_of = self.spec.event_time, self.context.clock.now, self.key_selector
        entries, mark, watermark = self._waiting.entries, self._waiting.changed.add, self.timers.watermark
        scope = self.keyed.scope
        for value, timestamp in zip(feed, stamps, strict=False):
            time = timestamp if event_time else now
            if time is None:
                raise MissingTimestamp(
                    "a pattern in event time needs events with timestamps: call assign_timestamps_and_watermarks(...) "
                    "before, or in_processing_time() on the pattern stream"
                )
            if event_time and time <= watermark:
                self._late(value, time)
                continue
            scope.key = key = key_of(value)
            held = entries.get(key)
            if held is None:
                entries[key] = [(time, value)]
                self._wake(time, key)
            elif time < held[0][0]:
                held.insert(0, (time, value))
                self._wake(time, key)
            else:
                held.append((time, value))
            mark(key)

    def _match_at_once(self, feed: Iterator[Any], stamps: Iterable[int | None]) -> None:
        """Processing time: events come in the order in which they count."""
        assert self.keyed is not None and self.key_selector is not None
        now = self.context.clock.now
        for value, _ in zip(feed, stamps, strict=False):
            self.keyed.scope.key = key = self.key_selector(value)
            matches = self._held(key)
            changed = self._advance(matches, now)
            changed = self._feed(matches, value, now, key) or changed
            self._keep(key, matches, changed)

    def _late(self, value: Any, timestamp: int) -> None:
        if self.spec.late_tag is None:
            self._late_dropped.inc()
        else:
            self.collected.side(self.spec.late_tag, value, timestamp)

    def _wake(self, time: int, key: Any) -> None:
        """Set a timer that is due when this time is over."""
        if self.spec.event_time:
            self.timers.event_time.register(time, key)
        else:
            self.timers.processing_time.register(time + 1, key)

    # --- time ---
    def on_event_time(self, time: int, key: Any, namespace: Any) -> None:
        self._catch_up(key, self.timers.watermark)

    def on_processing_time(self, time: int, key: Any, namespace: Any) -> None:
        self._catch_up(key, self.context.clock.now)

    def _catch_up(self, key: Any, now: int) -> None:
        """Bring a key to the present: its due events one after the other, and then the rest of the time."""
        assert self.keyed is not None
        self.keyed.scope.key = key
        due = self._due(key, now)
        matches = self._held(key)
        changed, reached = False, None
        for time, event in due if self._sort_key is None else self._sorted(due):
            if time != reached:
                reached = time
                changed = self._advance(matches, time) or changed
            changed = self._feed(matches, event, time, key) or changed
        changed = self._advance(matches, now) or changed
        self._keep(key, matches, changed)

    def _due(self, key: Any, now: int) -> list[tuple[int, Any]]:
        """Take the events out that wait no longer, in the order of their times."""
        held = self._waiting.entries.get(key)
        if held is None or held[0][0] > now:
            return []
        held.sort(key=_TIME)
        count = bisect_right(held, now, key=_TIME)
        if count == len(held):
            self._waiting.remove(key)
            return held  # type: ignore[no-any-return]
        self._waiting.put(key, held[count:])
        self._wake(held[count][0], key)
        return held[:count]  # type: ignore[no-any-return]

    def _sorted(self, due: list[tuple[int, Any]]) -> Iterator[tuple[int, Any]]:
        """The events of one timestamp after the other, each time in the comparator's order."""
        assert self._sort_key is not None
        for time, pairs in groupby(due, _TIME):
            yield from ((time, event) for event in in_order([event for _, event in pairs], self._sort_key))

    # --- matching ---
    def _held(self, key: Any) -> PartialMatches:
        self._begun = False
        matches = self._matches.entries.get(key)
        if matches is None:
            return self._matcher.new()
        self._matcher.check(matches)
        return matches  # type: ignore[no-any-return]

    def _keep(self, key: Any, matches: PartialMatches, changed: bool) -> None:
        if not changed:
            return
        if matches:
            self._matches.put(key, matches)
        else:
            self._matches.remove(key)

    def _feed(self, matches: PartialMatches, event: Any, time: int, key: Any) -> bool:
        found, changed = self._matcher.feed(matches, event, time)
        if matches.begun and time > 0:
            self._begun = True
            self._limit(time, key)
        elif self._begun and self._matcher.limits:
            self._limit(time, key)
        if found:
            self._emit(found, time)
        if changed and self._growth.may_be_much(matches):
            self._growth.warn(matches, key)
        return changed

    def _limit(self, time: int, key: Any) -> None:
        """Wake up when a match that began now must be complete.

        Once a match has begun, Flink does so for each further event of the same round. That shows only where there are
        other limits, which strike whenever the key wakes up; so it is done only there.
        """
        if self._matcher.window is not None:
            self._wake(time + self._matcher.window, key)

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
        """An error of state that cannot be saved says which event it is."""
        try:
            yield
        except USER_ERRORS as error:
            for key, where, event in self._all_events():
                if not can_be_saved(event):
                    text = f"the event {shortened(event)} of key {shortened(key)} cannot be saved: {error}; {where}"
                    raise self.failed(NotSerializable(text), []) from error
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
        """The timestamp of what is emitted."""

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
