"""One program under supervision: the state of its jobs and its driver, as the server knows it."""

from __future__ import annotations

import threading
import time
from dataclasses import replace
from functools import lru_cache
from typing import Any

from penstock.common.job import JobStatus
from penstock.engine.job.job_record import JobRecord, from_json
from penstock.engine.job.job_view import FailureView, StatusChange
from penstock.errors import PenstockError, StorageError
from penstock.service.server.control import DriverUnreachable
from penstock.service.server.drivers import Driver
from penstock.service.server.job_archives import outline
from penstock.service.server.job_history import MOST_HELD
from penstock.service.server.merged_records import MOST_FAILURES, StatusHistory, with_failures, with_status
from penstock.service.server.register import CorruptEntry, JobEntry
from penstock.service.server.specs import How, Outcome, Revision, Spec, Wanted, job_id_of
from penstock.service.server.supervision import Facts, Presence, Watch

FRESH_SECONDS = 0.25
"""Shortest time, in seconds, between two requests for a driver's records."""
ANSWER_SECONDS = 3.0
HOLD_OFF_SECONDS = 0.5
"""Extra time, in seconds, before a driver that did not answer is asked again."""
START_SECONDS = 120.0
"""Extra time, in seconds, that a driver gets before its first answer."""
LISTEN_SECONDS = 3.0
"""Time, in seconds, since a driver's last answer, after which the supervisor asks it again without a request of a
client.
"""


