"""Slots on Spark. Each attempt of a job is one Spark job, whose tasks stay until the attempt ends; see `attempt`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from concurrent.futures import Future
from typing import Any

from py4j.protocol import Py4JError

from penstock.engine.job.cluster_protocol import Patience
from penstock.engine.job.slot_queries import Asides
from penstock.engine.messages.commands_and_reports import Command, Deployment, Report
from penstock.engine.observe.slot_questions import Question
from penstock.engine.operators.sinks.committing import Begun
from penstock.engine.queryable.slot_states import Findings, Lookup
from penstock.errors import SlotLost
from penstock.spark.sessions.session import in_session
from penstock.spark.slots.attempt import Attempt
from penstock.spark.slots.slot_tasks import SlotHost


class SparkCluster:
    """Hosts the slots of one job."""

    def __init__(self, host: SlotHost, patience: Patience | None = None, encrypt: bool = False) -> None:
        """Create a cluster without slots. With `encrypt`, links between machines are encrypted."""
        in_session(self)
        self._host = host
        self._patience = patience or Patience()
        self._encrypt = encrypt
        self._attempt: Attempt | None = None
        self._interrupted = False
        self._released = False
        self.on_wake: Callable[[bool], None] = _nobody
        self.on_begun: Callable[[list[Begun]], None] = lambda begun: None
        self.asides: Asides

    def deploy(self, deployment: Deployment) -> list[Report]:
        """Start new slots for an attempt, and open them."""
        self._released = self._interrupted
        unreachable = self._attempt.unreachable if self._attempt is not None else set()
        self._end()
        try:
            self._host.prepare(unreachable)
            self._attempt = Attempt(
                self._host, deployment, self._patience, self._wake, lambda: self._interrupted, self._encrypt
            )
        except (Py4JError, OSError) as error:
            raise SlotLost(f"Spark does not answer: {error}") from None
        if self._interrupted:
            self._end()
        reports = self._live().deploy(deployment)
        self._host.keep_spares(deployment.plan.slots)
        if self._interrupted:
            self._host.end_spares()
        return reports

    def run(self, command: Command) -> list[Report]:
        return self._live().run(command, self.asides)

    def nudge(self) -> None:
        attempt = self._attempt
        if attempt is not None:
            attempt.nudge()

    def look(self, lookups: Mapping[int, Lookup]) -> list[Findings]:
        return self._live().look(lookups)

    def look_and_run(
        self, lookups: Mapping[int, Lookup], found: Callable[[list[Findings]], None], command: Command
    ) -> list[Report]:
        return self._live().look_and_run(lookups, found, command, self.asides)

    def watch(self, question: Question) -> dict[int, Future[Any]]:
        attempt = self._attempt
        return {} if attempt is None else attempt.watch(question)

    def stacks(self, seconds: float) -> Mapping[int, str]:
        attempt = self._attempt
        return {} if attempt is None else attempt.stacks(seconds)

    def release(self) -> list[Report]:
        self._released = True
        if self._attempt is None:
            return []
        try:
            return self._attempt.release()
        finally:
            self._end()

    def application(self) -> bytes | None:
        try:
            return self._host.application()
        except (Py4JError, OSError):  # the JVM has died, and `deploy` replaces it
            return None

    def end_application(self, described: bytes) -> bool:
        try:
            self._host.end_application(described)
        except (Py4JError, OSError):
            return False
        return True

    def capacity(self) -> int | None:
        """Return the number of tasks that Spark can run at once, or None if it is unknown.

        It is also None for a session on this machine, which is replaced by one with more threads if a job needs them.
        """
        return self._host.capacity() if self._host.on_network else None

    def has_room(self, slots: int) -> bool:
        found = self._host.capacity()
        return found is None or found >= slots

    def interrupt(self) -> None:
        """Close the links of the slots, which then end by themselves. Spark ends slots that do not."""
        self._interrupted = self._released = True
        self._end()

    @property
    def is_running(self) -> bool:
        """True if slots of this job run or are about to start."""
        return not self._released

    def _live(self) -> Attempt:
        if self._attempt is None:
            raise SlotLost("the job was cancelled")
        return self._attempt

    def _end(self) -> None:
        attempt, self._attempt = self._attempt, None
        self._host.end_spares()
        if attempt is not None:
            attempt.end()

    def _wake(self, lost: bool) -> None:
        self.on_wake(lost)


def _nobody(lost: bool) -> None:
    """Ignore a wake-up before the job's driver listens."""
