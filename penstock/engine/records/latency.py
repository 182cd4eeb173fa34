"""Latency: markers that sources send along with the records, and histograms of their delays.

Only this module reads real clocks while operators run: a marker has to measure the time within an epoch, in which
processing time does not advance. No result and no state of a job depends on it; see the decision on histograms and
latency.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from penstock.api.latency_marker import LatencyMarker
from penstock.graph.plan import operator_id
from penstock.metrics import Histogram, MetricGroup

GRANULARITIES = ("single", "operator", "subtask")
Key = tuple[str, ...]


def real_millis() -> float:
    """Return the time of this machine, in milliseconds since 1970."""
    return time.time_ns() / 1_000_000


class Markers:
    """The schedule of latency markers of a source subtask.

    It is asked in epochs only, so an idle job sends no markers.
    """

    def __init__(self, uid: str, subtask: int, interval: int, clock: Callable[[], float] = real_millis) -> None:
        self._source = operator_id(uid)
        self._subtask = subtask
        self._interval = interval
        self._clock = clock
        self._next = 0.0

    def due(self) -> LatencyMarker | None:
        """Return a marker if it is time for one."""
        now = self._clock()
        # A clock that was set back must not keep markers away for long.
        if self._next - self._interval <= now < self._next:
            return None
        self._next = now + self._interval
        return LatencyMarker(now, self._source, self._subtask)


class Latencies:
    """The histograms of one operator in one slot: one for all markers, for each source, or for each source subtask."""

    def __init__(
        self,
        job: MetricGroup,
        uid: str,
        subtask: int,
        granularity: str = "operator",
        history: int = 128,
        clock: Callable[[], float] = real_millis,
    ) -> None:
        self._group = job.add_group("latency")
        self._operator = (("operator_id", operator_id(uid)), ("operator_subtask_index", str(subtask)))
        self._granularity = granularity
        self._history = history
        self._clock = clock
        self._known: dict[Key, Histogram] = {}

    def record(self, marker: LatencyMarker) -> None:
        """Record the age of a marker that has come to the operator.

        Clocks of two machines may differ, so a negative age counts as 0.
        """
        key = self._key(marker)
        histogram = self._known.get(key)
        if histogram is None:
            histogram = self._known[key] = self._histogram(key)
        histogram.update(max(0.0, self._clock() - marker.marked))

    def _key(self, marker: LatencyMarker) -> Key:
        if self._granularity == "single":
            return ()
        return (marker.source,) if self._granularity == "operator" else (marker.source, str(marker.subtask))

    def _histogram(self, key: Key) -> Histogram:
        group = self._group
        for name, value in (*zip(("source_id", "source_subtask_index"), key, strict=False), *self._operator):
            group = group.add_group(name, value)
        return group.histogram("latency", self._history)
