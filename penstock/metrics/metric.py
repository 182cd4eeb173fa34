"""What every metric is: a name for its kind, readings, and how those of several slots become one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, NamedTuple

from penstock.metrics.samples import GAUGE

COMBINING = ("sum", "min", "max", "mean", "last", "merge", "none")
"""The ways in which readings of several slots become one: the last is that of the last slot; none means that nothing
can be said of all slots together."""


class Metric:
    """Something that can be read at any moment."""

    kind: ClassVar[str] = GAUGE
    combining: Mapping[str, str] = {}
    """By reading: how those of several slots become one, where they are not added up."""

    def readings(self) -> dict[str, Any]:
        """What it shows, by name; the empty name stands for the metric itself."""
        raise NotImplementedError

    def reported(self) -> dict[str, Any]:
        """What a slot tells the driver: the readings, or what they can be worked out from."""
        return self.readings()


class Described(NamedTuple):
    """What a metric is, whatever it shows."""

    scope: tuple[str, ...]
    """The names of its groups, outermost first."""
    name: str
    kind: str
    combining: Mapping[str, str]
    logical_scope: tuple[str, ...]
    """The groups without the values of key-value groups."""
    variables: Mapping[str, str]
