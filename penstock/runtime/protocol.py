"""What the driver says to the slots, and what they answer."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from penstock.graph.plan import Plan
from penstock.runtime.failures import Failure


@dataclass
class Deployment:
    """Everything a slot needs to come alive. Operators and partitionings stay pickled until a slot opens them."""

    job_id: str
    plan: Plan
    operators: dict[int, bytes]
    partitionings: dict[int, bytes]
    attempt: int = 0
    now: int = 0
    watermark_interval: int = 200
    job_parameters: dict[str, str] = field(default_factory=dict)
    search_path: list[str] = field(default_factory=list)
    """Folders in which the program's own modules may lie."""
    working_directory: str | None = None
    """Where slots run, if the program brought archives."""
    restore: dict[str, Any] | None = None
    """What to restore before opening; None for a fresh start."""


@dataclass
class Command:
    """One epoch's orders, the same for all slots."""

    epoch: int
    attempt: int
    now: int
    """Processing time in milliseconds; frozen for the epoch."""
    max_records: int
    max_millis: int
    wait_millis: int = 0
    """How long a source that finds nothing may wait for a first record."""
    assignments: dict[int, list[Any]] = field(default_factory=dict)
    """By source node: a payload per subtask."""
    alignment: dict[str, int] = field(default_factory=dict)
    """By alignment group: how far event time may go."""


@dataclass
class Report:
    """One slot's answer at the end of an epoch."""

    slot: int
    epoch: int
    process: int = 0
    """The process id that served every stage of the epoch."""
    finished: bool = False
    backlog: bool = False
    """A source stopped at its budget, not for lack of input."""
    waits_for_input: bool = False
    next_due: int | None = None
    results: list[tuple[str, Any]] = field(default_factory=list)
    watermarks: dict[str, int] = field(default_factory=dict)
    alignment: dict[tuple[str, str], int] = field(default_factory=dict)
    metrics: dict[str, Any] = field(default_factory=dict)
    records_in: int = 0
    failure: Failure | None = None
    lost: str = ""
    """Why this process cannot go on: it does not hold the slot's live state."""
