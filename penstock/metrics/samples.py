"""Samples for reporters: one metric at one moment, with the scope and the variables that Flink gives it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

__all__ = ["COUNTER", "GAUGE", "HISTOGRAM", "METER", "Sample"]

COUNTER, GAUGE, METER, HISTOGRAM = "counter", "gauge", "meter", "histogram"


@dataclass(frozen=True)
class Sample:
    """One metric at one moment, ready for a reporter."""

    name: str
    """Name of the metric, such as `numRecordsIn`. Groups of users belong to the scope, not to the name."""
    kind: str
    """`counter`, `gauge`, `meter` or `histogram`."""
    values: Mapping[str, Any]
    """Values by name.

    A counter and a gauge have one value, under the empty name; a gauge's value may be text. A meter has `count` and
    `rate`. A histogram or distribution has the known ones of `count`, `min`, `max`, `mean`, `stddev`, `p50`, `p75`,
    `p95`, `p98`, `p99` and `p999`.
    """
    scope: tuple[str, ...]
    """The system scope in the format of `metrics.scope.*`, followed by the groups of users."""
    logical_scope: tuple[str, ...]
    """The scope without names of this job, such as `("taskmanager", "job", "task", "operator")`, with the groups."""
    variables: Mapping[str, str]
    """Variables, such as `{"<job_name>": "orders", "<subtask_index>": "0"}`, with the key-value groups of users."""
    help: str = ""

    @property
    def value(self) -> Any:
        """The value of a counter or a gauge."""
        return self.values[""]
