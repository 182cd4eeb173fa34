"""BATCH jobs on Spark. Each is one ordinary Spark job with Penstock's stages and Spark's shuffle between them."""

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
    """Runs a BATCH job on Spark. One epoch is the whole job, so no slots exist between epochs."""

    def __init__(self, host: StageHost, encrypt: bool = False) -> None:
        """Create a cluster. With `encrypt`, tasks' links are encrypted. Spark's shuffle has settings of its own."""
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
        """Keep the deployment. The job starts when all sources have assigned their input."""
        self._deployment = deployment
        self._assigned = [{} for _ in range(deployment.plan.slots)]
        return [Report(slot, -1) for slot in range(deployment.plan.slots)]

    def run(self, command: Command) -> list[Report]:
        """Gather the assignments of sources, epoch by epoch. Run the job when no more come."""
        deployment = self._deployment
        assert deployment is not None
        if self._keep_assignments(command.assignments):
            return [Report(slot, command.epoch, backlog=True) for slot in range(deployment.plan.slots)]
        if self._released:
            raise SlotLost("the job was cancelled")
        self._run = BatchRun(self._host, deployment, self._assigned, self.on_begun, self._encrypt)
        return self._run.reports(command.epoch)

    def _keep_assignments(self, assignments: dict[int, list[Any]]) -> bool:
        """Keep the assignments of enumerators. Return True if there were any."""
        found = False
        for node, payloads in assignments.items():
            for slot, payload in enumerate(payloads):
                if payload is not None:
                    self._assigned[slot].setdefault(node, []).append(payload)
                    found = True
        return found

    def nudge(self) -> None:
        """Do nothing: a running BATCH job answers no questions."""

    def look(self, lookups: Mapping[int, Lookup]) -> list[Findings]:
        raise UnsupportedOperation("a BATCH job has no queryable state")

    def look_and_run(
        self, lookups: Mapping[int, Lookup], found: Callable[[list[Findings]], None], command: Command
    ) -> list[Report]:
        raise UnsupportedOperation("a BATCH job has no queryable state")

    def watch(self, question: Question) -> dict[int, Future[Any]]:
        """Return no answers, because tasks of a BATCH job do not answer questions.

        They keep the deployment with which they began.
        """
        return {}

    def stacks(self, seconds: float) -> Mapping[int, str]:
        """Return no stacks: tasks have no lasting link to the driver."""
        return {}

    def release(self) -> list[Report]:
        """Do nothing but forget the assignments: tasks close their functions and end by themselves."""
        self._released = True
        self._assigned = []
        return []

    def application(self) -> bytes | None:
        """Return None: a BATCH job restarts from the beginning with any cores that it gets."""
        return None

    def end_application(self, described: bytes) -> bool:
        """Return True: there is no earlier application."""
        return True

    def capacity(self) -> int | None:
        """Return None: tasks of a BATCH job may run one after the other."""
        return None

    def has_room(self, slots: int) -> bool:
        """Return True: tasks of a BATCH job may run one after the other."""
        return True

    def interrupt(self) -> None:
        """Cancel the Spark job. Spark ends the processes of its tasks."""
        self._released = True
        if self._run is not None:
            self._run.cancel()

    @property
    def is_running(self) -> bool:
        """True if the job runs or is about to run."""
        return not self._released


class BatchRun:
    """One attempt of the job: the Spark job, and a listening socket to which tasks report errors of the program."""

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
        """Number of writers that have begun work which a failure would have to undo, by uid of the sink."""
        self._heard: list[SideLinks] = []
        """Links over which tasks send their logs."""
        self._writing: list[socket.socket] = []
        """Links to the tasks whose sinks have begun work. A task closes its link when it ends."""
        self._job: StageJob | None = None
        self._cancelled = False

    def reports(self, epoch: int) -> list[Report]:
        """Run the job to its end or to the first failure, and return its reports."""
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
        """Wait for the end of the Spark job and take the tasks' messages. Cancel the job at the first failure."""
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
                # The first try may have been too early: Spark cancels only jobs that it knows of.
                self.cancel()
            progress.look()
        return None

    def _await_end(self, job: StageJob) -> None:
        until = time.monotonic() + ENDING_SECONDS
        while job.is_running and time.monotonic() < until:
            time.sleep(LOOK_SECONDS)

    def _hear(self, begun: list[Begun], link: socket.socket) -> None:
        """Note that a task's sinks have begun work, and let the task continue, unless the job is cancelled."""
        if not self._cancelled:
            self._on_begun(begun)
            self._writers.update(uid for uid, items in begun if items)
            with suppress(LinkLost):
                send(link, Tag(0, -1, -1), b"")
        self._writing.append(link)

    def _has_run_again(self) -> bool:
        """Return True if a task whose sinks have begun work was run more than once."""
        return any(self._writers[node.uid] > node.parallelism for node in self._plan.nodes)

    def _await_tasks(self) -> None:
        """Wait until no task works on the sinks' data, which will be undone, for some seconds at most."""
        until = time.monotonic() + ENDING_SECONDS
        while not all(map(has_news, self._writing)) and time.monotonic() < until:
            time.sleep(LOOK_SECONDS)

    def cancel(self) -> None:
        """Cancel the Spark job. Any thread may call this."""
        self._cancelled = True
        if self._job is not None:
            self._job.cancel()

    def _task(self, stage: int) -> StageTask:
        """Return the task of a stage, which contains only the functions of that stage."""
        own = {node.id for node in self._plan.nodes if node.stage == stage}
        edges = {edge.id for edge in self._plan.edges if edge.source in own}
        deployment = replace(
            self._deployment,
            operators={node: made for node, made in self._deployment.operators.items() if node in own},
            partitionings={edge: made for edge, made in self._deployment.partitionings.items() if edge in edges},
        )
        return StageTask(stage, cloudpickle.dumps(deployment), self._door.address, self._secret, self._identity)


class Progress:
    """Logs the running stage of a job."""

    def __init__(self, run: StageJob, job: str, stages: int) -> None:
        self._run = run
        self._job = job
        self._stages = stages
        self._next = time.monotonic() + PROGRESS_SECONDS
        self._said = ""

    def look(self) -> None:
        """Log the running stage if it is time to ask Spark again. Called very often."""
        if time.monotonic() < self._next or not log.isEnabledFor(logging.INFO):
            return
        self._next = time.monotonic() + PROGRESS_SECONDS
        for number, stage in enumerate(self._run.stages(), 1):
            if stage.running:
                said = f"stage {number} of {self._stages}: {stage.completed} of {stage.tasks} tasks are done"
                if said != self._said:
                    log.info("job '%s', %s", self._job, said)
                self._said = said
