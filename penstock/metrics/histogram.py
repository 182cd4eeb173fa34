"""A histogram: quantiles of any number of values in little memory, which can be merged over subtasks.

The sketch is DDSketch: the relative error of a quantile is at most one per cent, also for extreme quantiles. Merged
sketches are exactly the sketch of all values. The decision on histograms and latency compares it with others.
"""

from __future__ import annotations

import math
from array import array
from collections.abc import Iterable
from functools import lru_cache
from operator import add
from typing import Any, ClassVar, NamedTuple

from penstock.base.arguments import check_arguments
from penstock.metrics.metric import Metric
from penstock.metrics.samples import HISTOGRAM

__all__ = ["QUANTILES", "Histogram", "HistogramState"]

QUANTILES = {"p50": 0.5, "p75": 0.75, "p90": 0.9, "p95": 0.95, "p98": 0.98, "p99": 0.99, "p999": 0.999}
ACCURACY = 0.01
_MOST_BINS = 2048
"""Greatest number of bins. Values that differ by less than a factor of 10 to the 17th have separate bins."""

Bins = tuple[int, bytes]
"""The key of the first bin, and the counts from that bin on as 64-bit floats."""
_NO_BINS: Bins = (0, b"")


class HistogramState(NamedTuple):
    """A histogram as plain data, which is sent to the driver and merged there."""

    seen: int = 0
    """Number of all values. The fields below describe only the remembered values."""
    kept: int = 0
    mean: float = 0.0
    squares: float = 0.0
    """The sum of the squared differences from the mean."""
    min: float = math.inf
    max: float = -math.inf
    zeros: int = 0
    positive: Bins = _NO_BINS
    negative: Bins = _NO_BINS

    def readings(self) -> dict[str, Any]:
        """Return count, extremes, mean, standard deviation and quantiles, or only the count if there are no values."""
        return dict(_readings(self))


@lru_cache(maxsize=4096)
def _readings(state: HistogramState) -> dict[str, Any]:
    """Return the readings of a state.

    They are cached: many readers use the same state, and most states do not change.
    """
    if not state.kept:
        return {"count": state.seen}
    spread = math.sqrt(state.squares / (state.kept - 1)) if state.kept > 1 else 0.0
    found = _sketch(state).quantiles(list(QUANTILES.values()))
    # A bin may reach beyond the values that are in it.
    within = [min(max(value, state.min), state.max) for value in found]
    moments = {"count": state.seen, "min": state.min, "max": state.max, "mean": state.mean}
    # Squares of very large numbers are too large for a float.
    known = {"stddev": spread} if math.isfinite(spread) else {}
    return moments | known | dict(zip(QUANTILES, within, strict=True))


def merge_histograms(states: Iterable[HistogramState]) -> HistogramState:
    """Return the histogram of all values of several histograms."""
    given = list(states)
    seen = sum(state.seen for state in given)
    full = [state for state in given if state.kept]
    if len(full) < 2:
        return (full[0] if full else HistogramState())._replace(seen=seen)
    kept, mean, squares = 0, 0.0, 0.0
    for state in full:
        kept, apart = kept + state.kept, state.mean - mean
        mean += apart * state.kept / kept
        squares += state.squares + apart * (state.mean - mean) * state.kept
    return HistogramState(
        seen,
        kept,
        mean,
        squares,
        min(state.min for state in full),
        max(state.max for state in full),
        sum(state.zeros for state in full),
        *_merge_bins(full),
    )


def _merge_bins(states: list[HistogramState]) -> tuple[Bins, Bins]:
    """Merge bins. The library does this only if bins must be collapsed, because it is slow."""
    positive = _add_bins([state.positive for state in states])
    negative = _add_bins([state.negative for state in states])
    if positive is not None and negative is not None:
        return positive, negative
    sketch = _sketch(states[0])
    for state in states[1:]:
        sketch.merge(_sketch(state))
    bins: tuple[Bins, Bins] = sketch.bins()
    return bins


def _add_bins(parts: list[Bins]) -> Bins | None:
    """Return bins with the counts of all parts, or None if there are too many bins."""
    lists = [unpack_bins(part) for part in parts if part[1]]
    if not lists:
        return _NO_BINS
    first = min(start for start, _ in lists)
    length = max(start + len(bins) for start, bins in lists) - first
    if length > _MOST_BINS:
        return None
    total = [0.0] * length
    for start, bins in lists:
        place = slice(start - first, start - first + len(bins))
        total[place] = map(add, total[place], bins)
    return pack_bins(first, total)


class Histogram(Metric):
    """Quantiles of all values, or of the `recent` ones.

    With `recent`, the histogram covers at least that many and at most twice as many of the last values.
    """

    kind: ClassVar[str] = HISTOGRAM
    combining = {"": "merge"}

    @check_arguments
    def __init__(self, recent: int | None = None) -> None:
        if recent is not None and recent <= 0:
            raise ValueError(f"a histogram of recent values needs at least 1 of them, not {recent}")
        self._recent = recent
        self._older = HistogramState()
        self._seen = 0
        self._state: HistogramState | None = None
        self._begin()

    def _begin(self) -> None:
        self._sketch = _sketch(HistogramState())
        self._count, self._mean, self._squares, self._zeros = 0, 0.0, 0.0, 0
        self._min, self._max = math.inf, -math.inf

    def update(self, value: float) -> None:
        """Add a value."""
        if not math.isfinite(value):
            raise ValueError(f"a histogram takes finite numbers, not {value!r}")
        if self._count == self._recent:
            self._older = self._younger()
            self._begin()
        self._state = None
        self._seen += 1
        self._count += 1
        apart = value - self._mean
        self._mean += apart / self._count
        self._squares += apart * (value - self._mean)
        self._min = min(self._min, value)
        self._max = max(self._max, value)
        self._zeros += self._sketch.take(value)

    def get_count(self) -> int:
        """Return the number of values."""
        return self._seen

    def state(self) -> HistogramState:
        """Return the state as plain data. It is the same object as long as no value is added."""
        if self._state is None:
            self._state = merge_histograms([self._older, self._younger()])._replace(seen=self._seen)
        return self._state

    def _younger(self) -> HistogramState:
        moments = (self._mean, self._squares, self._min, self._max)
        return HistogramState(self._count, self._count, *moments, self._zeros, *self._sketch.bins())

    def readings(self) -> dict[str, Any]:
        return self.state().readings()

    def report(self) -> dict[str, Any]:
        return {"": self.state()}


# --- the library ---
def _sketch(state: HistogramState) -> Any:
    """Return the library's sketch of a state. The library is loaded only if there is a histogram."""
    from penstock.metrics.sketch import Sketch

    return Sketch(state.zeros, state.positive, state.negative)


def pack_bins(first: int, bins: list[float]) -> Bins:
    return (first, array("d", bins).tobytes())


def unpack_bins(bins: Bins) -> tuple[int, list[float]]:
    return bins[0], array("d", bins[1]).tolist()
