"""The jobs of one program inside its driver: which id each has, where it starts from, and what becomes of it."""

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
from penstock.service.launch.options import Recovery
from penstock.service.rest.job_backend import UnknownJob
from penstock.service.server.register import JobEntry
from penstock.service.server.specs import Revision, job_id_of

if TYPE_CHECKING:
    from penstock.datastream import StreamExecutionEnvironment

log = logging.getLogger("penstock.server")


class ProgramJobs:
    """Prepares each job of a program before it starts, and keeps its last record when it has ended."""

    def __init__(self, entry: JobEntry, revision: Revision, storage: str, takeover: bool) -> None:
        """`storage` is the URL below which checkpoints and savepoints go if the program names no other place."""
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
        """The jobs that ran before this driver. One that fails before it has slots goes on with another driver."""
        self.leaving = False
        """Whether the program goes on elsewhere or later, so that nothing that ends now has come to its end."""

    # --- before a job starts ---
    def prepare(self, environment: StreamExecutionEnvironment, job_name: str | None) -> bool:
        """Give the next job its id and the place where it starts; tells whether it ended in an earlier run."""
        with self._lock:
            ordinal, self._next = self._next, self._next + 1
        self._hold()
        settings = environment._settings
        settings.job_id = job_id_of(self._entry.job_id, ordinal)
        if ordinal in self._earlier:
            return True
        self._complete(settings)
        if self._revision.forced and self._revision.parallelism is not None:
            settings.config.set_parallelism(self._revision.parallelism)
        return self._place_start(settings, ordinal)

    def _complete(self, settings: EnvironmentSettings) -> None:
        """Checkpoints have to outlive the driver, and savepoints need a place."""
        if checkpoint_directory(settings) is None:
            place = f"{self._storage}/checkpoints"
            settings.storage.directory = settings.storage.directory or place
            if checkpoint_directory(settings) is None:
                settings.checkpoints.set_checkpoint_storage(JobManagerCheckpointStorage(place))
        settings.savepoint_directory = settings.savepoint_directory or f"{self._storage}/savepoints"

    def _place_start(self, settings: EnvironmentSettings, ordinal: int) -> bool:
        """Go on from the newest checkpoint if this revision of the job has run before, else start as was asked for.

        Whether it has is known from the job's owners: those up to the one before this revision do not count.
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

    # --- when it has started ---
    def register_handle(self, handle: JobHandle) -> None:
        """A job has started, or has told that it ended long ago."""
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
            log.error("the last record of job %s could not be kept: %s", handle.job_id, error)

    def _hold(self) -> None:
        """A program that goes on elsewhere or later must not see the end of its job, which is none."""
        while self.leaving:
            time.sleep(0.05)

    def wait_for_records(self) -> None:
        """The program has ended: what its jobs leave behind is stored."""
        for watcher in self._watchers:
            watcher.join(60)

    # --- what is asked ---
    def records(self) -> dict[int, JobRecord]:
        """The jobs of this run, by their ordinals."""
        with self._lock:
            handles = dict(self._handles)
        return {
            ordinal: self._earlier[ordinal] if ordinal in self._earlier else handle.record()
            for ordinal, handle in handles.items()
        }

    def handle(self, job_id: str) -> JobHandle:
        return self._handles[self.ordinal(job_id)]

    def ordinal(self, job_id: str) -> int:
        """Which of the program's jobs this is; raises UnknownJob if it has not started."""
        with self._lock:
            for ordinal in self._handles:
                if job_id_of(self._entry.job_id, ordinal) == job_id:
                    return ordinal
        raise UnknownJob(f"job {job_id} has not started yet")

    def has_reached_a_job(self) -> bool:
        return self._next > 0

    def have_run(self) -> bool:
        """Whether a job of this driver has had slots, or is over. One that failed before it had slots has not run."""
        with self._lock:
            handles = list(self._handles.values())
        return any(
            handle.view.has_run or (handle.status().is_terminal_state() and handle.status() is not JobStatus.FAILED)
            for handle in handles
        )

    def living(self) -> list[JobHandle]:
        with self._lock:
            return [handle for handle in self._handles.values() if not handle.status().is_terminal_state()]

    def suspend(self) -> None:
        """Let all jobs stop where they are."""
        self.leaving = True
        stopping = [threading.Thread(target=handle.suspend, daemon=True) for handle in self.living()]
        for thread in stopping:
            thread.start()
        until = time.monotonic() + 20
        for thread in stopping:
            thread.join(max(0.0, until - time.monotonic()))
