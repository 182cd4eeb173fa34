"""Aggregators of iterations: numbers that functions add up within a superstep, and criteria that end the iteration."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

__all__ = [
    "Aggregator",
    "ConvergenceCriterion",
    "DoubleSumAggregator",
    "DoubleZeroConvergence",
    "LongSumAggregator",
    "LongZeroConvergence",
]


class Aggregator(ABC):
    """Combines values within one superstep. Every task has its own, and the driver combines them."""

    @abstractmethod
    def get_aggregate(self) -> Any:
        """Return the combination so far."""

    @abstractmethod
    def aggregate(self, element: Any) -> None:
        """Add a value, or the aggregate of another task."""

    @abstractmethod
    def reset(self) -> None:
        """Begin anew, for the next superstep."""


class _SumAggregator(Aggregator):
    """A sum."""

    zero: Any = 0

    def __init__(self) -> None:
        self.reset()

    def get_aggregate(self) -> Any:
        return self._sum

    def aggregate(self, element: Any) -> None:
        self._sum += element

    def reset(self) -> None:
        self._sum = self.zero


class LongSumAggregator(_SumAggregator):
    """A sum of whole numbers."""


class DoubleSumAggregator(_SumAggregator):
    """A sum of floating-point numbers."""

    zero = 0.0


class ConvergenceCriterion(ABC):
    """Decides after each superstep, on the driver, whether the iteration has converged."""

    @abstractmethod
    def is_converged(self, iteration: int, value: Any) -> bool:
        """Return True to end the iteration, given the number of the superstep and its aggregate."""


class LongZeroConvergence(ConvergenceCriterion):
    """Ends the iteration when a sum is 0."""

    def is_converged(self, iteration: int, value: Any) -> bool:
        return bool(value == 0)


class DoubleZeroConvergence(ConvergenceCriterion):
    """Ends the iteration when a sum is 0.0."""

    def is_converged(self, iteration: int, value: Any) -> bool:
        return bool(value == 0.0)
