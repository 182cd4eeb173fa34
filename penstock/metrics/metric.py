"""The base of all metrics: a kind, readings, and rules for combining readings of several slots."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, NamedTuple

from penstock.metrics.samples import GAUGE

COMBINING = ("sum", "min", "max", "mean", "last", "merge", "none")
"""Ways to combine readings of several slots.

`last` takes the reading of the last slot, and `none` means that there is no value for all slots together.
"""


class Metric:
    """A measured value that can be read at any moment."""

    kind: ClassVar[str] = GAUGE
    combining: Mapping[str, str] = {}
    """Ways to combine readings of several slots, by the name of the reading. Other readings are added up."""

    def readings(self) -> dict[str, Any]:
        """Return the readings by name. The empty name stands for the metric itself."""
        raise NotImplementedError

    def report(self) -> dict[str, Any]:
        """Return the report of a slot for the driver: the readings, or data from which they are computed."""
        return self.readings()


class Described(NamedTuple):
    """Description of a metric, without its readings."""

    scope: tuple[str, ...]
    """The names of its groups, outermost first."""
    name: str
    kind: str
    combining: Mapping[str, str]
    logical_scope: tuple[str, ...]
    """The groups without the values of key-value groups."""
    variables: Mapping[str, str]
