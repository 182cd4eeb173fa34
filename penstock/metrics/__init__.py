"""Metrics: counters, gauges, meters and distributions, in groups whose names make up a dotted scope."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from typing import Any, ClassVar, TypeVar

__all__ = ["Counter", "Distribution", "Gauge", "Meter", "Metric", "MetricGroup"]

Number = int | float


class Metric:
    """Something that can be read at any moment."""

    combining: ClassVar[dict[str, str]] = {}
    """How readings of several slots become one, where they are not added up: "min", "max", "mean", or "none"."""

    def readings(self) -> dict[str, Any]:
        """What it shows, by name; the empty name stands for the metric itself."""
        raise NotImplementedError


class Counter(Metric):
    """A number that goes up and down."""

    def __init__(self) -> None:
        self._count = 0

    def inc(self, n: int = 1) -> None:
        self._count += n

    def dec(self, n: int = 1) -> None:
        self._count -= n

    def get_count(self) -> int:
        return self._count

    def readings(self) -> dict[str, Any]:
        return {"": self.get_count()}


class Gauge(Metric):
    """A value asked for when it is read."""

    combining: ClassVar[dict[str, str]] = {"": "none"}

    def __init__(self, function: Callable[[], Any]) -> None:
        self._function = function

    def get_value(self) -> Any:
        return self._function()

    def readings(self) -> dict[str, Any]:
        return {"": self.get_value()}


class Meter(Metric):
    """Counts events, and knows how many there were per second over the last time span."""

    def __init__(self, time_span_in_seconds: int = 60, clock: Callable[[], float] = time.monotonic) -> None:
        if time_span_in_seconds <= 0:
            raise ValueError(f"the time span of a meter must be positive, but is {time_span_in_seconds} s")
        self._span = time_span_in_seconds
        self._clock = clock
        self._count = 0
        self._recent: deque[list[int]] = deque()  # [second, events in it], for the seconds of the span

    def mark_event(self, value: int = 1) -> None:
        self._count += value
        second = int(self._clock())
        if self._recent and self._recent[-1][0] == second:
            self._recent[-1][1] += value
        else:
            self._recent.append([second, value])
            self._forget(second)

    def get_count(self) -> int:
        return self._count

    def rate(self) -> float:
        """Events per second."""
        self._forget(int(self._clock()))
        return sum(events for _, events in self._recent) / self._span

    def _forget(self, now: int) -> None:
        while self._recent and self._recent[0][0] <= now - self._span:
            self._recent.popleft()

    def readings(self) -> dict[str, Any]:
        return {"count": self._count, "rate": self.rate()}


class Distribution(Metric):
    """Count, sum, least, greatest and mean of the values it was given; the last three are None without values."""

    combining: ClassVar[dict[str, str]] = {"min": "min", "max": "max", "mean": "mean"}

    def __init__(self) -> None:
        self.count = 0
        self.sum: Number = 0
        self.min: Number | None = None
        self.max: Number | None = None

    def update(self, value: Number) -> None:
        self.count += 1
        self.sum += value
        self.min = value if self.min is None or value < self.min else self.min
        self.max = value if self.max is None or value > self.max else self.max

    @property
    def mean(self) -> float | None:
        return self.sum / self.count if self.count else None

    def readings(self) -> dict[str, Any]:
        readings = {"count": self.count, "sum": self.sum, "min": self.min, "max": self.max, "mean": self.mean}
        return {name: value for name, value in readings.items() if value is not None}


M = TypeVar("M", bound=Metric)


class MetricGroup:
    """A named place for metrics and further groups. Asking for the same name again gives the same metric or group.

    >>> group = MetricGroup("job").add_group("orders")
    >>> group.counter("late").inc(2)
    >>> group.snapshot()
    {'job.orders.late': 2}
    """

    def __init__(self, *scope: str, variables: dict[str, str] | None = None) -> None:
        self._scope = scope
        self._variables = dict(variables or {})
        self._groups: dict[str, MetricGroup] = {}
        self._metrics: dict[str, Metric] = {}
        self.combining: dict[str, str] = {}
        """By full name: how readings of several slots become one, where they are not added up. Groups share it."""

    def add_group(self, name: str, extra: str | None = None) -> MetricGroup:
        """A group within this one; with `extra`, a group named so within it, and `name` becomes a variable."""
        group = self._groups.get(name)
        if group is None:
            group = self._groups[name] = MetricGroup(*self._scope, name, variables=self._variables)
            group.combining = self.combining
        if extra is None:
            return group
        value_group = group.add_group(extra)
        value_group._variables[name] = extra
        return value_group

    def counter(self, name: str, counter: Counter | None = None) -> Counter:
        """The counter of this name; a custom counter can be passed in before the name is used."""
        return self._metric(name, Counter, lambda: counter or Counter())

    def gauge(self, name: str, obj: Callable[[], Any] | Gauge) -> Gauge:
        """A value that `obj` gives when it is read. Asking again puts the new function in place of the old."""
        gauge = obj if isinstance(obj, Gauge) else Gauge(obj)
        self._metric(name, Gauge, lambda: gauge)
        self._metrics[name] = gauge
        return gauge

    def meter(self, name: str, time_span_in_seconds: int = 60) -> Meter:
        return self._metric(name, Meter, lambda: Meter(time_span_in_seconds))

    def distribution(self, name: str) -> Distribution:
        return self._metric(name, Distribution, Distribution)

    def get_scope_components(self) -> list[str]:
        return list(self._scope)

    def get_all_variables(self) -> dict[str, str]:
        return dict(self._variables)

    def get_metric_identifier(self, metric_name: str) -> str:
        return ".".join((*self._scope, metric_name))

    def snapshot(self) -> dict[str, Any]:
        """The readings of all metrics here and in the groups below, by full name."""
        readings = {
            self._reading(name, part): value
            for name, metric in self._metrics.items()
            for part, value in metric.readings().items()
        }
        for group in self._groups.values():
            readings.update(group.snapshot())
        return readings

    def _reading(self, name: str, part: str) -> str:
        return self.get_metric_identifier(f"{name}.{part}" if part else name)

    def _metric(self, name: str, kind: type[M], make: Callable[[], M]) -> M:
        metric = self._metrics.get(name)
        if metric is None:
            metric = self._metrics[name] = make()
            self.combining.update({self._reading(name, part): how for part, how in metric.combining.items()})
        if not isinstance(metric, kind):
            taken = f"{self.get_metric_identifier(name)} is a {type(metric).__name__} already"
            raise ValueError(f"{taken}, so it cannot be a {kind.__name__}")
        return metric
