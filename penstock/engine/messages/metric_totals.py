"""The combination of all slots' metrics."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from penstock.engine.messages.commands_and_reports import Report
from penstock.metrics.histogram import HistogramState, merge_histograms
from penstock.metrics.metric import Described

OF_THE_JOB = "."
"""Prefix of metrics that belong to no operator: the empty name of an operator."""

_COMBINED: dict[str, Callable[[list[Any]], Any]] = {
    "sum": sum,
    "min": min,
    "max": max,
    "last": lambda values: values[-1],
    "merge": merge_histograms,
}


def combine_metrics(reports: Sequence[Report]) -> dict[str, Any]:
    """Return one value for each numeric metric of an operator, combined as its description says.

    Most gauges are left out, because they have no way to be combined.
    """
    found: dict[str, list[Any]] = {}
    described: dict[str, Described] = {}
    for report in reports:
        described.update(report.described)
        for name, value in report.metrics.items():
            if isinstance(value, (int, float, HistogramState)) and not name.startswith(OF_THE_JOB):
                found.setdefault(name, []).append(value)
    how = _ways(described)
    totals = {
        name: _COMBINED[way](values) for name, values in found.items() if (way := how.get(name, "sum")) in _COMBINED
    }
    means = {name: _mean(name.removesuffix(".mean"), totals) for name in found if how.get(name) == "mean"}
    return _spread(totals) | means


def _ways(described: dict[str, Described]) -> dict[str, str]:
    """Return, for the name of each reading, how the values of several slots are combined.

    Readings that are not in the result are added up.
    """
    return {
        f"{full}.{part}" if part else full: way
        for full, metric in described.items()
        for part, way in metric.combining.items()
    }


def _spread(totals: dict[str, Any]) -> dict[str, Any]:
    """Return the values with every reading of a histogram under a name of its own."""
    spread: dict[str, Any] = {}
    for name, value in totals.items():
        if isinstance(value, HistogramState):
            spread.update({f"{name}.{part}": one for part, one in value.readings().items()})
        else:
            spread[name] = value
    return spread


def _mean(distribution: str, totals: dict[str, Any]) -> float:
    return float(totals[f"{distribution}.sum"] / totals[f"{distribution}.count"])
