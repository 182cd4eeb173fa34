"""Numbers in Flink's answers, which are never missing and never infinite."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

Number = float | int
Json = dict[str, Any]

NAN = "NaN"
"""The text that replaces an undefined number."""


_LARGEST = 1e150
"""The largest number that is accepted. Its square is still finite."""


def as_number(value: Any) -> Number | None:
    """Return a finite number, or None for every other value."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    return value if -_LARGEST < value < _LARGEST else None


def count(metrics: Mapping[str, Any], name: str) -> int:
    """Return the value of a counter, or 0 if it is missing."""
    return max(0, int(as_number(metrics.get(name)) or 0))


def metric_text(value: Any) -> str:
    """Return the value of a metric as Java would write it."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float) and not math.isfinite(value):
        return NAN if math.isnan(value) else f"{'-' if value < 0 else ''}Infinity"
    return str(value)


def percentile(ordered: Sequence[Number], share: float) -> float:
    """Return the percentile of sorted values, interpolated between two of them."""
    place = share * (len(ordered) + 1)
    below = math.floor(place)
    if below < 1:
        return float(ordered[0])
    if below >= len(ordered):
        return float(ordered[-1])
    return float(ordered[below - 1] + (place - below) * (ordered[below] - ordered[below - 1]))


def spread(values: Sequence[Number]) -> Json:
    """Return the distribution of a figure over subtasks."""
    ordered = sorted(values) or [0]
    total = sum(ordered)
    return {
        "min": ordered[0],
        "max": ordered[-1],
        "avg": int(total / len(ordered)),
        "sum": total,
        "median": int(percentile(ordered, 0.5)),
        "p25": int(percentile(ordered, 0.25)),
        "p75": int(percentile(ordered, 0.75)),
        "p95": int(percentile(ordered, 0.95)),
    }


_SHARES = {"p50": 0.5, "p90": 0.9, "p95": 0.95, "p99": 0.99, "p999": 0.999}


def summary(values: Sequence[Number]) -> Json:
    """Return the distribution of a figure over checkpoints."""
    if not values:
        return {"min": 0, "max": 0, "avg": 0, **dict.fromkeys(_SHARES, NAN)}
    ordered = sorted(values)
    extent = {"min": int(ordered[0]), "max": int(ordered[-1]), "avg": int(sum(ordered) / len(ordered))}
    return {**extent, **{name: percentile(ordered, share) for name, share in _SHARES.items()}}


# --- aggregates ---
def _mean(values: Sequence[Number]) -> float:
    return math.fsum(values) / len(values)


def _skew(values: Sequence[Number]) -> float:
    """Return the standard deviation as a percentage of the mean, at most 100."""
    mean = _mean(values)
    if mean <= 0:
        return 0.0
    deviation = math.sqrt(_mean([(value - mean) ** 2 for value in values]))
    return min(100.0, 100 * deviation / mean)


AGGREGATES: dict[str, Callable[[Sequence[Number]], Number]] = {
    "min": min,
    "max": max,
    "avg": _mean,
    "sum": math.fsum,
    "skew": _skew,
}
