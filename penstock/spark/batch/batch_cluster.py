"""BATCH jobs on Spark: one ordinary Spark job, whose stages are Penstock's and whose exchanges are Spark's shuffle."""

from __future__ import annotations

import logging
import pickle
import secrets
import socket
import time
from collections import Counter
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import replace
from typing import Any

import cloudpickle

from penstock.base.pickling import dumps
from penstock.engine.batch.stage import Assignments, reports_of
from penstock.engine.job.slot_queries import Asides
from penstock.engine.messages.commands_and_reports import Command, Deployment, Report
from penstock.engine.observe.slot_questions import Question
from penstock.engine.operators.sinks.committing import Begun
from penstock.engine.queryable.slot_states import Findings, Lookup
from penstock.engine.records.failures import Failure
from penstock.errors import SlotLost, UnsupportedOperation
from penstock.spark.batch.batch_task import StageTask
from penstock.spark.batch.stage_jobs import StageHost, StageJob
from penstock.spark.links.encryption import new_identity
from penstock.spark.links.links import LinkLost, Tag, close_all, has_news, send
from penstock.spark.links.side_links import SideLinks, Talking
from penstock.spark.sessions.session import in_session
from penstock.spark.slots.slot_tasks import loss

LOOK_SECONDS = 0.05
PROGRESS_SECONDS = 2.0
ENDING_SECONDS = 10.0
log = logging.getLogger("penstock.job")


class SparkBatchCluster:
    """Runs a BATCH job on Spark. There are no slots between its epochs: one epoch is the whole job."""

    def __init__(self, host: StageHost, encrypt: bool = False) -> None:
        """With `encrypt`, what tasks on other machines tell the driver is; Spark's shuffle has settings of its own."""
        in_session(self)
        self._host = host
        self._encrypt = encrypt
        self._deployment: Deployment | None = None
        self._assigned: list[Assignments] = []
        self._run: BatchRun | None = None
        self._released = False
        self.on_wake: Callable[[bool], None] = lambda lost: None
        self.on_begun: Callable[[list[Begun]], None] = lambda begun: None
        self.asides: Asides

    def deploy(self, deployment: Deployment) -> list[Report]:
        """Nothing is started before it is known what there is to read."""
        self._deployment = deployment
        self._assigned = [{} for _ in range(deployment.plan.slots)]
        return [Report(slot, -1) for slot in range(deployment.plan.slots)]

    def run(self, command: Command) -> list[Report]:
        """Gather what sources are to read, epoch by epoch; when nothing more comes, run the job."""
        deployment = self._deployment
        assert deployment is not None
        if self._keep_assignments(command.assignments):
            return [Report(slot, command.epoch, backlog=True) for slot in range(deployment.plan.slots)]
        if self._released:
            raise SlotLost("the job was cancelled")
        self._run = BatchRun(self._host, deployment, self._assigned, self.on_begun, self._encrypt)
        return self._run.reports(command.epoch)

    def _keep_assignments(self, assignments: dict[int, list[Any]]) -> bool:
        """Keep what enumerators have handed out; whether that was anything."""
        found = False
        for node, payloads in assignments.items():
            for slot, payload in enumerate(payloads):
                if payload is not None:
                    self._assigned[slot].setdefault(node, []).append(payload)
                    found = True
        return found

    def nudge(self) -> None:
        """Nobody is asked anything while a BATCH job runs."""

    def look(self, lookups: Mapping[int, Lookup]) -> list[Findings]:
        raise UnsupportedOperation("a BATCH job has no queryable state")

    def look_and_run(
        self, lookups: Mapping[int, Lookup], found: Callable[[list[Findings]], None], command: Command
    ) -> list[Report]:
        raise UnsupportedOperation("a BATCH job has no queryable state")

    def watch(self, question: Question) -> dict[int, Future[Any]]:
        """Tasks come and go: they know what the deployment said when they began, and are not asked."""
        return {}

    def stacks(self, seconds: float) -> Mapping[int, str]:
        """None: tasks have no link to the driver."""
        return {}

    def release(self) -> list[Report]:
        """Functions are closed in the tasks, and tasks end with their work."""
        self._released = True
        self._assigned = []
        return []

    def application(self) -> bytes | None:
        """A BATCH job starts again from the beginning, with whatever cores it gets."""
        return None

    def end_application(self, described: bytes) -> None:
        """Do nothing: there is none."""

    def capacity(self) -> int | None:
        """Tasks of a BATCH job may run one after the other."""
        return None

    def interrupt(self) -> None:
        """Spark cancels the job, and ends the processes of its tasks."""
        self._released = True
        if self._run is not None:
            self._run.cancel()

    @property
    def is_running(self) -> bool:
        """Whether the job runs, or is about to."""
        return not self._released


