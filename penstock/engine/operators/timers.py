"""The timers of one operator in one slot, without duplicates of (time, key, namespace), fired in order of time."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from heapq import heapify, heappop, heappush
from itertools import count
from typing import Any

from penstock.api.functions.contexts import TimerService
from penstock.engine.operators.operator import Clock
from penstock.engine.records.elements import MAX_TIMESTAMP, MIN_TIMESTAMP, whole_millis
from penstock.engine.state.backend import KeyedStateBackend
from penstock.engine.state.tables import KeyScope, Layout, Table
from penstock.errors import TimersRequireKeys

VOID_NAMESPACE = None
EVENT_TIMERS, PROCESSING_TIMERS = "_event_timers", "_processing_timers"
Timer = tuple[int, Any, Any]
"""(time, key, namespace)"""
OnTimer = Callable[[int, Any, Any], None]


class TimerQueue:
    """The timers of one time domain. Deleting is lazy: the queue skips a deleted timer when its turn comes.

    The table holds the order of registration for each pending timer; checkpoints write this table.
    """

    def __init__(self, table: Table | None = None) -> None:
        table = table or Table("timers", Layout.TIMER)
        self._live: dict[Timer, int] = table.entries
        self._changed = table.changed.add
        if len(set(self._live.values())) < len(self._live):
            # The timers come from several slots, and each slot had its own count.
            for order, timer in enumerate(self.timers()):
                self._live[timer] = order
        self._heap: list[tuple[int, int, Timer]] = [(timer[0], order, timer) for timer, order in self._live.items()]
        heapify(self._heap)
        self._order = count(max(self._live.values(), default=-1) + 1)
        self._closed = False
        self.firing: Timer | None = None
        """The timer whose turn it is; after an error, the one that failed."""

    def __len__(self) -> int:
        return len(self._live)

    def register(self, time: int, key: Hashable, namespace: Hashable = VOID_NAMESPACE) -> None:
        """Add a timer unless an equal one is already waiting."""
        if self._closed:
            return
        timer, order = (time, key, namespace), next(self._order)
        if self._live.setdefault(timer, order) == order:
            heappush(self._heap, (time, order, timer))
            self._changed(timer)

    def delete(self, time: int, key: Hashable, namespace: Hashable = VOID_NAMESPACE) -> None:
        """Remove a timer. If it does not exist, nothing happens."""
        if self._live.pop((time, key, namespace), None) is not None:
            self._changed((time, key, namespace))

    def next_time(self) -> int | None:
        """Return the time of the earliest timer, or None if there is no timer."""
        heap, live = self._heap, self._live
        while heap and live.get(heap[0][2]) != heap[0][1]:
            heappop(heap)
        return heap[0][0] if heap else None

    def fire(self, until: int, on_timer: OnTimer) -> None:
        """Fire every timer at or before `until`, including those that firing registers."""
        heap, live = self._heap, self._live
        while heap and heap[0][0] <= until:
            _, order, timer = heappop(heap)
            if live.get(timer) == order:
                del live[timer]
                self._changed(timer)
                self.firing = timer
                on_timer(*timer)
        self.firing = None

    def fire_once(self, until: int, on_timer: OnTimer) -> None:
        """Fire timers by a clock that does not advance meanwhile.

        Unlike `fire`, this method does not fire a timer that was registered during the call, even if it is due.
        """
        heap, live, deferred = self._heap, self._live, list[tuple[int, int, Timer]]()
        began, reached = next(self._order), MIN_TIMESTAMP
        while heap and heap[0][0] <= until:
            entry = heappop(heap)
            time, order, timer = entry
            if live.get(timer) != order:
                continue
            if order > began and time <= reached:
                deferred.append(entry)
                continue
            reached = time
            del live[timer]
            self._changed(timer)
            self.firing = timer
            on_timer(*timer)
        self.firing = None
        for entry in deferred:
            heappush(heap, entry)

    def close(self) -> None:
        """Accept no more timers, while the pending ones fire for the last time."""
        self._closed = True

    def reopen(self) -> None:
        """Start again, without any timer."""
        self._closed = False
        self._heap.clear()
        self._live.clear()

    def timers(self) -> list[Timer]:
        """Return all waiting timers, ordered by time and then by registration."""
        return sorted(self._live, key=lambda timer: (timer[0], self._live[timer]))


class Timers:
    """The timers of one operator in both time domains, and the current time in each.

    Timers belong to keys: a stream without keys cannot register any, and both queues stay empty.
    """

    def __init__(self, clock: Clock, keyed: KeyedStateBackend | None = None) -> None:
        self.clock = clock
        self.watermark = MIN_TIMESTAMP
        self.event_time = TimerQueue(_table(keyed, EVENT_TIMERS))
        self.processing_time = TimerQueue(_table(keyed, PROCESSING_TIMERS))

    @property
    def firing(self) -> Timer | None:
        """The timer whose turn it is; after an error, the one that failed."""
        return self.event_time.firing or self.processing_time.firing

    def finish(self, on_event_time: OnTimer, on_processing_time: OnTimer) -> None:
        """Fire everything as if time had ended, as BATCH mode does for a key. Ignore timers registered meanwhile."""
        before, self.watermark = self.watermark, MAX_TIMESTAMP
        for queue in (self.event_time, self.processing_time):
            queue.close()
        self.event_time.fire(MAX_TIMESTAMP, on_event_time)
        self.processing_time.fire(MAX_TIMESTAMP, on_processing_time)
        for queue in (self.event_time, self.processing_time):
            queue.reopen()
        self.watermark = before


def _table(keyed: KeyedStateBackend | None, name: str) -> Table | None:
    if keyed is None:
        return None
    return keyed.tables.get(name) or keyed.empty_table(name, Layout.TIMER)


class KeyedTimerService(TimerService):
    """The timer service of a keyed function. Timers belong to the current key."""

    def __init__(self, timers: Timers, scope: KeyScope) -> None:
        self._timers = timers
        self._scope = scope

    def current_processing_time(self) -> int:
        return self._timers.clock.now

    def current_watermark(self) -> int:
        return self._timers.watermark

    def register_event_time_timer(self, timestamp: int) -> None:
        self._timers.event_time.register(_whole(timestamp), self._scope.key)

    def register_processing_time_timer(self, timestamp: int) -> None:
        self._timers.processing_time.register(_whole(timestamp), self._scope.key)

    def delete_event_time_timer(self, timestamp: int) -> None:
        self._timers.event_time.delete(_whole(timestamp), self._scope.key)

    def delete_processing_time_timer(self, timestamp: int) -> None:
        self._timers.processing_time.delete(_whole(timestamp), self._scope.key)


class KeylessTimerService(TimerService):
    """The timer service on a stream without keys, or on a broadcast side. It returns the time, but refuses timers."""

    def __init__(self, timers: Timers) -> None:
        self._timers = timers

    def current_processing_time(self) -> int:
        return self._timers.clock.now

    def current_watermark(self) -> int:
        return self._timers.watermark

    def register_event_time_timer(self, timestamp: int) -> None:
        self._refuse()

    def register_processing_time_timer(self, timestamp: int) -> None:
        self._refuse()

    def delete_event_time_timer(self, timestamp: int) -> None:
        self._refuse()

    def delete_processing_time_timer(self, timestamp: int) -> None:
        self._refuse()

    def _refuse(self) -> None:
        raise TimersRequireKeys(
            "timers belong to a key, and this stream has no keys: call key_by(...) before process(...)"
        )


def _whole(timestamp: Any) -> int:
    try:
        return timestamp if type(timestamp) is int else whole_millis(timestamp)
    except (TypeError, ValueError, OverflowError):
        raise TypeError(f"the time of a timer must be a whole number of milliseconds, not {timestamp!r}") from None
