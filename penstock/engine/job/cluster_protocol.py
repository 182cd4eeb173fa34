"""The interface between the driver of a job and what runs the slots."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any, Protocol

from penstock.engine.job.slot_queries import Asides
from penstock.engine.messages.commands_and_reports import Command, Deployment, Report
from penstock.engine.observe.slot_questions import Question
from penstock.engine.operators.sinks.committing import Begun
from penstock.engine.queryable.slot_states import Findings, Lookup


@dataclass(frozen=True)
class Patience:
    """How long a driver waits for its slots, in milliseconds; the names are those of Flink's options."""

    slot_request_timeout: int = 300_000
    heartbeat_interval: int = 10_000
    heartbeat_timeout: int = 50_000


class Cluster(Protocol):
    """Hosts the slots of one job."""

    on_wake: Callable[[bool], None]
    """Called, from any thread, when an epoch is wanted: with False if a slot has input, with True if one is lost."""

    asides: Asides
    """Questions of clients that slots answer while an epoch runs, between two of their steps."""

    on_begun: Callable[[list[Begun]], None]
    """Called in BATCH mode, from within `deploy` or `run`, when the sinks of a subtask have started."""

    def deploy(self, deployment: Deployment) -> list[Report]:
        """Start the slots of an attempt and open them; one that fails to open says so in its report."""

    def run(self, command: Command) -> list[Report]:
        """Run one epoch through all stages. Raises SlotLost when a slot's process is gone."""

    def nudge(self) -> None:
        """There is a new question among the asides. From any thread, also if no epoch runs."""

    def look(self, lookups: Mapping[int, Lookup]) -> list[Findings]:
        """Let slots, by their numbers, answer clients' questions between two epochs. Raises SlotLost as `run` does."""

    def look_and_run(
        self, lookups: Mapping[int, Lookup], found: Callable[[list[Findings]], None], command: Command
    ) -> list[Report]:
        """Both in one: `found` is called when all have answered, which may be while the epoch runs."""

    def watch(self, question: Question) -> dict[int, Future[Any]]:
        """Ask all slots something while they work, from any thread; by slot, the answer to come."""

    def stacks(self, seconds: float) -> Mapping[int, str]:
        """By slot: where its threads are, as `faulthandler` tells it, of those that answer in time. From any thread."""

    def release(self) -> list[Report]:
        """Close the slots' functions and release their processes. Called once, also after a failure."""

    def application(self) -> bytes | None:
        """Return what a later driver of the job has to know to free the cores of this one; None if nothing."""

    def end_application(self, described: bytes) -> None:
        """Free the cores that an earlier driver of the job, which is gone, may still hold."""

    def capacity(self) -> int | None:
        """Return the greatest number of slots that the job can have; None if it is not known or grows as needed."""

    def interrupt(self) -> None:
        """Stop a running epoch from another thread, as hard as it takes; the job is over then."""
