"""The jobs of one program inside its driver: their ids, their starting points and their last records."""

from __future__ import annotations

import logging
import threading
import time
from typing import TYPE_CHECKING

from penstock.api.settings.checkpoint_storage import JobManagerCheckpointStorage
from penstock.common.job import JobStatus
from penstock.engine.checkpoint.ownership import last_start
from penstock.engine.checkpoint.rules import is_finished
from penstock.engine.checkpoint.store import FolderStore
from penstock.engine.job.job_handle import JobHandle
from penstock.engine.job.job_record import JobRecord
from penstock.errors import StorageError
from penstock.service.launch.execution_settings import EnvironmentSettings, checkpoint_directory
from penstock.service.options.combined_options import Recovery
from penstock.service.rest.job_backend import UnknownJob
from penstock.service.server.register import JobEntry
from penstock.service.server.specs import Revision, job_id_of

if TYPE_CHECKING:
    from penstock.datastream import StreamExecutionEnvironment

log = logging.getLogger("penstock.server")


class ProgramJobs:
    """Prepares each job of a program before it starts, and stores its last record when it has ended."""

    def __init__(self, entry: JobEntry, revision: Revision, storage: str, takeover: bool) -> None:
        """Create the jobs of one run of a program.

        `storage` is the default URL below which checkpoints and savepoints are stored.
        """
        self._entry = entry
        self._revision = revision
        self._storage = storage
        self._takeover = takeover
        self._lock = threading.Lock()
        self._handles: dict[int, JobHandle] = {}
        self._watchers: list[threading.Thread] = []
        self._next = 0
        self._earlier = entry.records()
        self._resumed: set[int] = set()
        """Ordinals of jobs that ran before this driver. If one fails without slots, another driver continues it."""
        self.leaving = False
        """Whether the program continues elsewhere or later. Jobs that stop now have then not ended."""

    # --- before a job starts ---
    def prepare(self, environment: StreamExecutionEnvironment, job_name: str | None) -> bool:
        """Set the id and the starting point of the next job. Return True if it ended in an earlier run."""
        with self._lock:
            ordinal, self._next = self._next, self._next + 1
        self._hold()
        settings = environment.settings
        settings.job_id = job_id_of(self._entry.job_id, ordinal)
        if ordinal in self._earlier:
            return True
        self._complete(settings)
        if self._revision.forced and self._revision.parallelism is not None:
            settings.config.set_parallelism(self._revision.parallelism)
        return self._place_start(settings, ordinal)

    def _complete(self, settings: EnvironmentSettings) -> None:
        """Set storage that outlives the driver for checkpoints, and a folder for savepoints, if they are not set."""
        if checkpoint_directory(settings) is None:
            place = f"{self._storage}/checkpoints"
            settings.storage.directory = settings.storage.directory or place
            if checkpoint_directory(settings) is None:
                settings.checkpoints.set_checkpoint_storage(JobManagerCheckpointStorage(place))
        settings.savepoint_directory = settings.savepoint_directory or f"{self._storage}/savepoints"

    def _place_start(self, settings: EnvironmentSettings, ordinal: int) -> bool:
        """Continue from the newest checkpoint if this revision of the job has run before, otherwise start as ordered.

        The owners of the job tell whether the revision has run: it has if there is an owner after the last one before
        this revision. Return True if the job has finished already.
        """
        directory = checkpoint_directory(settings)
        assert directory is not None and settings.job_id is not None
        last = last_start(FolderStore(directory, settings.job_id).url())
        owner = 0 if last is None else last.owner
        before = self._entry.owner_before(self._revision.number, ordinal, owner)
        has_run = owner > before
        if has_run or self._revision.previous is not None:
            self._resumed.add(ordinal)
        if not has_run:
            settings.recovery = Recovery.NONE
        elif settings.recovery is Recovery.NONE:
            settings.recovery = Recovery.LATEST
        settings.takeover = settings.takeover or (self._takeover and has_run)
        if ordinal == self._revision.ordinal and self._revision.savepoint is not None:
            settings.restore_path = self._revision.savepoint
            settings.allow_non_restored = self._revision.allow_non_restored
            settings.claim = self._revision.claim
        return has_run and is_finished(last)

    def revise(self, revision: Revision) -> None:
        """Note that running jobs of this driver belong to a new revision. Later drivers continue them."""
        with self._lock:
            ordinals, earlier = range(self._next), self._revision
        for ordinal in ordinals:
            before = self._entry.owner_before(earlier.number, ordinal, 0)
            self._entry.owner_before(revision.number, ordinal, before)
        self._revision = self._entry.revise(revision)

    # --- when it has started ---
    def register_handle(self, handle: JobHandle) -> None:
        """Register the handle of a job that has started, or of one that ended in an earlier run."""
        handle.before_result = self._hold
        with self._lock:
            ids = {job_id_of(self._entry.job_id, number): number for number in range(self._next)}
            ordinal = ids[handle.job_id.hex]
            self._handles[ordinal] = handle
        watcher = threading.Thread(target=self._watch, args=(ordinal, handle), name="penstock end", daemon=True)
        self._watchers.append(watcher)
        watcher.start()

    def _watch(self, ordinal: int, handle: JobHandle) -> None:
        handle.wait()
        if self.leaving or handle.status() is JobStatus.SUSPENDED or ordinal in self._earlier:
            return
        if handle.status() is JobStatus.FAILED and not handle.view.has_run and ordinal in self._resumed:
            return
        try:
            self._entry.keep(ordinal, handle.record())
        except StorageError as error:
            log.error("the last record of job %s could not be stored: %s", handle.job_id, error)

    def _hold(self) -> None:
        """Block while the program leaves. It continues elsewhere or later, and must not see that its job stops."""
        while self.leaving:
            time.sleep(0.05)

    def wait_for_records(self) -> None:
        """Wait until the last records of all jobs are stored. Called when the program has ended."""
        for watcher in self._watchers:
            watcher.join(60)

    # --- lookups ---
    def records(self) -> dict[int, JobRecord]:
        """Return the records of this run's jobs, by their ordinals."""
        with self._lock:
            handles = dict(self._handles)
        return {
            ordinal: self._earlier[ordinal] if ordinal in self._earlier else handle.record()
            for ordinal, handle in handles.items()
        }

    def handle(self, job_id: str) -> JobHandle:
        """Return the handle of a job. Raise UnknownJob if the job has not started."""
        return self._handles[self.ordinal(job_id)]

    def ordinal(self, job_id: str) -> int:
        """Return the ordinal of a job of the program. Raise UnknownJob if the job has not started."""
        with self._lock:
            for ordinal in self._handles:
                if job_id_of(self._entry.job_id, ordinal) == job_id:
                    return ordinal
        raise UnknownJob(f"job {job_id} has not started yet")

    def has_reached_a_job(self) -> bool:
        """Return True if the program has come to its first job."""
        return self._next > 0

    def have_run(self) -> bool:
        """Return True if a job of this driver has had slots or has ended, except by a failure before it had slots."""
        with self._lock:
            handles = list(self._handles.values())
        return any(
            handle.view.has_run or (handle.status().is_terminal_state() and handle.status() is not JobStatus.FAILED)
            for handle in handles
        )

    def living(self) -> list[JobHandle]:
        """Return the handles of jobs that have not ended."""
        with self._lock:
            return [handle for handle in self._handles.values() if not handle.status().is_terminal_state()]

    def suspend(self) -> None:
        """Stop all jobs without ending them."""
        self.leaving = True
        stopping = [threading.Thread(target=handle.suspend, daemon=True) for handle in self.living()]
        for thread in stopping:
            thread.start()
        until = time.monotonic() + 20
        for thread in stopping:
            thread.join(max(0.0, until - time.monotonic()))
