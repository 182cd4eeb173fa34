"""The driver of a job: it carries out the state machine's decisions and reports the results to it. Knows no Spark."""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from contextlib import suppress
from typing import Any, Protocol

from penstock.base import pickling
from penstock.common.job import JobStatus
from penstock.engine.checkpoint.checkpoint_storage_actions import Covered, Publish, Reply, SnapshotRequest, reply
from penstock.engine.checkpoint.coordinator import Coordinator
from penstock.engine.job.cluster_protocol import Cluster, Patience
from penstock.engine.job.decisions import (
    Commit,
    Decision,
    Deploy,
    Ended,
    HandOutLast,
    Look,
    Refuse,
    Release,
    RunEpoch,
    Wait,
)
from penstock.engine.job.driver_parts import DriverParts
from penstock.engine.job.durability import Durability
from penstock.engine.job.epochs import EpochOptions
from penstock.engine.job.facts import (
    Answer,
    CancelWanted,
    Deployed,
    Displaced,
    EpochRan,
    Failed,
    Message,
    News,
    NotPublished,
    Published,
    Released,
    ResizeWanted,
    SavepointWanted,
    SlotGone,
    StateWanted,
    SuspendWanted,
    Waited,
)
from penstock.engine.job.job_view import JobView, StatusChange
from penstock.engine.job.processing_time import WallClock
from penstock.engine.job.resize import Resized
from penstock.engine.job.results import Results
from penstock.engine.job.slot_queries import Asides
from penstock.engine.job.state_machine import JobMachine
from penstock.engine.job.state_queries import QueryDesk, StateQuery
from penstock.engine.messages.commands_and_reports import Command, Deployment, Report
from penstock.engine.queryable.query_requests import QueryAnswer, QueryRequest
from penstock.engine.queryable.slot_states import QueryableState
from penstock.errors import CheckpointFailed, JobDisplaced, PenstockError, StateUnavailable, StorageError
from penstock.graph.plan import Plan

log = logging.getLogger("penstock.job")
MOST_ASSIGNED = 20_000
"""Largest number of records that an enumerator which reads them by itself hands out for an epoch."""

LONGEST_REST = 10_000
"""Longest time, in milliseconds, between two looks at a clock that may be set forward while the job waits."""


class Driver(Protocol):
    """The interface of a job's driver for the job's handle. All methods but `run` may be called from any thread."""

    @property
    def view(self) -> JobView: ...

    def run(self) -> None:
        """Run the job until it finishes. Raise the reason if it ends in another way."""

    def stop(self) -> None:
        """Ask the job to end as soon as possible."""

    def suspend(self) -> None:
        """Ask the job to stop and leave its checkpoints, so that another driver can go on."""

    def request(self, request: SnapshotRequest) -> None:
        """Ask for a savepoint at the end of the next epoch."""

    def query(self, request: QueryRequest) -> Future[QueryAnswer]:
        """Look queryable state up at the next consistent cut."""

    def queryable_states(self) -> tuple[QueryableState, ...]:
        """Return the queryable states that are known so far."""


