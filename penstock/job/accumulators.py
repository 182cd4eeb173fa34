"""The metrics of all slots, combined."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from penstock.runtime.core.messages import Report

_COMBINED: dict[str, Callable[[list[Any]], Any]] = {"sum": sum, "min": min, "max": max}


def combined(reports: Sequence[Report]) -> dict[str, Any]:
    """One value for each metric that has numbers; gauges are left out."""
    readings: dict[str, list[Any]] = {}
    how: dict[str, str] = {}
    for report in reports:
        how.update(report.combining)
        for name, value in _numbers(report.metrics.items()):
            readings.setdefault(name, []).append(value)
    totals = {
        name: _COMBINED[how.get(name, "sum")](values)
        for name, values in readings.items()
        if how.get(name, "sum") in _COMBINED
    }
    means = {name: _mean(name.removesuffix(".mean"), totals) for name in readings if how.get(name) == "mean"}
    return totals | means


def _numbers(items: Iterable[tuple[str, Any]]) -> Iterable[tuple[str, Any]]:
    return ((name, value) for name, value in items if isinstance(value, (int, float)))


def _mean(distribution: str, totals: dict[str, Any]) -> float:
    return float(totals[f"{distribution}.sum"] / totals[f"{distribution}.count"])
