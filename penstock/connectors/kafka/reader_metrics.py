"""What a reader of Kafka knows of its partitions, under the names of Flink's Kafka source."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from penstock.metrics import MetricGroup

Key = tuple[str, int]
LOOK_SECONDS = 1.0
"""How often the client is asked how far partitions go; it answers from what it has heard, without the network."""
NOT_COMMITTED = -1


class ReaderMetrics:
    """The metrics of one subtask. They are asked for at the end of every epoch, so answers have to be at hand."""

    def __init__(self, group: MetricGroup, positions: Callable[[], Mapping[Key, int]]) -> None:
        """`positions` tells which offset of each partition is read next."""
        self._group = group.add_group("KafkaSourceReader")
        self._positions = positions
        self._known: set[Key] = set()
        self._committed: dict[Key, int] = {}
        self._ends: dict[Key, int] = {}
        self._looked = 0.0
        self.ends_of: Callable[[Iterable[Key]], dict[Key, int]] = lambda keys: {}
        """Asks the client where partitions end."""
        consumer = self._group.add_group("KafkaConsumer")
        self.consumed = consumer.counter("records-consumed-total")
        self._succeeded = self._group.counter("commitsSucceeded")
        self._failed = self._group.counter("commitsFailed")
        group.gauge("pendingRecords", lambda: sum(self._lags()), combining="sum")
        consumer.gauge("records-lag-max", lambda: max(self._lags(), default=0), combining="max")

    def add(self, keys: Iterable[Key]) -> None:
        """Partitions are read here from now on."""
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
        """The library calls this when offsets were committed, or not."""
        if error is not None:
            self._failed.inc()
            return
        self._succeeded.inc()
        self._committed.update({(one.topic, one.partition): one.offset for one in partitions if one.error is None})

    def not_committed(self) -> None:
        """Offsets could not even be sent."""
        self._failed.inc()

    def _lags(self) -> list[int]:
        positions = dict(self._positions())
        if time.monotonic() - self._looked > LOOK_SECONDS:
            self._looked = time.monotonic()
            self._ends = self.ends_of(positions)
        return [max(0, self._ends[key] - offset) for key, offset in positions.items() if key in self._ends]
