"""The history of a server: ended jobs of this and other servers, read from the folders of their archives."""

from __future__ import annotations

import logging
import threading
from collections import OrderedDict
from collections.abc import Sequence

from penstock.engine.job.job_record import JobRecord
from penstock.errors import StorageError
from penstock.service.server.job_archives import Archive, Unreadable, outline

log = logging.getLogger("penstock.server")
MOST_SHOWN = 10_000
"""Largest number of jobs in lists. The newest jobs are listed."""
MOST_HELD = 32
"""Number of complete records in memory: those that were requested last."""


class History:
    """Lists all archived jobs, and reads a complete record on request."""

    def __init__(self, folders: Sequence[str], refresh: int, kept: int = -1) -> None:
        """Create a history. `refresh` is the time between two looks, in milliseconds.

        `kept` is the number of newest archives that stay in each folder; -1 means all.
        """
        self._archives = [Archive(folder) for folder in folders]
        self._seconds = refresh / 1000
        self._kept = kept
        self._outlines: dict[str, tuple[JobRecord, Archive]] = {}
        self._known: list[set[str]] = [set() for _ in folders]
        """The names of the archives in each folder that were read or found unreadable."""
        self._held: OrderedDict[str, JobRecord] = OrderedDict()
        self._changing = threading.Lock()
        self._stopped = threading.Event()
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Start a thread that looks at the folders regularly."""
        if self._archives and self._thread is None:
            self._thread = threading.Thread(target=self._run, name="penstock history", daemon=True)
            self._thread.start()

    def _run(self) -> None:
        while not self._stopped.is_set():
            self.refresh()
            self._stopped.wait(self._seconds)

    def stop(self) -> None:
        """Stop the thread that looks at the folders."""
        self._stopped.set()
        if self._thread is not None:
            self._thread.join(30)

    # --- looking at the folders ---
    def refresh(self) -> None:
        """Look at all folders for new, deleted and surplus archives."""
        for archive, known in zip(self._archives, self._known, strict=True):
            try:
                self._look(archive, known)
            except StorageError as error:
                log.warning("looking for archived jobs failed; trying again later: %s", error)

    def _look(self, archive: Archive, known: set[str]) -> None:
        there = set(archive.job_ids())
        self._drop(known - there)
        known &= there
        for job_id in sorted(there - known):
            if self._stopped.is_set():
                return
            self._take(archive, job_id)
            known.add(job_id)
        self._delete_old(archive)
        self._forget_oldest()

    def _take(self, archive: Archive, job_id: str) -> None:
        try:
            record = archive.read(job_id)
        except FileNotFoundError:
            return
        except Unreadable as error:
            log.warning("skipping an archived job: %s", error)
            return
        with self._changing:
            self._outlines[job_id] = outline(record), archive

    def _drop(self, job_ids: set[str]) -> None:
        with self._changing:
            for job_id in job_ids:
                self._outlines.pop(job_id, None)
                self._held.pop(job_id, None)

    def _delete_old(self, archive: Archive) -> None:
        """Delete the oldest archives beyond the number to keep, as Flink's history server does."""
        if self._kept < 0:
            return
        own = [record for record, holder in list(self._outlines.values()) if holder is archive]
        for record in sorted(own, key=_when, reverse=True)[self._kept :]:
            archive.delete(record.job_id)
            self._drop({record.job_id})

    def _forget_oldest(self) -> None:
        """Remove the oldest jobs from lists. Their archives stay, and can be requested by job id."""
        if len(self._outlines) > MOST_SHOWN:
            listed = sorted((record for record, _ in self._outlines.values()), key=_when)
            self._drop({record.job_id for record in listed[: len(listed) - MOST_SHOWN]})

    # --- lookups ---
    def records(self) -> list[JobRecord]:
        """Return the outlines of all jobs, for lists."""
        with self._changing:
            return [record for record, _ in self._outlines.values()]

    def record(self, job_id: str) -> JobRecord | None:
        """Return the complete record of a job, its outline if its archive is unreadable, or None if it is unknown."""
        with self._changing:
            if job_id in self._held:
                self._held.move_to_end(job_id)
                return self._held[job_id]
            known = self._outlines.get(job_id)
        for archive in [known[1]] if known is not None else self._archives:
            try:
                return self._hold(archive.read(job_id))
            except (FileNotFoundError, Unreadable, StorageError) as error:
                log.debug("job %s could not be read from an archive: %s", job_id, error)
        return known[0] if known is not None else None

    def _hold(self, record: JobRecord) -> JobRecord:
        with self._changing:
            self._held[record.job_id] = record
            while len(self._held) > MOST_HELD:
                self._held.popitem(last=False)
        return record


def _when(record: JobRecord) -> int:
    return record.ended or record.taken
