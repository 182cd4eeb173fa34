"""Partitionings, which distribute records from the subtasks of one operator to those of the next."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Partitioning:
    """Base of all partitionings.

    `targets` returns the downstream subtasks to which an upstream subtask is connected.
    """

    label = "REBALANCE"

    def targets(self, subtask: int, upstream: int, downstream: int) -> Sequence[int]:
        return range(downstream)


@dataclass(frozen=True)
class Forward(Partitioning):
    """Send each record to the subtask of the same index; both sides have the same parallelism."""

    label = "FORWARD"

    def targets(self, subtask: int, upstream: int, downstream: int) -> Sequence[int]:
        return (subtask,)


@dataclass(frozen=True)
class Rebalance(Partitioning):
    """Send records to all subtasks in turn."""

    label = "REBALANCE"


@dataclass(frozen=True)
class Rescale(Partitioning):
    """Send records to a few subtasks in turn: each subtask serves its own share of the other side."""

    label = "RESCALE"

    def targets(self, subtask: int, upstream: int, downstream: int) -> Sequence[int]:
        if upstream >= downstream:
            return (subtask * downstream // upstream,)
        return [t for t in range(downstream) if t * upstream // downstream == subtask]


@dataclass(frozen=True)
class Shuffle(Partitioning):
    """Send each record to a random subtask."""

    label = "SHUFFLE"


@dataclass(frozen=True)
class Broadcast(Partitioning):
    """Send a copy of each record to every subtask."""

    label = "BROADCAST"


@dataclass(frozen=True)
class Global(Partitioning):
    """Send every record to the first subtask. The others only receive watermarks and the end, or they would wait."""

    label = "GLOBAL"


@dataclass(frozen=True)
class ByKey(Partitioning):
    """Send each record to the subtask that owns the key group of its key."""

    selector: Callable[[Any], Any]
    key_type: Any = None
    """Declared type of the key, a TypeInformation, or None if no type was declared."""
    label = "HASH"


@dataclass(frozen=True)
class Custom(Partitioning):
    """Send each record to the subtask that the user's partitioner returns."""

    partitioner: Any
    selector: Callable[[Any], Any]
    label = "CUSTOM"
