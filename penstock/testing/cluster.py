"""Slots in the calling process: the second implementation of the cluster protocol, for fast tests."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future
from contextlib import contextmanager
from typing import Any

import cloudpickle

from penstock.engine.job.cluster_protocol import Cluster
from penstock.engine.job.processing_time import WallClock
from penstock.engine.job.slot_queries import Asides
from penstock.engine.messages.commands_and_reports import Command, Deployment, Report
from penstock.engine.observe.slot_questions import Question, answer
from penstock.engine.operators.sinks.committing import Begun
from penstock.engine.queryable.slot_states import Findings, Lookup
from penstock.engine.records.failures import OperatorFailed, failure_of
from penstock.engine.slot.slot import Slot
from penstock.service.launch.execution_settings import EnvironmentSettings
from penstock.service.launch.submission import with_defaults


class InProcessCluster:
    """Runs every slot's stages one after the other. Data that crosses an exchange is serialised, as on Spark."""

    def __init__(self) -> None:
        self.slots: list[Slot] = []
        self.on_wake: Callable[[bool], None] = lambda lost: None
        self.on_begun: Callable[[list[Begun]], None] = lambda begun: None
        self.asides: Asides

    def deploy(self, deployment: Deployment) -> list[Report]:
        """Close the slots of the attempt before, and open the slots of a new attempt. Return a report of each slot."""
        for slot in self.slots:
            slot.close()
        blob = cloudpickle.dumps(deployment)
        self.slots = [Slot(index, cloudpickle.loads(blob)) for index in range(deployment.plan.slots)]
        for slot in self.slots:
            slot.between_steps = self._answer_asides
        return [self._open(slot) for slot in self.slots]

    def _open(self, slot: Slot) -> Report:
        failure = None
        try:
            slot.open()
            if slot.plan.batch:
                self.on_begun(slot.begun())
        except OperatorFailed as failed:
            failure = failed.failure
        except Exception as error:
            failure = failure_of(error, "the engine", "-", slot.index)
        return Report(slot.index, -1, failure=failure)

    def run(self, command: Command) -> list[Report]:
        """Run one epoch, stage by stage, and return a report of each slot."""
        blob = cloudpickle.dumps(command)
        for slot in self.slots:
            slot.begin(cloudpickle.loads(blob))
        arriving: list[list[bytes]] = [[] for _ in self.slots]
        for stage in range(self.slots[0].plan.stages):
            sent = [slot.run_stage(stage, arriving[slot.index]) for slot in self.slots]
            arriving = [list(blobs) for blobs in zip(*sent, strict=True)]
        return [slot.report() for slot in self.slots]

    def nudge(self) -> None:
        """Do nothing: questions are answered between all steps anyway."""

    def _answer_asides(self) -> None:
        """Answer the questions of clients. Only one slot works at a time, and all slots are now between two steps."""
        if self.asides.due_in() is not None:
            for slot, lookup in self.asides.questions().items():
                self.asides.answer(self.slots[slot].look_within(cloudpickle.loads(cloudpickle.dumps(lookup))))

    def look(self, lookups: Mapping[int, Lookup]) -> list[Findings]:
        """Answer clients' questions, given by slot, between two epochs."""
        return [self.slots[slot].look(cloudpickle.loads(cloudpickle.dumps(asked))) for slot, asked in lookups.items()]

    def look_and_run(
        self, lookups: Mapping[int, Lookup], found: Callable[[list[Findings]], None], command: Command
    ) -> list[Report]:
        """Call `found` with the answers of `look`, and then run one epoch."""
        found(self.look(lookups))
        return self.run(command)

    def watch(self, question: Question) -> dict[int, Future[Any]]:
        """Answer a question once for all slots, because all of them are in this process."""
        answering: Future[Any] = Future()
        threading.Thread(target=lambda: answering.set_result(answer(question)), daemon=True).start()
        return {0: answering} if self.slots else {}

    def stacks(self, seconds: float) -> Mapping[int, str]:
        """Return nothing: the slots are in the thread of the driver."""
        return {}

    def lose(self) -> None:
        """Forget the slots as if their processes had died. Only their databases are closed: this process lives on."""
        slots, self.slots = self.slots, []
        for slot in slots:
            slot.tables.close()

    def release(self) -> list[Report]:
        """Close the slots, and return a report of each slot with the first failure of its functions."""
        slots, self.slots = self.slots, []
        reports = []
        for slot in slots:
            failures = slot.release()
            reports.append(Report(slot.index, -1, failure=failures[0] if failures else None))
        return reports

    def application(self) -> bytes | None:
        """Return None: the process has no cores other than its own."""
        return None

    def end_application(self, described: bytes) -> bool:
        """Return True: there is no application."""
        return True

    def capacity(self) -> int | None:
        """Return None: a process has room for any number of slots."""
        return None

    def has_room(self, slots: int) -> bool:
        """Return True: a process has room for any number of slots."""
        return True

    def interrupt(self) -> None:
        """Do nothing: a function in this process cannot be stopped. The job ends after the epoch."""


class ManualClock(WallClock):
    """A clock that a test sets. Resting advances it at once, so that timers need no waiting.

    With a `tick`, it also advances by that much whenever it is read.
    """

    virtual = True

    def __init__(self, now: int = 0, tick: int = 0) -> None:
        self._now = now
        self._tick = tick
        self._lock = threading.Lock()

    def now(self) -> int:
        with self._lock:
            self._now += self._tick
            return self._now

    def advance(self, millis: int) -> None:
        """Advance the clock by a number of milliseconds."""
        with self._lock:
            self._now += millis

    def rest(self, millis: int | None, woken: threading.Event) -> None:
        """Advance by this time. If nothing is due, wait in real time for something from outside."""
        if millis is None:
            woken.wait()
        else:
            self.advance(millis)


@contextmanager
def in_process(epoch_records: int | None = None, clock: WallClock | None = None) -> Iterator[None]:
    """Run execute() within this block in this process instead of on Spark.

    `epoch_records` cuts epochs after that many records of each slot, to show that results do not depend on the cuts.
    """

    def cluster(settings: EnvironmentSettings, deployment: Deployment) -> Cluster:
        return InProcessCluster()

    clocks = (lambda: clock) if clock is not None else WallClock
    with with_defaults(cluster=cluster, clock=clocks, max_records=epoch_records):
        yield
