"""The interface between the driver of a job and the cluster that runs its slots."""

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
    """The timeouts of a driver for its slots, in milliseconds. The names are those of Flink's options."""

    slot_request_timeout: int = 300_000
    heartbeat_interval: int = 10_000
    heartbeat_timeout: int = 50_000


class Cluster(Protocol):
    """Hosts the slots of one job."""

    on_wake: Callable[[bool], None]
    """Callback to ask for an epoch, from any thread: with False if a slot has input, with True if a slot is lost."""

    asides: Asides
    """Clients' questions that slots answer while an epoch runs, between two of their steps."""

    on_begun: Callable[[list[Begun]], None]
    """Callback for started sinks of a subtask. BATCH jobs call it from within `deploy` or `run`."""

    def deploy(self, deployment: Deployment) -> list[Report]:
        """Start the slots of an attempt and open them. A slot that fails to open reports the failure."""

    def run(self, command: Command) -> list[Report]:
        """Run one epoch through all stages. Raises SlotLost when a slot's process is gone."""

    def nudge(self) -> None:
        """Announce a new question in `asides`. Callable from any thread, also while no epoch runs."""

    def look(self, lookups: Mapping[int, Lookup]) -> list[Findings]:
        """Let slots answer clients' questions between two epochs. Raises SlotLost as `run` does.

        `lookups` holds the questions by slot.
        """

    def look_and_run(
        self, lookups: Mapping[int, Lookup], found: Callable[[list[Findings]], None], command: Command
    ) -> list[Report]:
        """Do `look` and `run` together. `found` is called when all slots have answered, possibly during the epoch."""

    def watch(self, question: Question) -> dict[int, Future[Any]]:
        """Ask all slots a question while they work. Return the future answers by slot. Callable from any thread."""

    def stacks(self, seconds: float) -> Mapping[int, str]:
        """Return the stacks of the slots' threads, as `faulthandler` prints them, by slot. Callable from any thread.

        Slots that do not answer in time are left out.
        """

    def release(self) -> list[Report]:
        """Close the slots' functions and release their processes. Called once, also after a failure."""

    def application(self) -> bytes | None:
        """Return a description with which a later driver of the job can free the cores of this one, or None."""

    def end_application(self, described: bytes) -> bool:
        """Free the cores that an earlier driver of the job may still hold. Return False to be called again later."""

    def capacity(self) -> int | None:
        """Return the greatest number of slots that the job can have; None if it is not known or grows as needed."""

    def has_room(self, slots: int) -> bool:
        """Return True if the job can have this number of slots without another application."""

    def interrupt(self) -> None:
        """Stop a running epoch from another thread, by force if necessary. The job is over then."""