class JobDriver:
    """The driver that runs one job on a cluster until its input ends, it fails for good or it is stopped."""

    def __init__(
        self,
        plan: Plan,
        deployment: Deployment,
        cluster: Cluster,
        *,
        options: EpochOptions,
        on_results: Mapping[str, Callable[[Any], None]],
        durability: Durability | None = None,
        clock: WallClock | None = None,
        patience: Patience | None = None,
        has_run: bool = False,
    ) -> None:
        """`has_run` tells whether the job has had its slots before, with another parallelism."""
        durability = durability or Durability.none(plan, deployment.job_id)
        self._plan = plan
        self._deployment = deployment
        self._cluster = cluster
        self._assigned = min(options.max_records, MOST_ASSIGNED)
        self._archive = durability.archive
        self._owner = durability.owner
        self._pulse_seconds = (patience or Patience()).heartbeat_interval / 1000
        self._results = Results(on_results, durability.held)
        self._clock = clock or WallClock()
        self._machine = JobMachine(plan, deployment.job_id, options, durability, has_run)
        self.before_deploy: Callable[[], None] = lambda: None
        """Callback before each attempt. It may raise Resized."""
        own_time = self._clock.now if self._clock.virtual else None
        self._driver_parts = DriverParts(plan, self.wake, deployment.job_id, own_time)
        self._desk = QueryDesk(plan)
        self._messages: deque[Message] = deque()
        self._wake = threading.Event()
        self._over = ""
        self._decided_at = 0
        """Time of the clock for which the last decision was made."""
        self._asides = cluster.asides = Asides(self._desk, self._clock.now)
        cluster.on_wake = self.wake
        cluster.on_begun = self._driver_parts.begun

    @property
    def plan(self) -> Plan:
        return self._plan

    @property
    def deployment(self) -> Deployment:
        return self._deployment

    @property
    def view(self) -> JobView:
        """The job as it was when its last decision was made."""
        return self._machine.view

    @property
    def coordinator(self) -> Coordinator:
        return self._machine.coordinator

    # --- from other threads ---
    def stop(self) -> None:
        self._tell(CancelWanted())

    def suspend(self) -> None:
        self._tell(SuspendWanted())

    def wake(self, lost: bool = False) -> None:
        """Ask for an epoch, because a slot or enumerator has news or a slot is lost."""
        self._tell(SlotGone() if lost else News())

    def resize(self, resized: Resized) -> None:
        """Ask the job to stop and leave its checkpoints, so that it goes on with another parallelism."""
        self._tell(ResizeWanted(resized))

    def request(self, request: SnapshotRequest) -> None:
        self._tell(SavepointWanted(request))
        if self._over:
            self._refuse_late_requests()

    def query(self, request: QueryRequest) -> Future[QueryAnswer]:
        query = StateQuery(request)
        if request.token is not None:
            query.answer_with(self._desk.next_page)
            return query.future
        self._desk.prepare(query)
        if query.is_aside:
            self._asides.add(query)
            self._wake.set()
            self._cluster.nudge()
        else:
            self._tell(StateWanted(query))
        if self._over:
            self._refuse_late_requests()
        return query.future

    def queryable_states(self) -> tuple[QueryableState, ...]:
        return self._desk.states()

    def _tell(self, message: Message) -> None:
        self._messages.append(message)
        self._wake.set()

    # --- from start to end ---
    def run(self) -> None:
        """Carry out all decisions, from the first to the last."""
        self._owner.watch(self._pulse_seconds, lambda error: self._tell(Displaced(error)))
        try:
            ended = self._run_to_end()
            error = self._cause(ended.error) if ended.status is JobStatus.FAILED and ended.error else ended.error
            if not isinstance(error, JobDisplaced):
                self._give_back()
            self._over = ended.why
        finally:
            self._owner.let_go()
            self._over = self._over or "the driver of the job has died"
            self._refuse_late_requests()
        if error is not None:
            # The traceback inside the driver helps no user.
            raise error.with_traceback(None)

    def _run_to_end(self) -> Ended:
        answer = Answer(self._clock.now())
        while True:
            self._wake.clear()
            self._pass_on_messages()
            self._decided_at = answer.now
            decision = self._machine.decide(answer)
            if isinstance(decision, Ended):
                return decision
            answer = self._try_to_carry_out(decision)

    def _give_back(self) -> None:
        """Note the end of ownership, so that the next driver need not find out whether this one is alive."""
        try:
            self._owner.end(finished=False)
        except StorageError as error:
            log.warning("%s; the next driver of this job may have to wait until this process is gone", error)

    def _pass_on_messages(self) -> None:
        for query in self._asides.left():
            self._machine.hear(StateWanted(query))
        while self._messages:
            self._machine.hear(self._messages.popleft())

    def _next_message(self) -> Message | None:
        """Return the oldest message; None if there is none, perhaps because another thread took it."""
        try:
            return self._messages.popleft()
        except IndexError:
            return None

    def _refuse_late_requests(self) -> None:
        for query in (*self._machine.take_unanswered(), *self._asides.left()):
            self._messages.append(StateWanted(query))
        while (message := self._next_message()) is not None:
            if isinstance(message, SavepointWanted):
                reply(Reply(message.request, error=CheckpointFailed(f"no savepoint was taken: {self._over}")))
            if isinstance(message, StateWanted):
                message.query.refuse(StateUnavailable(f"queryable state cannot be looked up: {self._over}"))

    # --- carrying out decisions ---
    def _try_to_carry_out(self, decision: Decision) -> Answer:
        try:
            return self._carry_out(decision)
        except Exception as error:
            return Failed(self._clock.now(), self._cause(error))

    def _cause(self, error: Exception) -> Exception:
        """Return JobDisplaced if the job has another owner, since that may have caused the error; else the error."""
        if not isinstance(error, JobDisplaced):
            try:
                self._owner.check()
            except JobDisplaced as displaced:
                return displaced
            except StorageError:
                pass
        return error

    def _carry_out(self, decision: Decision) -> Answer:
        match decision:
            case RunEpoch():
                return self._run_epoch(decision)
            case Wait():
                return self._rest(decision)
            case Deploy():
                return self._deploy(decision)
            case Release():
                return self._release()
            case Commit():
                self._commit(decision)
            case Covered():
                self._results.release(decision.epoch)
                self._owner.check()
                self._driver_parts.checkpoint_complete(decision.checkpoint)
            case HandOutLast():
                self._hand_out_last(decision)
            case Reply() | Look() | Refuse():
                self._answer_clients(decision)
            case Publish():
                return self._publish(decision)
            case Ended():
                pass
            case _:
                self._archive.carry_out(decision)
        return Answer(self._clock.now())

    def _deploy(self, decision: Deploy) -> Answer:
        """Start the driver's parts and the slots at the positions of the snapshot."""
        snapshot = decision.snapshot
        self.before_deploy()
        self._own(decision)
        if decision.repeats:
            self._results.forget()
        self._desk.restart()
        self._deployment.attempt = decision.attempt
        self._deployment.now = decision.now
        self._deployment.restore = snapshot.restore(decision.continued) if snapshot is not None else None
        positions = snapshot.enumerators if snapshot is not None else {}
        self._driver_parts.open({uid: pickling.loads(position) for uid, position in positions.items()})
        self._free_earlier_applications()
        reports = self._cluster.deploy(self._deployment)
        self._owner.note_application(self._cluster.application())  # deploying may have replaced it
        self._check_owner_of_failures(reports)
        return Deployed(self._clock.now(), reports)

    def _own(self, decision: Deploy) -> None:
        """Become a new owner for this attempt, so that leftovers of the previous attempt cannot commit anything."""
        if decision.attempt:
            self._owner.renew()
        self._owner.begin(decision.line)
        self._deployment.owner = self._owner.token

    def _free_earlier_applications(self) -> None:
        """Free the cores that earlier drivers may still hold, and record the application for a later driver."""
        self._owner.note_application(self._cluster.application())
        self._owner.earlier = tuple(one for one in self._owner.earlier if not self._cluster.end_application(one))

    def _check_owner_of_failures(self, reports: list[Report]) -> None:
        if any(report.failure is not None or report.lost for report in reports):
            with suppress(StorageError):
                self._owner.check()

    def _run_epoch(self, decision: RunEpoch) -> Answer:
        command, parts = decision.command, self._driver_parts
        if not command.paused:
            command.assignments = parts.assignments(self._assigned)
        positions = parts.positions() if command.checkpoint is not None else {}
        began = time.monotonic()
        try:
            reports = self._run_command(command, decision.look)
        except BaseException as error:
            self._asides.refuse(StateUnavailable(f"the job failed while it was asked: {error}"))
            raise
        millis = 1000 * (time.monotonic() - began)
        for report in sorted(reports, key=lambda report: report.slot):
            # Results are valid even if the epoch failed elsewhere.
            for uid, payload in report.results:
                self._results.take(command.epoch, uid, payload)
        self._check_owner_of_failures(reports)
        self._desk.learn(reports)
        more, due = parts.has_more(), parts.due_in()
        return EpochRan(self._clock.now(), reports, positions, more, due, millis, self._asides.times())

    def _run_command(self, command: Command, look: Look | None) -> list[Report]:
        if look is None:
            return self._cluster.run(command)
        with self._desk.looking(look.queries, look.cut) as asked:
            if not asked.lookups:
                return self._cluster.run(command)
            return self._cluster.look_and_run(asked.lookups, asked.answer_all, command)

    def _release(self) -> Answer:
        """Release the slots, then close the driver's parts, which undo what the slots have left behind."""
        try:
            reports = self._cluster.release()
        finally:
            self._driver_parts.close()
        return Released(self._clock.now(), reports)

    def _commit(self, decision: Commit) -> None:
        """Commit as the owner of the job.

        A BATCH job has no checkpoint that tells what may be committed again, so it settles once which driver commits.
        """
        if self._plan.batch:
            self._owner.decide()
        else:
            self._owner.check()
        self._driver_parts.commit(decision.reports)

    def _rest(self, decision: Wait) -> Answer:
        """Wait for a time of the clock, which may be set meanwhile. A clock that was set back ends the wait."""
        now = self._clock.now()
        if decision.until is None or self._clock.virtual:
            self._clock.rest(None if decision.until is None else max(0, decision.until - now), self._wake)
            return Waited(self._clock.now(), decision.until is not None and not self._wake.is_set())
        while self._decided_at <= now < decision.until and not self._wake.is_set():
            before = now
            self._clock.rest(min(decision.until - now, LONGEST_REST), self._wake)
            now = self._clock.now()
            if now < before:
                break
        return Waited(now, not self._wake.is_set())

    def _publish(self, order: Publish) -> Answer:
        try:
            path = self._archive.publish(order)
        except JobDisplaced:
            raise
        except PenstockError as error:
            return NotPublished(self._clock.now(), order, error)
        return Published(self._clock.now(), order, path)

    def _answer_clients(self, decision: Reply | Look | Refuse) -> None:
        match decision:
            case Reply():
                reply(decision)
            case Look(queries, cut):
                with self._desk.looking(queries, cut) as asked:
                    if asked.lookups:
                        asked.answer_all(self._cluster.look(asked.lookups))
            case Refuse(queries, error):
                for query in queries:
                    query.refuse(error)

    def _hand_out_last(self, decision: HandOutLast) -> None:
        if decision.epoch is None:
            self._results.release_all()
        else:
            self._results.release(decision.epoch)


class EndedJob:
    """The driver of a job that finished in an earlier run. It has nothing left to do."""

    def __init__(self, job_id: str, now: int) -> None:
        self.view = JobView(job_id, None, JobStatus.FINISHED, (StatusChange(JobStatus.FINISHED, now),))

    def run(self) -> None:
        """Return at once."""

    def stop(self) -> None:
        """Do nothing: the job has ended."""

    def suspend(self) -> None:
        """Do nothing: the job has ended."""

    def request(self, request: SnapshotRequest) -> None:
        reply(Reply(request, error=CheckpointFailed("no savepoint was taken: the job has ended")))

    def query(self, request: QueryRequest) -> Future[QueryAnswer]:
        query = StateQuery(request)
        query.refuse(StateUnavailable("queryable state cannot be looked up: the job has ended"))
        return query.future

    def queryable_states(self) -> tuple[QueryableState, ...]:
        return ()