class SupervisedProgram:
    """A program from its submission on. Threads of the supervisor change it; any thread may read it."""

    def __init__(self, entry: JobEntry, spec: Spec, revision: Revision) -> None:
        self.entry = entry
        self.spec = spec
        self.revision = revision
        self.wanted = Wanted()
        self.watch = Watch()
        self.driver: Driver | None = None
        self.number = 0
        """The number of drivers that were started."""
        self.launching = False
        self.unseen = False
        """Whether the last driver is not visible from this machine."""
        self.outcome: Outcome | None = None
        self.takeover = True
        self.ended_at: int | None = None
        self.reached = False
        """Whether the program has reached a job in the present driver."""
        self.runs = False
        self._kept: dict[int, JobRecord] = {}
        """The records of ended jobs, by ordinal."""
        self._live: dict[int, JobRecord] = {}
        """The driver's last records of jobs that have not ended, by ordinal."""
        self._names: dict[int, str] = {}
        """The names of jobs from drivers' records, by ordinal."""
        self._looked = 0.0
        self._heard = time.monotonic()
        """The time of the driver's last answer or of its start."""
        self._unanswered: float | None = None
        """The time of the first unanswered question, or None if the driver answers."""
        self._has_answered = False
        self._looking = threading.Lock()
        self._status_histories = {0: StatusHistory(StatusChange(JobStatus.CREATED, spec.submitted))}
        self._failures: list[FailureView] = []
        self._outlined = False
        """Whether the records of ended jobs are only outlines."""

    @property
    def job_id(self) -> str:
        return self.spec.job_id

    # --- the driver's answers ---
    def look(self, fresh: float = FRESH_SECONDS) -> None:
        """Ask the driver for its records, unless that was done less than `fresh` seconds ago."""
        driver = self.driver
        if driver is None or time.monotonic() - self._looked < fresh:
            return
        # If an older answer is available, return it instead of waiting for a driver that does not respond.
        if not self._looking.acquire(blocking=not self._live):
            return
        try:
            if time.monotonic() - self._looked >= fresh:
                self._ask_for_records(driver)
        finally:
            self._looking.release()

    def _ask_for_records(self, driver: Driver) -> None:
        began = time.monotonic()
        try:
            said = driver.ask("records", ANSWER_SECONDS)
        except DriverUnreachable:
            self._unanswered = self._unanswered or began
            self._looked = time.monotonic() + HOLD_OFF_SECONDS
            return
        self._looked = self._heard = time.monotonic()
        self._unanswered, self._has_answered = None, True
        if driver is self.driver:
            self._take(said)

    def _take(self, said: dict[str, Any]) -> None:
        live = {int(ordinal): from_json(JobRecord, record) for ordinal, record in said["records"].items()}
        self._live = {ordinal: record for ordinal, record in live.items() if ordinal not in self._kept}
        self._names.update({ordinal: record.name for ordinal, record in live.items()})
        self.reached, self.runs = said["reached"], said["runs"]

    def ask(self, do: str, ordinal: int, seconds: float | None = None, **more: Any) -> Any:
        """Send the driver an order for one of its jobs. Raise DriverUnreachable if there is no driver."""
        driver = self.driver
        if driver is None:
            raise DriverUnreachable(
                f"job {self.id_of(ordinal)} has no driver at the moment: its driver is being started"
            )
        return driver.ask(do, seconds, job=self.id_of(ordinal), **more)

    # --- starts and ends of drivers ---
    def begin(self, driver: Driver | None) -> None:
        """Register a driver that was started or found."""
        self.driver, self.unseen, self.outcome = driver, False, None
        self.reached = self.runs = False
        self._looked, self._heard, self._unanswered, self._has_answered = 0.0, time.monotonic(), None, False

    def handle_loss(self, outcome: Outcome | None, now: int) -> None:
        """Handle the end of a driver with this outcome. Without an outcome, it has died."""
        self.outcome, self.driver = outcome, None
        self.reached = self.runs = False
        self.refresh_kept()
        if outcome is None:
            self._fail(FailureView(now, self.number, "DriverLost", "the job's driver died and is being started again"))
        elif outcome.how is How.FAILED and not any(record.status == "FAILED" for record in self._kept.values()):
            said = FailureView(outcome.when, self.number, outcome.kind, outcome.message, traceback=outcome.traceback)
            self._fail(said)
        for ordinal in {0, *self._live} - set(self._kept):
            self._status_history(ordinal).record_interruption(self._live.get(ordinal), now)

    def _status_history(self, ordinal: int) -> StatusHistory:
        return self._status_histories.setdefault(ordinal, StatusHistory())

    def _fail(self, failure: FailureView) -> None:
        self._failures = [*self._failures[-(MOST_FAILURES - 1) :], failure]

    def refresh_kept(self) -> None:
        """Read the records of ended jobs from the register."""
        kept = self.entry.records()
        # If a job ended in an earlier run, the record of a later driver has no vertices. The live record has them.
        self._kept = {
            ordinal: self._merge_last_record(self._live[ordinal], record)
            if not record.vertices and ordinal in self._live
            else record
            for ordinal, record in kept.items()
        }
        self._live = {ordinal: record for ordinal, record in self._live.items() if ordinal not in self._kept}

    @staticmethod
    def _merge_last_record(before: JobRecord, last: JobRecord) -> JobRecord:
        return replace(before, status=last.status, changes=(*before.changes, *last.changes), taken=last.taken)

    def end(self, status: JobStatus, now: int) -> None:
        """End the program with this status. Jobs without a last record end with the same status."""
        self.refresh_kept()
        left = self._live or ({} if self._kept else {0: self._blank(0)})
        for ordinal, record in left.items():
            last = with_failures(self._status_history(ordinal).with_earlier_changes(record), self._failures)
            self.entry.keep(ordinal, with_status(last, status, now))
        for ordinal, record in self._kept.items():
            # The driver that stored the record did not know the status changes and failures of earlier drivers.
            self.entry.keep(
                ordinal, with_failures(self._status_history(ordinal).with_earlier_changes(record), self._failures)
            )
        self._live = {}
        self.refresh_kept()
        self.ended_at = now

    def outline(self) -> None:
        """Reduce the records of an ended program to outlines for lists. The register has the complete records."""
        self._kept = {ordinal: outline(record) for ordinal, record in self._kept.items()}
        self._outlined = True

    # --- records ---
    def id_of(self, ordinal: int) -> str:
        """Return the id of the program's job with this ordinal."""
        return job_id_of(self.job_id, ordinal)

    def ordinals(self) -> list[int]:
        """Return the ordinals of all known jobs, in order."""
        return sorted({0, *self._kept, *self._live})

    def records(self) -> list[JobRecord]:
        """Return the records of all jobs of the program. A program that ended before its first job has none."""
        if self.ended_at is None:
            self.look()
        found = [self._full_record(ordinal) for ordinal in self.ordinals()]
        return [record for record in found if self.ended_at is None or not self._is_blank(record)]

    def _is_blank(self, record: JobRecord) -> bool:
        return not record.vertices and record.name == self.spec.program

    def record(self, ordinal: int) -> JobRecord:
        """Return the record of one of the program's jobs, which is at most a moment old."""
        if self.ended_at is None and ordinal not in self._kept:
            self.look()
        if self._outlined and ordinal in self._kept:
            try:
                return whole_record(self.entry.storage.url(), self.job_id, ordinal, self.ended_at or 0)
            except (StorageError, CorruptEntry, FileNotFoundError):  # the job is being deleted from the register
                return self._kept[ordinal]
        return self._full_record(ordinal)

    def _full_record(self, ordinal: int) -> JobRecord:
        record = self._kept.get(ordinal) or self._live.get(ordinal)
        if record is None:
            return self._blank(ordinal)
        told = with_failures(self._status_history(ordinal).with_earlier_changes(record), self._failures)
        if ordinal in self._kept:
            return told
        if self.driver is None or not self.driver.is_alive() or not self.reached:
            told = replace(
                told, status="RESTARTING", changes=self._status_history(ordinal).changes, deployed=None, slots=()
            )
        return self._cancelling(told, ordinal)

    def is_live(self, ordinal: int) -> bool:
        """Return True if a driver has started the job and can take orders for it."""
        return self.driver is not None and self.reached and ordinal in self._live

    def is_over(self, ordinal: int) -> bool:
        """Return True if the job has ended."""
        return self.ended_at is not None or self._has_ended(ordinal)

    def _cancelling(self, record: JobRecord, ordinal: int) -> JobRecord:
        if self.wanted.cancelled != ordinal or record.status not in ("RUNNING", "RESTARTING", "CREATED"):
            return record
        return with_status(record, JobStatus.CANCELLING, int(time.time() * 1000))

    def _blank(self, ordinal: int) -> JobRecord:
        """Return an empty record for a job that has none yet."""
        shown = JobRecord(
            job_id=self.id_of(ordinal),
            name=self._names.get(ordinal, self.spec.program),
            batch=False,
            status="RESTARTING" if self.number > 1 else "CREATED",
            changes=self._status_history(ordinal).changes,
            taken=int(time.time() * 1000),
            failures=tuple(self._failures),
        )
        return self._cancelling(shown, ordinal)

    # --- facts for decisions ---
    def facts(self) -> Facts:
        """Return the present facts about the program, for `supervision.decide`."""
        cancelled = self.wanted.cancelled
        present = self.launching or (self.driver is not None and self.driver.is_alive())
        quiet = time.monotonic() - self._heard
        if present and (not self.runs or cancelled is not None or quiet > LISTEN_SECONDS):
            self.look()
        return Facts(
            driver=Presence.ALIVE if present else Presence.UNSEEN if self.unseen else Presence.NONE,
            outcome=self.outcome,
            runs=self.runs,
            cancel=cancelled is not None and not self._has_ended(cancelled),
            revertible=self.revision.previous is not None,
            silent=self._silent_millis(),
        )

    def _silent_millis(self) -> int:
        """Return the time for which the driver has not answered, in milliseconds. A new driver gets extra time."""
        if self._unanswered is None:
            return 0
        patience = 0.0 if self._has_answered else START_SECONDS
        return max(0, int(1000 * (time.monotonic() - self._unanswered - patience)))

    def _has_ended(self, ordinal: int) -> bool:
        record = self._live.get(ordinal)
        return ordinal in self._kept or (record is not None and record.ended is not None)

    def is_starting(self) -> bool:
        """Return True if the program is starting, which takes capacity of the machine."""
        return self.launching or (self.driver is not None and not self.runs and self.driver.is_alive())


@lru_cache(MOST_HELD)
def whole_record(url: str, job_id: str, ordinal: int, ended_at: int) -> JobRecord:
    """Return the complete record of an ended job from the register. It never changes, so it is cached."""
    return JobEntry(url, job_id).read(JobRecord, f"records/{ordinal}.json")


def error_of(outcome: Outcome, job_id: str) -> PenstockError:
    """Return the error of a program that failed before it reached a job, for a client that waits for the job."""
    said = f"{outcome.kind}: {outcome.message}" if outcome.kind else outcome.message
    return PenstockError(f"{said} (`penstock logs {job_id}` shows more)")
