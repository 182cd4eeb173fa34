"""Metrics: counters, gauges, meters, histograms and distributions, in groups whose names make up a dotted scope."""

from __future__ import annotations

import operator
import time
import weakref
from collections import deque
from collections.abc import Callable, Mapping
from typing import Any, ClassVar, Protocol, TypeVar, runtime_checkable

from penstock.base.arguments import check_arguments, invalid_argument
from penstock.metrics.histogram import Histogram, HistogramState
from penstock.metrics.metric import COMBINING, Described, Metric
from penstock.metrics.samples import COUNTER, GAUGE, HISTOGRAM, METER

__all__ = ["Counter", "Distribution", "Gauge", "Histogram", "Meter", "Metric", "MetricGroup"]

Number = int | float


def _whole(method: str, argument: str, value: Any) -> int:
    """Return the number for an object that stands for a whole number, such as NumPy's."""
    if isinstance(value, bool) or not hasattr(type(value), "__index__"):
        raise invalid_argument(method, argument, value, "a whole number")
    return operator.index(value)


class Counter(Metric):
    """A number that goes up and down."""

    kind: ClassVar[str] = COUNTER

    def __init__(self) -> None:
        self._count = 0

    def inc(self, n: int = 1) -> None:
        """Add `n` to the count."""
        self._count += n if type(n) is int else _whole("Counter.inc", "n", n)

    def dec(self, n: int = 1) -> None:
        """Subtract `n` from the count."""
        self._count -= n if type(n) is int else _whole("Counter.dec", "n", n)

    def get_count(self) -> int:
        """Return the count."""
        return self._count

    def readings(self) -> dict[str, Any]:
        return {"": self.get_count()}


@runtime_checkable
class HasValue(Protocol):
    """An object that knows the value of a gauge."""

    def get_value(self) -> Any:
        """Return the value."""
        ...


def _function_of(given: Any) -> Callable[[], Any]:
    """Return the function that reads the value of a gauge."""
    function: Callable[[], Any] = getattr(given, "get_value", given)
    return function


class Gauge(Metric):
    """A value that a function returns when it is read. `combining` is the way to combine values of several subtasks."""

    kind: ClassVar[str] = GAUGE
    combining: Mapping[str, str] = {"": "none"}

    @check_arguments
    def __init__(self, function: Callable[[], Any], combining: str = "none") -> None:
        """Create a gauge. `combining` is the way to combine values of several subtasks: sum, min, max, last or none."""
        if combining not in COMBINING:
            raise ValueError(f"the values of a gauge can be combined by {', '.join(COMBINING)}, not by {combining!r}")
        self._function = function
        self.combining = {"": combining}

    def get_value(self) -> Any:
        """Call the function and return its result."""
        return self._function()

    def readings(self) -> dict[str, Any]:
        return {"": self.get_value()}


class Meter(Metric):
    """Counts events, and computes their rate per second over the last time span."""

    kind: ClassVar[str] = METER

    @check_arguments
    def __init__(self, time_span_in_seconds: int = 60, clock: Callable[[], float] = time.monotonic) -> None:
        if time_span_in_seconds <= 0:
            raise ValueError(f"the time span of a meter must be positive, but is {time_span_in_seconds} s")
        self._span = time_span_in_seconds
        self._clock = clock
        self._count = 0
        self._recent: deque[list[int]] = deque()  # [second, events in it], for the seconds of the span

    def mark_event(self, value: int = 1) -> None:
        """Count events that happen now."""
        if type(value) is not int:
            value = _whole("Meter.mark_event", "value", value)
        self._count += value
        second = int(self._clock())
        if self._recent and self._recent[-1][0] == second:
            self._recent[-1][1] += value
        else:
            self._recent.append([second, value])
            self._forget(second)

    def get_count(self) -> int:
        """Return the number of all events."""
        return self._count

    def rate(self) -> float:
        """Return the number of events per second."""
        self._forget(int(self._clock()))
        return sum(events for _, events in self._recent) / self._span

    def _forget(self, now: int) -> None:
        while self._recent and self._recent[0][0] <= now - self._span:
            self._recent.popleft()

    def readings(self) -> dict[str, Any]:
        return {"count": self._count, "rate": self.rate()}


class Distribution(Metric):
    """Count, sum, least, greatest and mean of the given values. Without values, the last three are None."""

    kind: ClassVar[str] = HISTOGRAM
    combining: Mapping[str, str] = {"min": "min", "max": "max", "mean": "mean"}

    def __init__(self) -> None:
        self.count = 0
        self.sum: Number = 0
        self.min: Number | None = None
        self.max: Number | None = None

    def update(self, value: Number) -> None:
        """Add a value."""
        self.count += 1
        self.sum += value
        self.min = value if self.min is None or value < self.min else self.min
        self.max = value if self.max is None or value > self.max else self.max

    @property
    def mean(self) -> float | None:
        """Mean of the values, or None without values."""
        return self.sum / self.count if self.count else None

    def readings(self) -> dict[str, Any]:
        readings = {"count": self.count, "sum": self.sum, "min": self.min, "max": self.max, "mean": self.mean}
        return {name: value for name, value in readings.items() if value is not None}


M = TypeVar("M", bound=Metric)


class _Registry:
    """All metrics of a tree of groups and their descriptions, by full name."""

    __slots__ = ("__weakref__", "described", "metrics")

    def __init__(self) -> None:
        self.metrics: dict[str, Metric] = {}
        self.described: dict[str, Described] = {}


