"""The supervisor of a leading server's programs: a thread that carries out the decisions of the state machine."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace

from penstock.common.job import JobStatus
from penstock.errors import AlreadyThere, ConfigurationError, PenstockError, StorageError
from penstock.service.options.server_options import ServerSettings
from penstock.service.server.control import DriverUnreachable
from penstock.service.server.drivers import Driver, Drivers
from penstock.service.server.job_archives import Archive
from penstock.service.server.register import CorruptEntry, JobEntry, Register, readable
from penstock.service.server.specs import How, Outcome, Revision, Spec, Wanted
from penstock.service.server.supervised_program import SupervisedProgram
from penstock.service.server.supervision import (
    Cancel,
    Decision,
    End,
    Kill,
    Nothing,
    Revert,
    Revise,
    Rules,
    Start,
    Watch,
    decide,
    select_starts,
)
from penstock.service.server.task_managers import with_places

log = logging.getLogger("penstock.server")
TICK_SECONDS = 0.2
TIDY_SECONDS = 10.0
LONGEST_START_MILLIS = 120_000
"""Time, in milliseconds, after which a starting program does not keep others from starting."""


@dataclass(frozen=True)
class Ended:
    """The end of a program, as the register stores it. With this file, the program is part of the history."""

    status: str
    when: int


class Supervisor:
    """The programs of a cluster, and the thread that supervises them while this server leads."""

    def __init__(self, settings: ServerSettings, register: Register, drivers: Drivers) -> None:
        self._settings = settings
        self._register = register
        self._drivers = drivers
        self._rules = Rules(
            settings.backoff,
            settings.max_backoff,
            settings.backoff_reset,
            longest_silence=settings.driver_timeout,
        )
        self._jobs: dict[str, SupervisedProgram] = {}
        self._changing = threading.RLock()
        self._wake = threading.Event()
        self._leading = threading.Event()
        self._thread: threading.Thread | None = None
        self._starters = ThreadPoolExecutor(settings.starts, thread_name_prefix="penstock start")
        self._tidied = 0.0
        self.fence = 0
        self.may_act: Callable[[], bool] = lambda: True
        """Called before each round, because a leader that was paused may have been displaced."""

    # --- leading ---
    def lead(self, fence: int) -> None:
        """Supervise all jobs of the register. Living drivers are adopted, others are started."""
        self.fence = fence
        self._leading.set()
        with self._changing:
            self._jobs = {}
            entries = [self._register.job(job_id) for job_id in self._register.job_ids()]
            for entry, spec in readable(iter(entries)):
                self._adopt(entry, spec)
        self._thread = threading.Thread(target=self._run, name="penstock supervisor", daemon=True)
        self._thread.start()

    def follow(self) -> None:
        """Stop supervising, because another server leads or this one ends. Drivers continue to run."""
        self._leading.clear()
        self._wake.set()
        if self._thread is not None and self._thread is not threading.current_thread():
            self._thread.join(30)

    @property
    def leads(self) -> bool:
        """Whether this server supervises the programs."""
        return self._leading.is_set()

    def _adopt(self, entry: JobEntry, spec: Spec) -> None:
        try:
            self._jobs[spec.job_id] = self._load(entry, spec)
        except (CorruptEntry, StorageError, FileNotFoundError) as error:
            log.error("ignoring job %s, whose entry in the register is damaged: %s", spec.job_id, error)

    def _load(self, entry: JobEntry, spec: Spec) -> SupervisedProgram:
        """Return a program with its state in the register."""
        job = SupervisedProgram(entry, spec, entry.revision())
        ended = entry.read_or_none(Ended, "ended.json")
        if ended is not None:
            job.ended_at, job.watch = ended.when, Watch(ended=True)
            job.refresh_kept()
            job.outline()
            return job
        job.wanted = entry.read_wanted()
        job.watch = Watch(has_run=entry.storage.exists("has-run.json"))
        job.refresh_kept()
        self._find_driver(job)
        return job

    def _find_driver(self, job: SupervisedProgram) -> bool:
        """Look for the last driver that was started. Return True if it lives and was not known."""
        number = max(job.entry.drivers(), default=0)
        place = job.entry.place(number) if number else None
        if place is None or number < job.number or (number == job.number and job.driver is not None):
            return False
        driver = Driver.at(place)
        job.number = number
        if driver is not None and driver.is_alive():
            log.info("job %s has a driver, process %d", job.job_id, driver.pid)
            job.begin(driver)
            job.watch = replace(job.watch, started=_now())
            return True
        job.unseen = driver is None
        is_current = place.revision == job.revision.number or job.revision.driver == number
        job.outcome = job.entry.outcome(number) if is_current else None
        return False

    # --- the loop ---
    def _run(self) -> None:
        while self._leading.is_set():
            try:
                if self.may_act():
                    self._tick()
            except Exception:
                log.exception("supervising the jobs failed; trying again")
            self._wake.wait(TICK_SECONDS)
            self._wake.clear()

    def wake(self) -> None:
        """Start the next round at once."""
        self._wake.set()

    def _tick(self) -> None:
        wanting: list[tuple[SupervisedProgram, Watch]] = []
        for job in self._living():
            try:
                step = self._decide(job)
            except (StorageError, CorruptEntry) as error:
                log.warning("supervising job %s failed; trying again later: %s", job.job_id, error)
                continue
            if isinstance(step, Watch):
                wanting.append((job, step))
        self._start_some(wanting)
        if time.monotonic() - self._tidied > TIDY_SECONDS:
            self._tidied = time.monotonic()
            self._expire()

    def _living(self) -> list[SupervisedProgram]:
        with self._changing:
            jobs = [job for job in self._jobs.values() if not job.watch.ended]
        return sorted(jobs, key=lambda job: job.spec.submitted)

    def _decide(self, job: SupervisedProgram) -> Watch | None:
        """Decide and act. A start waits for its turn: in this case, return the watch to remember after it."""
        if not job.launching and job.driver is not None and not job.driver.is_alive():
            self._handle_driver_end(job)
        before = job.watch
        watch, decision = decide(before, job.facts(), self._rules, _now())
        if isinstance(decision, Start):
            job.watch = replace(watch, started=None)
            return watch
        if watch.has_run and not before.has_run:
            job.entry.replace("has-run.json", {"when": _now()})
        self._carry_out(job, decision)
        job.watch = watch
        return None

    def _handle_driver_end(self, job: SupervisedProgram) -> None:
        """Handle the end of a driver: read its outcome, and look for another driver in its place."""
        assert job.driver is not None
        gone = job.driver
        outcome = job.entry.outcome(gone.number)
        log.info("the driver of job %s has ended: %s", job.job_id, outcome.how.name if outcome else "it has died")
        job.handle_loss(outcome, _now())
        if outcome is not None and outcome.how is not How.DISPLACED:
            return
        job.takeover = outcome is None
        if self._find_driver(job):
            job.takeover = True

    def _carry_out(self, job: SupervisedProgram, decision: Decision) -> None:
        match decision:
            case Cancel():
                self._cancel(job)
            case Kill():
                assert job.driver is not None
                log.warning("killing the driver of job %s, which does not end or does not answer", job.job_id)
                job.driver.kill()
            case Revise(outcome):
                self._revise(job, outcome)
            case Revert(outcome):
                self._revert(job, outcome)
            case End(status):
                self._end(job, status)
            case Nothing() | Start():
                pass

    def _cancel(self, job: SupervisedProgram) -> None:
        try:
            job.ask("cancel", job.wanted.cancelled or 0, 5.0)
        except PenstockError as error:
            log.info("job %s cannot be cancelled yet; trying again: %s", job.job_id, error)
        except Exception as error:
            log.info("job %s cannot be cancelled: %s", job.job_id, error)

    def _revise(self, job: SupervisedProgram, outcome: Outcome) -> None:
        before = job.revision
        revised = replace(
            before,
            number=before.number + 1,
            parallelism=outcome.parallelism,
            savepoint=outcome.savepoint,
            claim=True,
            ordinal=outcome.ordinal,
            forced=True,
            previous=before.number,
        )
        job.revision, job.outcome = job.entry.revise(revised), None

    def _revert(self, job: SupervisedProgram, outcome: Outcome) -> None:
        failed = job.revision
        assert failed.previous is not None
        earlier = job.entry.revision(failed.previous)
        log.warning("job %s returns to its earlier parallelism: %s", job.job_id, outcome.message)
        back = replace(
            failed, number=failed.number + 1, parallelism=earlier.parallelism, forced=earlier.forced, previous=None
        )
        job.revision, job.outcome = job.entry.revise(back), None

    def _end(self, job: SupervisedProgram, status: JobStatus) -> None:
        now = _now()
        job.end(status, now)
        self._archive(job)
        job.entry.replace("ended.json", Ended(status.name, now))
        job.outline()
        log.info("job %s has ended: %s", job.job_id, status.name)

    def _archive(self, job: SupervisedProgram) -> None:
        """Write the archives of a job. A failure is only logged, so that the job can end."""
        if self._settings.archive is None:
            return
        try:
            archive = Archive(self._settings.archive)
            for record in job.records():
                archive.keep(with_places(record))
        except (StorageError, ConfigurationError) as error:
            log.error("job %s could not be archived: %s", job.job_id, error)

    # --- starting ---
    def _start_some(self, wanting: list[tuple[SupervisedProgram, Watch]]) -> None:
        now = _now()
        starting = sum(
            job.is_starting() and now - (job.watch.started or now) < LONGEST_START_MILLIS for job in self._living()
        )
        by_id = {job.job_id: (job, watch) for job, watch in wanting}
        for job_id in select_starts(list(by_id), starting, self._settings.starts):
            job, watch = by_id[job_id]
            job.watch, job.launching = watch, True
            self._starters.submit(self._launch, job)

    def _launch(self, job: SupervisedProgram) -> None:
        job.number = max([job.number, *job.entry.drivers()]) + 1
        try:
            driver = self._drivers.launch(job.spec, job.revision, job.number, self.fence, job.takeover)
            job.begin(driver)
            job.takeover = True
            log.info("job %s: driver %d is process %d", job.job_id, job.number, driver.pid)
        except Exception as error:
            log.exception("job %s: the driver could not be started", job.job_id)
            outcome = Outcome(How.FAILED, _now(), type(error).__name__, str(error), deployed=False)
            job.handle_loss(outcome, _now())
        finally:
            job.launching = False
            self._wake.set()

    # --- orders of clients ---
    def submit(self, spec: Spec, revision: Revision, program: bytes) -> SupervisedProgram:
        """Add a program to the register and supervise it. Raise AlreadyThere if there is a job with that id."""
        job = SupervisedProgram(self._register.add(spec, revision, program), spec, revision)
        with self._changing:
            self._jobs[spec.job_id] = job
        self._wake.set()
        return job

    def cancel(self, job: SupervisedProgram, ordinal: int) -> None:
        """Store the order to cancel a job. From then on it survives the death of drivers and servers."""
        wanted = Wanted(ordinal)
        try:
            job.entry.want(wanted, self.fence)
        except AlreadyThere:
            job.entry.want(wanted, self.fence)
        job.wanted = wanted
        self._wake.set()

    def all(self) -> list[SupervisedProgram]:
        """Return all programs, in order of submission."""
        with self._changing:
            return sorted(self._jobs.values(), key=lambda job: job.spec.submitted)

    def find(self, job_id: str) -> tuple[SupervisedProgram, int] | None:
        """Return the program of a job and the job's ordinal, or None if the job is unknown."""
        with self._changing:
            first = self._jobs.get(job_id)
            jobs = list(self._jobs.values())
        if first is not None:
            return first, 0
        for job in jobs:
            for ordinal in job.ordinals():
                if job.id_of(ordinal) == job_id:
                    return job, ordinal
        return None

    def suspend(self) -> None:
        """Stop all drivers. Their jobs continue when a server leads again."""
        drivers = [job.driver for job in self._living() if job.driver is not None]
        with ThreadPoolExecutor(max(1, len(drivers))) as pool:
            list(pool.map(_suspend_driver, drivers))

    # --- history ---
    def _expire(self) -> None:
        """Delete ended jobs that are old, and the oldest ones if there are too many."""
        ended = sorted((job for job in self.all() if job.ended_at is not None), key=lambda job: job.ended_at or 0)
        too_many = len(ended) - self._settings.jobs_kept
        oldest = _now() - self._settings.jobs_expire
        for index, job in enumerate(ended):
            if index < too_many or (job.ended_at or 0) < oldest:
                self._forget(job)

    def _forget(self, job: SupervisedProgram) -> None:
        with self._changing:
            self._jobs.pop(job.job_id, None)
        _ignoring(lambda: self._register.forget(job.job_id))
        self._drivers.forget(job.job_id)


def _suspend_driver(driver: Driver) -> None:
    """Stop the jobs of a driver, and wait for its end. A driver that does not end in time is killed."""
    try:
        driver.ask("suspend", 40.0)
    except DriverUnreachable as error:
        log.info("a driver could not be asked to stop: %s", error)
    until = time.monotonic() + 10
    while driver.is_alive() and time.monotonic() < until:
        time.sleep(0.05)
    driver.kill()


def _ignoring(action: Callable[[], None]) -> None:
    try:
        action()
    except StorageError as error:
        log.warning("removing an ended job failed; trying again later: %s", error)


def _now() -> int:
    return int(time.time() * 1000)
