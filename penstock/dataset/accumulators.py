"""Accumulators: values that functions add up over all tasks of a job. The program reads them when the job has ended.

    class Count(RichMapFunction):
        def open(self, runtime_context):
            self.lines = runtime_context.get_long_counter("lines")

        def map(self, value):
            self.lines.add(1)
            return value

`env.get_last_job_execution_result().get_accumulator_result("lines")` is the sum.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

__all__ = [
    "Accumulator",
    "AverageAccumulator",
    "DoubleCounter",
    "DoubleMaximum",
    "DoubleMinimum",
    "Histogram",
    "IntCounter",
    "IntMaximum",
    "IntMinimum",
    "ListAccumulator",
    "LongCounter",
    "LongMaximum",
    "LongMinimum",
]


class Accumulator(ABC):
    """Base of all accumulators. Every task has its own, and the driver merges them."""

    @abstractmethod
    def add(self, value: Any) -> None:
        """Add a value."""

    @abstractmethod
    def get_local_value(self) -> Any:
        """Return the value so far in this task, or after merging that of all tasks."""

    @abstractmethod
    def reset_local(self) -> None:
        """Begin anew."""

    @abstractmethod
    def merge(self, other: Any) -> None:
        """Add the value of another accumulator of the same class."""


class _Counter(Accumulator):
    """A sum."""

    zero: Any = 0

    def __init__(self) -> None:
        self.reset_local()

    def add(self, value: Any) -> None:
        self._sum += value

    def get_local_value(self) -> Any:
        return self._sum

    def reset_local(self) -> None:
        self._sum = self.zero

    def merge(self, other: _Counter) -> None:
        self._sum += other._sum


class IntCounter(_Counter):
    """A sum of whole numbers."""


class LongCounter(_Counter):
    """A sum of whole numbers."""


class DoubleCounter(_Counter):
    """A sum of floating-point numbers."""

    zero = 0.0


class AverageAccumulator(Accumulator):
    """The mean of all values; 0.0 if there are none."""

    def __init__(self) -> None:
        self.reset_local()

    def add(self, value: float) -> None:
        self._count += 1
        self._sum += value

    def get_local_value(self) -> float:
        return self._sum / self._count if self._count else 0.0

    def reset_local(self) -> None:
        self._count = 0
        self._sum = 0.0

    def merge(self, other: AverageAccumulator) -> None:
        self._count += other._count
        self._sum += other._sum


class _Extreme(Accumulator):
    """The least or the greatest of all values."""

    start: Any
    greatest = False
    _value: Any

    def __init__(self) -> None:
        self.reset_local()

    def add(self, value: Any) -> None:
        if value > self._value if self.greatest else value < self._value:
            self._value = value

    def get_local_value(self) -> Any:
        return self._value

    def reset_local(self) -> None:
        self._value = self.start

    def merge(self, other: _Extreme) -> None:
        self.add(other._value)


class IntMinimum(_Extreme):
    """The smallest whole number, or the largest one of 32 bits if there are no numbers."""

    start = (1 << 31) - 1


class IntMaximum(_Extreme):
    """The largest whole number, or the smallest one of 32 bits if there are no numbers."""

    start = -(1 << 31)
    greatest = True


class LongMinimum(_Extreme):
    """The smallest whole number, or the largest one of 64 bits if there are no numbers."""

    start = (1 << 63) - 1


class LongMaximum(_Extreme):
    """The largest whole number, or the smallest one of 64 bits if there are no numbers."""

    start = -(1 << 63)
    greatest = True


class DoubleMinimum(_Extreme):
    """The least number; infinity if there are none."""

    start = float("inf")


class DoubleMaximum(_Extreme):
    """The greatest number; minus infinity if there are none."""

    start = float("-inf")
    greatest = True


class Histogram(Accumulator):
    """The number of times that each whole number was added."""

    def __init__(self) -> None:
        self.reset_local()

    def add(self, value: int) -> None:
        self._counts[value] = self._counts.get(value, 0) + 1

    def get_local_value(self) -> dict[int, int]:
        return dict(sorted(self._counts.items()))

    def reset_local(self) -> None:
        self._counts: dict[int, int] = {}

    def merge(self, other: Histogram) -> None:
        for value, count in other._counts.items():
            self._counts[value] = self._counts.get(value, 0) + count


class ListAccumulator(Accumulator):
    """All values, in no particular order."""

    def __init__(self) -> None:
        self.reset_local()

    def add(self, value: Any) -> None:
        self._values.append(value)

    def get_local_value(self) -> list[Any]:
        return self._values

    def reset_local(self) -> None:
        self._values: list[Any] = []

    def merge(self, other: ListAccumulator) -> None:
        self._values += other._values
