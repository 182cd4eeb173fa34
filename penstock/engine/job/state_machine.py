"""The state machine of a job: it is given facts, and decides what happens next. It knows no clock, cluster or storage.

A job goes through attempts. Each deploys slots, runs epochs with waits between them, and ends when the input has ended,
when it fails, or when a client stops it. After a failure the restart strategy may allow another attempt. At the end the
slots are released, storage is tidied up, and the last decision says how the job ended.

    decision = machine.decide(Answer(now))
    while not isinstance(decision, Ended):
        decision = machine.decide(carried_out(decision))
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable

from penstock.common.job import JobStatus
from penstock.engine.checkpoint.checkpoint_storage_actions import Reply, SavepointRequest, SnapshotRequest
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
from penstock.engine.job.durability import Durability
from penstock.engine.job.epochs import EpochOptions, Pace
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
from penstock.engine.job.job_view import JobHistory, JobView
from penstock.engine.job.queued_queries import Lookups
from penstock.engine.job.reports import Reached, alignment_limits, alignment_reached, check, complete_reports
from penstock.engine.job.resize import Resized
from penstock.engine.job.restarts import UnstoredAttempts, is_lasting
from penstock.engine.job.schedule import Schedule, all_finished, next_epoch, wait_in_slots
from penstock.engine.job.state_queries import StateQuery
from penstock.engine.messages.commands_and_reports import CheckpointOrder, Command, Report
from penstock.engine.queryable.query_requests import Cut
from penstock.errors import CheckpointFailed, JobCancelled, JobDisplaced, JobSuspended, StateUnavailable
from penstock.graph.plan import Plan

log = logging.getLogger("penstock.job")


class JobMachine:
    """One job from its first deployment to its end."""

    def __init__(
        self,
        plan: Plan,
        job_id: str,
        options: EpochOptions | None = None,
        durability: Durability | None = None,
        has_run: bool = False,
    ) -> None:
        """`has_run` tells whether the job has had its slots before, with another parallelism."""
        self._plan = plan
        self._options = options or EpochOptions()
        self._durability = durability or Durability.none(plan, job_id)
        self.coordinator = self._durability.coordinator
        self._pace = Pace(self._options)
        self._now = 0
        self._next_step: Callable[[], Decision | None] = self._begin_attempt
        """Makes the next decision when the agenda is empty."""
        self._agenda: deque[Decision] = deque()
        self._attempt = 0
        self._epoch = 0
        self._requests: deque[SnapshotRequest] = deque()
        self._lookups = Lookups(self._options)
        self._cancelled = False
        self._news = False
        self._waited = False
        """Whether the time for which the job waited has come."""
        self._ending: Ended | None = None
        self._restart_at: int | None = None
        self._has_run = has_run
        """Whether an attempt has had all its slots."""
        self._reset_attempt()
        self._unstored = UnstoredAttempts(plan)
        self._history = JobHistory()
        self.view = JobView(job_id, plan, JobStatus.CREATED, ())

    def _reset_attempt(self) -> None:
        """Forget what belongs to the last attempt alone."""
        self._ran: EpochRan | None = None
        self._told: tuple[Report, ...] = ()
        """Last reports of the slots of this attempt."""
        self._urgent = False
        """Whether a slot is lost, so that there is no reason to wait."""
        self._started = 0
        self._deployed: int | None = None
        self._ordered: int | None = None
        """Number of the checkpoint that the last epoch took."""
        self._schedule: Schedule | None = None
        self._idle_epochs = 0
        self._final: int | None = None
        """Number of the checkpoint that covers the end of the input, once it was ordered."""
        self._stopping: SnapshotRequest | None = None
        """The snapshot with which this driver will stop, once it was ordered."""
        self._stopped: Reply | None = None
        """Outcome of that snapshot."""
        self._reached: Reached = {}

    # --- messages at any moment ---
    def hear(self, message: Message) -> None:
        """Take note of a message, which the next decision takes into account."""
        match message:
            case SavepointWanted(request):
                self._requests.append(request)
            case StateWanted(query):
                self._lookups.add(query)
            case CancelWanted():
                self._cancelled = True
            case SuspendWanted():
                self._suspend(JobSuspended("the job was suspended"))
            case ResizeWanted(resized):
                self._suspend(resized)
            case News():
                self._news = True
            case SlotGone():
                self._urgent = True
            case Displaced(error):
                self._displace(error)

    # --- answers to decisions ---
    def decide(self, answer: Answer) -> Decision:
        """Return the next decision, given the outcome of the last one."""
        self._now = answer.now
        if not self._history.changes:
            self._history.enter(JobStatus.RUNNING, self._now)
        try:
            self._learn(answer)
            decision = self._next()
        except Exception as error:
            self._fail(error)
            decision = self._next()
        self.view = self._look()
        return decision

    def _learn(self, answer: Answer) -> None:
        match answer:
            case Failed(error=error):
                self._fail(error)
            case Released(reports=reports):
                check(reports)
            case _ if self._ending is not None and self._ending.status is JobStatus.SUSPENDED:
                pass
            case Deployed(reports=reports):
                check(reports)
                self._restart_at, self._deployed, self._has_run = None, self._now, True
                self._history.enter(JobStatus.RUNNING, self._now)
            case EpochRan():
                self._take_epoch(answer)
            case Waited(in_full=in_full):
                self._waited = in_full
            case Published(order=order, path=path):
                self.coordinator.note_published(order.metadata, path, self._now)
            case NotPublished(order=order, error=error):
                self.coordinator.note_unpublished(order.metadata, error, self._now)

    def _next(self) -> Decision:
        """Return the next pending decision, else the decision of the next step."""
        while True:
            if self._agenda:
                return self._agenda.popleft()
            if self.coordinator.agenda:
                order = self.coordinator.agenda.popleft()
                if isinstance(order, Reply) and order.request is self._stopping:
                    self._stopped = order
                return order
            decision = self._next_step()
            if decision is not None:
                return decision

    # --- attempts ---
    def _begin_attempt(self) -> None:
        """Give up the checkpoints that the last attempt left unfinished."""
        if self._cancelled:
            self._end_cancelled()
            return
        self.coordinator.start(self._now)
        self._next_step = self._deploy

    def _deploy(self) -> Decision:
        """Continue from the last complete checkpoint, or start from the beginning."""
        stopped = self.coordinator.last_savepoint
        stopping = self._stopping, self._stopped
        self._reset_attempt()
        snapshot, continued = self._durability.newest()
        if stopped is not None:
            # Its savepoint is complete, and another job may have started from it: nothing more may happen here.
            snapshot, continued = stopped, False
            self._stopping, self._stopped = stopping
        if snapshot is not None:
            self.coordinator.note_restored(snapshot, self._now)
        self._next_step = self._run
        line = tuple(self.coordinator.line())
        return Deploy(self._attempt, self._now, snapshot, continued, repeats=stopped is None, line=line)

    def _await_restart(self) -> Decision | None:
        if self._cancelled:
            self._end_cancelled()
            return None
        if self._lookups:
            return self._refuse_lookups("the job has failed and restarts; ask again when it runs")
        if not self._waited:
            return Wait(self._restart_at)
        self._waited = False
        self._attempt += 1
        self._next_step = self._begin_attempt
        return None

    def _fail(self, error: Exception) -> None:
        """Plan another attempt if the error may pass and the restart strategy allows one; else end the job."""
        if isinstance(error, JobDisplaced):
            self._displace(error)
            return
        if isinstance(error, Resized) and not self._cancelled:
            self._suspend(error)
            return
        if self._ending is not None:
            self._fail_at_the_end(error)
            return
        if self._cancelled:
            # An interrupted epoch fails with any error.
            self._end_cancelled()
            return
        self._history.add_failure(error, self._now, self._attempt)
        has_stored = bool(self.coordinator.kept) or self._durability.start is not None
        lasting = is_lasting(error, self._has_run, has_stored) or self._unstored.is_hopeless(error, has_stored)
        delay = None if lasting else self._durability.restarts.count_failure(self._now)
        if delay is not None:
            self._restart_in(delay, error)
            return
        if self._attempt:
            reason = "another try would not help" if lasting else self._durability.restarts.describe()
            error.add_note(f"The job had been restarted {self._attempt} times; {reason}.")
        self._end(Ended(JobStatus.FAILED, f"the job failed: {error}", error))

    def _restart_in(self, delay: int, error: Exception) -> None:
        log.warning("job '%s' failed and restarts in %d ms: %s", self._plan.job_name, delay, error)
        self._waited, self._deployed = False, None
        self._restart_at = self._now + delay
        self._next_step = self._await_restart
        self._history.enter(JobStatus.RESTARTING, self._now)

    # --- epochs ---
    def _run(self) -> Decision | None:
        """Decide on the end, the next epoch, answers to queries, or a wait until there is a reason for an epoch."""
        if self._is_over():
            leaving = None if self._stopping is None else self._stopping.leave_with
            self._end(Ended(JobStatus.FINISHED, "the job has ended")) if leaving is None else self._suspend(leaving)
            return None
        if self._cancelled:
            self._end_cancelled()
            return None
        if self._ran is None or (self._requests and self._stopping is None):
            return self._next_epoch()
        self._schedule = self._schedule or self._make_schedule(self._ran)
        until = self._schedule.until(self._news)
        is_due = self._waited or self._urgent or (until is not None and until <= self._now)
        if is_due:
            return self._next_epoch()
        return self._look_at_cut() or Wait(until)

    def _next_epoch(self) -> Decision:
        """Return the next epoch, with the waiting queries. Asking the slots separately would delay their work."""
        look = self._look_at_cut() if self._ran is not None else None
        return RunEpoch(self._command(), look)

    def _look_at_cut(self) -> Look | None:
        """Let all waiting queries be answered from the end of the last epoch. Return None if no query waits."""
        if not self._lookups:
            return None
        return Look(self._lookups.take(self._now), Cut(self._attempt, self._epoch - 1, self._now))

    def _make_schedule(self, ran: EpochRan) -> Schedule:
        return next_epoch(
            ran,
            started=self._started,
            interval=self._options.interval_millis,
            coordinator=self.coordinator,
            stopping=self._stopping is not None,
            unsealed=self._durability.seals and not self._is_sealed() and self._awaits_next_try(),
        )

    def _take_epoch(self, ran: EpochRan) -> None:
        reports = sorted(ran.reports, key=lambda report: report.slot)
        self._ran, self._schedule = ran, None
        read = max((report.read for report in reports), default=0)
        self._pace.adapt(ran.millis, read)
        self._lookups.epoch_ran(ran.millis, read, ran.asides, self._now)
        self._reached = alignment_reached(reports)
        complete_reports(self._told, reports)
        self._told = self._history.reports = tuple(reports)
        idle = not any(report.results or report.backlog for report in reports)
        self._idle_epochs = self._idle_epochs + 1 if idle else 0
        self._news = self._news or any(report.news for report in reports)
        if self._ordered is not None:
            self.coordinator.locate(self._ordered, ran.positions)
        check(reports)
        if any(report.committables for report in reports) or all_finished(reports):
            self._agenda.append(Commit(ran.reports))
        self._next_step = self._take_acknowledgements

    def _take_acknowledgements(self) -> None:
        """Pass on acknowledgements. A checkpoint is published only after the commits of earlier checkpoints."""
        assert self._ran is not None
        self._next_step = self._expire_checkpoints
        answers = [answer for report in self._ran.reports for answer in report.acknowledgements]
        self.coordinator.receive(answers, self._now)

    def _expire_checkpoints(self) -> None:
        """Give up overdue checkpoints. Those that slots have just acknowledged are published before."""
        self._next_step = self._run
        self.coordinator.expire(self._now)

    def _command(self) -> Command:
        request = self._requests.popleft() if self._requests and self._stopping is None else None
        if request is not None and request.stop:
            self._stopping = request
        reports = self._ran.reports if self._ran is not None else []
        notices = self.coordinator.take_notices()
        order = self._order(reports, request)
        self._ordered = order.number if order is not None else None
        self._news = self._waited = self._urgent = False
        self._started = self._now
        wait = 0 if order is not None or self._requests else self._wait_millis()
        records, millis, wait = self._lookups.limits(self._options, self._pace.records, wait, self._now)
        command = Command(
            epoch=self._epoch,
            attempt=self._attempt,
            now=self._now,
            max_records=records,
            max_millis=millis,
            wait_millis=wait,
            alignment=alignment_limits(self._plan, self._reached),
            checkpoint=order,
            notices=notices,
            drain=isinstance(request, SavepointRequest) and request.drain,
            paused=self._stopping is not None,
        )
        self._epoch += 1
        return command

    def _wait_millis(self) -> int:
        if self._ran is None:
            return 0
        longest = self._options.interval_millis << min(self._idle_epochs, 10)
        return wait_in_slots(self._ran, self._now, longest, self.coordinator)

    def _order(self, reports: list[Report], request: SnapshotRequest | None) -> CheckpointOrder | None:
        """Return the order for a requested snapshot, for the last checkpoint at the end of input, or for one due."""
        if request is not None:
            return self.coordinator.begin(self._now, self._epoch, request)
        if self._stopping is not None:
            return None
        if self._durability.seals and all_finished(reports):
            if self._is_sealed() or self.coordinator.awaits_slots() or self._awaits_next_try():
                return None
            order = self.coordinator.begin(self._now, self._epoch)
            self._final = order.number
            return order
        return self.coordinator.order(self._now, self._epoch)

    # --- is the job over? ---
    def _is_over(self) -> bool:
        """Return True if the job has stopped, or has read everything and sinks know of a checkpoint that covers it."""
        if self._stopped is not None:
            return self._has_stopped(self._stopped) and not self.coordinator.has_news()
        if self._ran is None or not all_finished(self._ran.reports):
            return False
        return not self._durability.seals or (self._is_sealed() and not self.coordinator.has_news())

    def _has_stopped(self, reply: Reply) -> bool:
        """Return True if the last savepoint succeeded. Otherwise the job continues, or fails if it was drained."""
        if reply.error is None:
            return True
        if isinstance(reply.request, SavepointRequest) and reply.request.drain:
            raise CheckpointFailed(f"the job was drained, and {reply.error}")
        self._stopping = self._stopped = None
        return False

    def _is_sealed(self) -> bool:
        return self._final is not None and any(kept.number == self._final for kept in self.coordinator.kept)

    def _awaits_next_try(self) -> bool:
        """Return True if the last checkpoint has failed, and its next try is not due yet."""
        due = self.coordinator.next_due()
        return self._final is not None and due is not None and due > self._now

    # --- the end ---
    def _end(self, ending: Ended) -> None:
        """Release the slots next."""
        self._ending = ending
        self._next_step = self._release
        if ending.status is JobStatus.FAILED:
            self._history.enter(JobStatus.FAILING, self._now)

    def _end_cancelled(self) -> None:
        why = "the job was cancelled"
        self._history.enter(JobStatus.CANCELLING, self._now)
        self._end(Ended(JobStatus.CANCELED, why, JobCancelled(why)))

    def _displace(self, error: JobDisplaced) -> None:
        """End the job here and leave storage alone, since nothing in it belongs to this driver any more."""
        self.coordinator.abandon(str(error))
        self._end(Ended(JobStatus.SUSPENDED, f"the job was displaced: {error}", error))

    def _suspend(self, why: JobSuspended) -> None:
        """End the job here and leave storage to the driver that goes on, unless the job is about to end anyway."""
        if self._ending is None and self.coordinator.last_savepoint is None:  # another job may have started from it
            self.coordinator.abandon(str(why))
            self._end(Ended(JobStatus.SUSPENDED, str(why), why))

    def _fail_at_the_end(self, error: Exception) -> None:
        """Let a job that seemed to have finished fail. Otherwise the first error counts."""
        assert self._ending is not None
        if self._ending.status is JobStatus.FINISHED:
            self._ending = Ended(JobStatus.FAILED, f"the job failed: {error}", error)
            self._history.add_failure(error, self._now, self._attempt)
            self._history.enter(JobStatus.FAILING, self._now)

    def _release(self) -> Decision:
        self._next_step = self._close
        return Release()

    def _close(self) -> None:
        """Hand out the last results and tidy up storage, as the ending allows."""
        assert self._ending is not None
        status, why = self._ending.status, self._ending.why
        if status is JobStatus.FINISHED:
            # Results after a last savepoint come again from the job that continues from it.
            stopped = self.coordinator.last_savepoint is not None
            self._agenda.append(HandOutLast(self.coordinator.last_epoch if stopped else None))
        if status is not JobStatus.SUSPENDED:
            self.coordinator.close(why, self._now)
        if status is JobStatus.FINISHED:
            self.coordinator.release(keep=False, finished=self._durability.marks_end)
        elif status is JobStatus.CANCELED:
            self.coordinator.release(self._durability.keep_when_cancelled, finished=False)
        self._next_step = self._over

    def _over(self) -> Decision:
        assert self._ending is not None
        if self._requests:
            error = CheckpointFailed(f"no savepoint was taken: {self._ending.why}")
            return Reply(self._requests.popleft(), error=error)
        if self._lookups:
            return self._refuse_lookups(self._ending.why)
        self._history.enter(self._ending.status, self._now)
        return self._ending

    def _refuse_lookups(self, why: str) -> Decision:
        return Refuse(self._lookups.take(self._now), StateUnavailable(f"queryable state cannot be looked up: {why}"))

    def take_unanswered(self) -> tuple[StateQuery, ...]:
        """Remove and return the queries that nobody will answer, since no decision follows."""
        return self._lookups.take(self._now)

    # --- the view from outside ---
    def _look(self) -> JobView:
        return JobView(
            job_id=self.view.job_id,
            plan=self._plan,
            status=self._history.changes[-1].status,
            changes=self._history.changes,
            attempt=self._attempt,
            epoch=self._epoch,
            reports=self._history.reports,
            checkpoints=self.coordinator.view(),
            failures=self._history.failures,
            deployed=self._deployed,
            restart_at=self._restart_at,
            has_run=self._has_run,
        )
