"""Timers of one operator in one slot: deduplicated by (time, key, namespace), fired in order of time."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from heapq import heappop, heappush
from itertools import count
from typing import Any

from penstock.datastream.functions import TimerService
from penstock.errors import TimersRequireKeys
from penstock.runtime.elements import MIN_TIMESTAMP
from penstock.runtime.operator import Clock
from penstock.state.tables import KeyScope

VOID_NAMESPACE = None


class TimerQueue:
    """Timers of one time domain. Deleting is lazy: a deleted timer is skipped when its turn comes."""

    def __init__(self) -> None:
        self._heap: list[tuple[int, int, Any, Any]] = []
        self._live: dict[tuple[int, Any, Any], int] = {}
        self._order = count()

    def __len__(self) -> int:
        return len(self._live)

    def register(self, time: int, key: Hashable, namespace: Hashable = VOID_NAMESPACE) -> None:
        """Add a timer unless the same one is waiting already."""
        if (time, key, namespace) not in self._live:
            order = self._live[time, key, namespace] = next(self._order)
            heappush(self._heap, (time, order, key, namespace))

    def delete(self, time: int, key: Hashable, namespace: Hashable = VOID_NAMESPACE) -> None:
        """Remove a timer; deleting one that is not there does nothing."""
        self._live.pop((time, key, namespace), None)

    def next_time(self) -> int | None:
        """The time of the earliest timer."""
        self._drop_deleted()
        return self._heap[0][0] if self._heap else None

    def fire(self, until: int, on_timer: Callable[[int, Any, Any], None]) -> None:
        """Fire every timer at or before `until`, including those that firing registers."""
        while (due := self.next_time()) is not None and due <= until:
            time, _, key, namespace = heappop(self._heap)
            del self._live[time, key, namespace]
            on_timer(time, key, namespace)

    def timers(self) -> list[tuple[int, Any, Any]]:
        """All waiting timers, by time and then by registration."""
        return sorted(self._live, key=lambda timer: (timer[0], self._live[timer]))

    def _drop_deleted(self) -> None:
        heap, live = self._heap, self._live
        while heap and live.get((heap[0][0], heap[0][2], heap[0][3])) != heap[0][1]:
            heappop(heap)


class KeyedTimerService(TimerService):
    """The timer service of a keyed function: timers belong to the current key."""

    def __init__(self, scope: KeyScope, clock: Clock) -> None:
        self._scope = scope
        self._clock = clock
        self.watermark = MIN_TIMESTAMP
        self.event_time = TimerQueue()
        self.processing_time = TimerQueue()

    def current_processing_time(self) -> int:
        return self._clock.now

    def current_watermark(self) -> int:
        return self.watermark

    def register_event_time_timer(self, timestamp: int) -> None:
        self.event_time.register(_whole(timestamp), self._scope.key)

    def register_processing_time_timer(self, timestamp: int) -> None:
        self.processing_time.register(_whole(timestamp), self._scope.key)

    def delete_event_time_timer(self, timestamp: int) -> None:
        self.event_time.delete(_whole(timestamp), self._scope.key)

    def delete_processing_time_timer(self, timestamp: int) -> None:
        self.processing_time.delete(_whole(timestamp), self._scope.key)


class KeylessTimerService(TimerService):
    """Tells the time on a stream without keys, where timers have no owner."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self.watermark = MIN_TIMESTAMP

    def current_processing_time(self) -> int:
        return self._clock.now

    def current_watermark(self) -> int:
        return self.watermark

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
            "timers belong to a key, and this stream has none: call key_by(...) before process(...)"
        )


def _whole(timestamp: Any) -> int:
    if type(timestamp) is int:
        return timestamp
    whole = int(timestamp)
    if whole != timestamp:
        raise ValueError(f"a timer's time is in whole milliseconds, not {timestamp!r}")
    return whole
