"""The metrics of a Kafka reader, under the names of Flink's Kafka source."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from penstock.metrics import MetricGroup

Key = tuple[str, int]
LOOK_SECONDS = 1.0
"""Seconds between two questions for the ends of partitions. The client answers them without the network."""
NOT_COMMITTED = -1


class ReaderMetrics:
    """The metrics of one subtask. They are read at the end of every epoch, so every answer is kept at hand."""

    def __init__(self, group: MetricGroup, positions: Callable[[], Mapping[Key, int]]) -> None:
        """Take `positions`, a function that returns the next offset to read in each partition."""
        self._group = group.add_group("KafkaSourceReader")
        self._positions = positions
        self._known: set[Key] = set()
        self._committed: dict[Key, int] = {}
        self._ends: dict[Key, int] = {}
        self._looked = 0.0
        self.ends_of: Callable[[Iterable[Key]], dict[Key, int]] = lambda keys: {}
        """Asks the client for the ends of partitions."""
        consumer = self._group.add_group("KafkaConsumer")
        self.consumed = consumer.counter("records-consumed-total")
        self._succeeded = self._group.counter("commitsSucceeded")
        self._failed = self._group.counter("commitsFailed")
        group.gauge("pendingRecords", lambda: sum(self._lags()), combining="sum")
        consumer.gauge("records-lag-max", lambda: max(self._lags(), default=0), combining="max")

    def add(self, keys: Iterable[Key]) -> None:
        """Add partitions that are read here from now on."""
        for key in keys:
            if key not in self._known:
                self._known.add(key)
                self._add(key)

    def _add(self, key: Key) -> None:
        topic, partition = key
        group = self._group.add_group("topic", topic).add_group("partition", str(partition))
        group.gauge("currentOffset", lambda: self._positions().get(key, 0) - 1)
        group.gauge("committedOffset", lambda: self._committed.get(key, NOT_COMMITTED))

    def note_commit(self, error: Any, partitions: Iterable[Any]) -> None:
        """Count the outcome of a commit of offsets. The library calls this."""
        if error is not None:
            self._failed.inc()
            return
        self._succeeded.inc()
        self._committed.update({(one.topic, one.partition): one.offset for one in partitions if one.error is None})

    def not_committed(self) -> None:
        """Count a commit of offsets that could not be sent."""
        self._failed.inc()

    def _lags(self) -> list[int]:
        positions = dict(self._positions())
        if time.monotonic() - self._looked > LOOK_SECONDS:
            self._looked = time.monotonic()
            self._ends = self.ends_of(positions)
        return [max(0, self._ends[key] - offset) for key, offset in positions.items() if key in self._ends]