class BatchRun:
    """One attempt of the job: the Spark job, and a door through which tasks report errors of the program."""

    def __init__(
        self,
        host: StageHost,
        deployment: Deployment,
        assigned: list[Assignments],
        on_begun: Callable[[list[Begun]], None],
        encrypt: bool,
    ) -> None:
        self._host = host
        self._on_begun = on_begun
        self._deployment = deployment
        self._plan = deployment.plan
        self._assigned = assigned
        self._group = f"{deployment.job_id}-{deployment.attempt}-{secrets.token_hex(4)}"
        self._secret = secrets.token_bytes(32)
        self._identity = new_identity() if encrypt and host.on_network else None
        self._writers: Counter[str] = Counter()
        """By uid of a sink: how many writers have begun something that would have to be undone."""
        self._heard: list[SideLinks] = []
        """The logs of tasks."""
        self._writing: list[socket.socket] = []
        """A link to each task whose sinks have begun something. The task closes it when it ends."""
        self._job: StageJob | None = None
        self._cancelled = False

    def reports(self, epoch: int) -> list[Report]:
        """Run it to its end, or to the first failure."""
        self._door = self._host.open_door(self._secret, self._identity)
        try:
            return self._reports(self._start_job(), epoch)
        finally:
            close_all(self._writing)

    def _start_job(self) -> StageJob:
        tasks = [self._task(stage) for stage in range(self._plan.stages)]
        assigned = [dumps(one) for one in self._assigned]
        self._job = self._host.stage_job(tasks, assigned, self._plan.job_name, self._group)
        self._job.start()
        return self._job

    def _reports(self, job: StageJob, epoch: int) -> list[Report]:
        try:
            failure = self._failure(job)
        finally:
            self._door.close()
            for side in self._heard:
                side.close()
        if failure is not None or job.parcels is None or self._has_run_again():
            self._await_tasks()
        if failure is not None:
            return [Report(failure.subtask, epoch, failure=failure)]
        if job.parcels is None:
            if self._cancelled:
                raise SlotLost("the job was cancelled")
            raise loss(job.failure)
        return reports_of(self._plan, job.parcels, epoch)

    def _failure(self, job: StageJob) -> Failure | None:
        """Wait for the end of the Spark job, hear what tasks tell, and cancel it as soon as that is a failure."""
        progress = Progress(job, self._plan.job_name, self._plan.stages)
        heard = self._heard
        while job.is_running:
            guest = self._door.guest(LOOK_SECONDS)
            if guest is not None:
                said: Failure | list[Begun] | Talking = pickle.loads(guest[0])
                if isinstance(said, Talking):
                    heard.append(SideLinks({said.slot: guest[1]}))
                    continue
                if isinstance(said, Failure):
                    self.cancel()
                    guest[1].close()
                    self._await_end(job)
                    return said
                self._hear(said, guest[1])
            if self._cancelled:
                # It may have been too early the first time: Spark cancels what it knows of.
                self.cancel()
            progress.look()
        return None

    def _await_end(self, job: StageJob) -> None:
        until = time.monotonic() + ENDING_SECONDS
        while job.is_running and time.monotonic() < until:
            time.sleep(LOOK_SECONDS)

    def _hear(self, begun: list[Begun], link: socket.socket) -> None:
        """A task continues once it knows that the driver got its message; if the job is cancelled, it must not
        continue."""
        if not self._cancelled:
            self._on_begun(begun)
            self._writers.update(uid for uid, items in begun if items)
            with suppress(LinkLost):
                send(link, Tag(0, -1, -1), b"")
        self._writing.append(link)

    def _has_run_again(self) -> bool:
        """Whether a task whose sinks have begun something was run more than once."""
        return any(self._writers[node.uid] > node.parallelism for node in self._plan.nodes)

    def _await_tasks(self) -> None:
        """What sinks have begun is going to be undone: wait until no task works on it, for some seconds at most."""
        until = time.monotonic() + ENDING_SECONDS
        while not all(map(has_news, self._writing)) and time.monotonic() < until:
            time.sleep(LOOK_SECONDS)

    def cancel(self) -> None:
        """Called from any thread."""
        self._cancelled = True
        if self._job is not None:
            self._job.cancel()

    def _task(self, stage: int) -> StageTask:
        """A task knows the functions of its own stage only."""
        own = {node.id for node in self._plan.nodes if node.stage == stage}
        edges = {edge.id for edge in self._plan.edges if edge.source in own}
        deployment = replace(
            self._deployment,
            operators={node: made for node, made in self._deployment.operators.items() if node in own},
            partitionings={edge: made for edge, made in self._deployment.partitionings.items() if edge in edges},
        )
        return StageTask(stage, cloudpickle.dumps(deployment), self._door.address, self._secret, self._identity)


class Progress:
    """Logs which stage runs."""

    def __init__(self, run: StageJob, job: str, stages: int) -> None:
        self._run = run
        self._job = job
        self._stages = stages
        self._next = time.monotonic() + PROGRESS_SECONDS
        self._said = ""

    def look(self) -> None:
        """Called all the time; it asks Spark every now and then."""
        if time.monotonic() < self._next or not log.isEnabledFor(logging.INFO):
            return
        self._next = time.monotonic() + PROGRESS_SECONDS
        for number, stage in enumerate(self._run.stages(), 1):
            if stage.running:
                said = f"stage {number} of {self._stages}: {stage.completed} of {stage.tasks} tasks are done"
                if said != self._said:
                    log.info("job '%s', %s", self._job, said)
                self._said = said
