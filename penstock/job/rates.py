"""Built-in metrics of slots: counters as the slots report them, and rates over the last seconds."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence

from penstock.runtime.core.activity import Figures
from penstock.runtime.core.messages import Report

SPAN_SECONDS = 5.0
"""Over how long a rate is taken, at least; a slot that has not been open for so long is taken as a whole."""

Sample = Mapping[tuple[int, str], Figures]
"""By slot and uid of a chain's first operator."""


class Rates:
    """Remembers what slots had done some seconds ago. May be asked from any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._older: Sample = {}
        self._newer: Sample = {}

    def metrics(self, reports: Sequence[Report]) -> dict[int, dict[str, float | int]]:
        """For every slot: its built-in metrics, under names that begin with the uid of a chain's first operator."""
        sample = {(report.slot, uid): Figures(*values) for report in reports for uid, values in report.activity.items()}
        with self._lock:
            self._remember(sample)
            older = self._older
        named: dict[int, dict[str, float | int]] = {report.slot: {} for report in reports}
        for (slot, uid), figures in sample.items():
            before = older.get((slot, uid), Figures())
            # After a restart the counters begin anew.
            if before.since >= figures.since:
                before = Figures()
            named[slot].update({f"{uid}.{name}": value for name, value in _metrics(figures, before).items()})
        return named

    def _remember(self, sample: Sample) -> None:
        if not self._newer or _restarted(self._newer, sample):
            self._older, self._newer = {}, sample
        elif _age(sample) - _age(self._newer) >= SPAN_SECONDS:
            self._older, self._newer = self._newer, sample


def _age(sample: Sample) -> float:
    return max((figures.since for figures in sample.values()), default=0.0)


def _restarted(before: Sample, now: Sample) -> bool:
    return _age(now) < _age(before)


def _metrics(now: Figures, before: Figures) -> dict[str, float | int]:
    seconds = max(now.since - before.since, 1e-3)
    busy, held = (
        _millis_per_second(now.busy - before.busy, seconds),
        _millis_per_second(now.held - before.held, seconds),
    )
    return {
        "numRecordsIn": now.records_in,
        "numRecordsOut": now.records_out,
        "numBytesIn": now.bytes_in,
        "numBytesOut": now.bytes_out,
        "numRecordsInPerSecond": (now.records_in - before.records_in) / seconds,
        "numRecordsOutPerSecond": (now.records_out - before.records_out) / seconds,
        "numBytesInPerSecond": (now.bytes_in - before.bytes_in) / seconds,
        "numBytesOutPerSecond": (now.bytes_out - before.bytes_out) / seconds,
        "busyTimeMsPerSecond": busy,
        "backPressuredTimeMsPerSecond": min(held, 1000.0 - busy),
        "idleTimeMsPerSecond": max(0.0, 1000.0 - busy - held),
        "accumulateBusyTimeMs": now.busy * 1000,
        "accumulateBackPressuredTimeMs": now.held * 1000,
        "accumulateIdleTimeMs": max(0.0, now.since - now.busy - now.held) * 1000,
    }


def _millis_per_second(seconds: float, of: float) -> float:
    return min(1000.0, max(0.0, 1000.0 * seconds / of))