@check_arguments
class MetricGroup:
    """A named place for metrics and further groups. Asking for the same name again gives the same metric or group.

    >>> group = MetricGroup("job").add_group("orders")
    >>> group.counter("late").inc(2)
    >>> group.snapshot()
    {'job.orders.late': 2}
    """

    def __init__(self, *scope: str, variables: dict[str, str] | None = None) -> None:
        self._scope = scope
        self._logical_scope = scope
        self._variables = dict(variables or {})
        self._groups: dict[str, MetricGroup] = {}
        self._metrics: dict[str, Metric] = {}
        self._own: _Registry | None = _Registry()
        self._registry = weakref.ref(self._own)
        """All metrics of the outermost group and the groups below it.

        Only the outermost group holds them. Otherwise a function that keeps its own group would keep all other metrics
        in memory, too.
        """

    @property
    def described(self) -> dict[str, Described]:
        """Descriptions of all metrics in this tree of groups, by full name."""
        return self._find_registry().described

    def _find_registry(self) -> _Registry:
        """Return the registry of this tree of groups. It is empty if the outermost group is gone."""
        return self._registry() or _Registry()

    def add_group(self, name: str, extra: str | None = None) -> MetricGroup:
        """Return a group within this one.

        With `extra`, it contains a group with that name, and `name` becomes a variable.
        """
        group = self._groups.get(name)
        if group is None:
            group = self._groups[name] = MetricGroup(*self._scope, name, variables=self._variables)
            group._logical_scope = (*self._logical_scope, name)
            group._own, group._registry = None, self._registry
        if extra is None:
            return group
        value_group = group.add_group(extra)
        value_group._variables[name] = extra
        value_group._logical_scope = group._logical_scope
        return value_group

    def counter(self, name: str, counter: Counter | None = None) -> Counter:
        """Return the counter with this name. A custom counter can be passed before the name is used."""
        return self._metric(name, Counter, lambda: counter or Counter())

    def gauge(self, name: str, obj: Callable[[], Any] | HasValue | Gauge, combining: str = "none") -> Gauge:
        """Register a gauge for the result of a function, or of an object's `get_value`, at each reading.

        A second call with the same name replaces the function. `combining` is the way to combine values of
        several subtasks: sum, min, max, last or none.
        """
        gauge = obj if isinstance(obj, Gauge) else Gauge(_function_of(obj), combining)
        self._metric(name, Gauge, lambda: gauge)
        self._metrics[name] = self._find_registry().metrics[self.get_metric_identifier(name)] = gauge
        return gauge

    def meter(self, name: str, time_span_in_seconds: int = 60) -> Meter:
        """Return the meter with this name. Its rate covers the last `time_span_in_seconds` seconds."""
        return self._metric(name, Meter, lambda: Meter(time_span_in_seconds))

    def histogram(self, name: str, recent: int | None = None) -> Histogram:
        """Return the histogram with this name: quantiles of all values, or with `recent` of roughly the last ones."""
        return self._metric(name, Histogram, lambda: Histogram(recent))

    def distribution(self, name: str) -> Distribution:
        """Return the distribution with this name."""
        return self._metric(name, Distribution, Distribution)

    def get_scope_components(self) -> list[str]:
        """Return the names of the groups, outermost first."""
        return list(self._scope)

    def get_all_variables(self) -> dict[str, str]:
        """Return the values of all variables of the group."""
        return dict(self._variables)

    def get_metric_identifier(self, metric_name: str) -> str:
        """Return the full name of a metric in this group."""
        return ".".join((*self._scope, metric_name))

    def snapshot(self) -> dict[str, Any]:
        """Return the readings of all metrics in this group and the groups below, by full name."""
        readings = {
            f"{self.get_metric_identifier(name)}.{part}" if part else self.get_metric_identifier(name): value
            for name, metric in self._metrics.items()
            for part, value in metric.readings().items()
        }
        for group in self._groups.values():
            readings.update(group.snapshot())
        return readings

    def changes(self, last: dict[str, Any]) -> dict[str, Any]:
        """Return the reports of all metrics in this tree that differ from those in `last`, and update `last`."""
        changed = {
            name: value
            for full, metric in self._find_registry().metrics.items()
            for part, value in metric.report().items()
            if not _same(last.get(name := f"{full}.{part}" if part else full, _NOTHING), value)
        }
        last.update(changed)
        return changed

    def _metric(self, name: str, kind: type[M], make: Callable[[], M]) -> M:
        metric = self._metrics.get(name)
        if metric is None:
            metric = self._metrics[name] = make()
            full = self.get_metric_identifier(name)
            shared = self._find_registry()
            shared.metrics[full] = metric
            shared.described[full] = self._description(name, metric)
        if not isinstance(metric, kind):
            taken = f"{self.get_metric_identifier(name)} is a {type(metric).__name__} already"
            raise ValueError(f"{taken}, so it cannot be a {kind.__name__}")
        return metric

    def _description(self, name: str, metric: Metric) -> Described:
        return Described(
            self._scope, name, metric.kind, dict(metric.combining), self._logical_scope, dict(self._variables)
        )


_NOTHING = object()
"""A mark for readings that were never reported. None may be a reading."""
_PLAIN = frozenset({int, float, str, bool, type(None), HistogramState})


def _same(before: Any, now: Any) -> bool:
    """Return True if two readings are certainly equal.

    A gauge may return any object, even one that changes unnoticed.
    """
    return type(before) is type(now) and type(now) in _PLAIN and bool(before == now)
