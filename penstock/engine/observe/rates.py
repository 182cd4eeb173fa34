"""The built-in metrics of slots: counters from their reports, and rates over the last seconds."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from penstock.engine.messages.commands_and_reports import Report
from penstock.engine.observe.slot_activity import Figures
from penstock.engine.observe.system_metrics import LOWEST_WATERMARK
from penstock.engine.observe.tallies import OperatorFigures

SPAN_SECONDS = 5.0
"""The shortest span of a rate, in seconds. For a slot that is younger, the span is its whole life."""

NOTHING_YET = OperatorFigures()


class Measured(NamedTuple):
    """The counters of slots at one moment."""

    chains: Mapping[tuple[int, str], Figures]
    """Figures by (slot, uid of the first operator of a chain)."""
    operators: Mapping[tuple[int, str], OperatorFigures]
    """Figures by (slot, uid)."""


class Rates:
    """Remembers the counters of slots from some seconds ago. Any thread may call its methods."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._older = self._newer = Measured({}, {})
        self._sorted: tuple[Sequence[Report], Measured] = ((), self._newer)

    def metrics(self, reports: Sequence[Report]) -> dict[int, dict[str, float | int]]:
        """Return the built-in metrics of every slot. Names begin with the uid of the first operator of a chain."""
        now, before = self._look(reports)
        named: dict[int, dict[str, float | int]] = {report.slot: {} for report in reports}
        for (slot, uid), figures in now.chains.items():
            then = before.chains.get((slot, uid), Figures())
            # After a restart the counters begin again at 0.
            if then.since >= figures.since:
                then = Figures()
            named[slot].update({f"{uid}.{name}": value for name, value in _metrics(figures, then).items()})
        return named

    def operators(self, reports: Sequence[Report], taken: int) -> dict[int, dict[str, dict[str, Any]]]:
        """Return the built-in metrics of every slot and uid, at a time in milliseconds."""
        now, before = self._look(reports)
        ages = {slot: figures.since for (slot, _), figures in now.chains.items()}
        earlier = {slot: figures.since for (slot, _), figures in before.chains.items()}
        found: dict[int, dict[str, dict[str, Any]]] = {report.slot: {} for report in reports}
        for (slot, uid), figures in now.operators.items():
            seconds = ages.get(slot, 0.0) - earlier.get(slot, 0.0)
            then = before.operators.get((slot, uid), NOTHING_YET) if seconds > 0 else NOTHING_YET
            span = seconds if seconds > 0 else ages.get(slot, 0.0)
            found[slot][uid] = operator_metrics(figures, then, max(span, 1e-3), taken)
        return found

    def _look(self, reports: Sequence[Report]) -> tuple[Measured, Measured]:
        """Return the counters of now and of some seconds ago. The reports of the last look are not sorted again."""
        with self._lock:
            if reports is self._sorted[0] and reports:
                return self._sorted[1], self._older
        now = Measured(
            {(report.slot, uid): Figures(*values) for report in reports for uid, values in report.activity.items()},
            {(report.slot, uid): _counts(values) for report in reports for uid, values in report.operators.items()},
        )
        with self._lock:
            self._remember(now)
            self._sorted = reports, now
            return now, self._older

    def _remember(self, now: Measured) -> None:
        if not self._newer.chains or _age(now) < _age(self._newer):
            self._older, self._newer = Measured({}, {}), now
        elif _age(now) - _age(self._newer) >= SPAN_SECONDS:
            self._older, self._newer = self._newer, now


def _counts(values: tuple[Any, ...]) -> OperatorFigures:
    return OperatorFigures(*values)


def operator_metrics(now: OperatorFigures, before: OperatorFigures, seconds: float, taken: int) -> dict[str, Any]:
    """Return the built-in metrics of one operator in one slot, at a time in milliseconds."""
    found: dict[str, Any] = {
        "numRecordsIn": now.records_in,
        "numRecordsOut": now.records_out,
        "numRecordsInPerSecond": (now.records_in - before.records_in) / seconds,
        "numRecordsOutPerSecond": (now.records_out - before.records_out) / seconds,
    }
    if now.input_watermark is not None:
        found["currentInputWatermark"] = now.input_watermark
    if now.emitted is None:
        return found
    if now.input_watermark is None:
        found["sourceIdleTime"] = max(0, taken - now.emitted)
    if now.event_time is not None and now.event_time > LOWEST_WATERMARK:
        # A reader emits records in the call that fetches them, so both moments are the same.
        found["currentEmitEventTimeLag"] = found["currentFetchEventTimeLag"] = now.emitted - now.event_time
    return found


def _age(measured: Measured) -> float:
    return max((figures.since for figures in measured.chains.values()), default=0.0)


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
