"""The metrics of sinks for sent and committed records, under Flink's names."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from penstock.metrics import MetricGroup


class SinkMetrics:
    """The metrics of one subtask of a sink. A real clock times the sending; nothing else depends on it."""

    def __init__(self, group: MetricGroup, pending: Callable[[], int]) -> None:
        """Create the metrics. `pending` returns the number of prepared items that are not committed yet."""
        self._sent = group.counter("numRecordsSend")
        self._errors = group.counter("numRecordsSendErrors")
        self._committed = group.counter("successfulCommittables")
        self._failed = group.counter("failedCommittables")
        self._millis = 0.0
        group.gauge("currentSendTime", lambda: self._millis, combining="max")
        group.gauge("pendingCommittables", pending, combining="sum")

    @contextmanager
    def sending(self, records: int) -> Iterator[None]:
        """Measure the writing of some records, in a context."""
        began = time.perf_counter()
        try:
            yield
        except BaseException:
            self._errors.inc(records)
            raise
        self._millis = 1000 * (time.perf_counter() - began)
        self._sent.inc(records)

    @contextmanager
    def committing(self, items: int) -> Iterator[None]:
        """Count the commit of prepared items, in a context."""
        try:
            yield
        except BaseException:
            self._failed.inc(items)
            raise
        self._committed.inc(items)
