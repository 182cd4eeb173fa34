"""The register of jobs on storage: submissions, requests of clients, drivers and outcomes.

    jobs/<id>/spec.json              the program, its arguments and options
    jobs/<id>/program/<file>         a copy of the program
    jobs/<id>/revisions/000002.json  the parallelism and savepoint since the job was rescaled
    jobs/<id>/wanted/00000003-000001.json  a client's request; the highest name counts
    jobs/<id>/drivers/000004.json    the place of the fourth driver; the process that creates the file is that driver
    jobs/<id>/begun/2-0.json         the owner of the first job before revision 2 began
    jobs/<id>/records/0.json         the last record of the program's first job
    jobs/<id>/outcomes/000004.json   the outcome of the fourth driver
    jobs/<id>/rescaling/000004.json  the place of the savepoint with which the fourth driver is to end
    programs/<id>/<file>             a program that was uploaded

Files are only created; `JobEntry.replace` replaces a file as a whole. The names of a leader's files contain its number,
so that a displaced leader cannot undo what its successor has written.
"""

from __future__ import annotations

import json
import logging
import os
import posixpath
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar

from penstock.base.storage import Storage
from penstock.engine.job.job_record import JobRecord, as_json, from_json
from penstock.errors import AlreadyThere, ConfigurationError, PenstockError, StorageError
from penstock.service.server.specs import DriverPlace, How, Outcome, Revision, Spec, Wanted

log = logging.getLogger("penstock.server")
T = TypeVar("T")


class CorruptEntry(PenstockError):
    """A file of the register cannot be read. The server leaves its job alone."""


class Register:
    """All jobs and programs of a cluster."""

    def __init__(self, url: str) -> None:
        self.storage = Storage(url)
        _protect(self.storage)

    def job(self, job_id: str) -> JobEntry:
        """Return the entry of a job, which need not exist yet."""
        return JobEntry(self.storage.url(f"jobs/{job_id}"), job_id)

    def job_ids(self) -> list[str]:
        """Return the ids of all jobs with a complete entry. The spec is written last."""
        names = [name.split("/") for name in Storage(self.storage.url("jobs")).names()]
        return sorted({parts[0] for parts in names if parts[1:] == ["spec.json"]})

    def add(self, spec: Spec, revision: Revision, program: bytes) -> JobEntry:
        """Add a job and return its entry. Raise AlreadyThere if there is a job with that id."""
        entry = self.job(spec.job_id)
        if entry.storage.exists("spec.json"):
            raise AlreadyThere(f"job {spec.job_id} exists already")
        entry.storage.write(f"program/{spec.program}", [program])
        entry.replace(f"revisions/{revision.number:06}.json", revision)
        entry.create("spec.json", spec)
        return entry

    def forget(self, job_id: str) -> None:
        """Delete a job's entry. The spec is deleted first, so that a partial entry is never visible."""
        storage = self.job(job_id).storage
        names = storage.names()
        for name in sorted(names, key=lambda name: name != "spec.json"):
            storage.delete(name)
        for folder in sorted({posixpath.dirname(name) for name in names}, reverse=True):
            storage.delete_empty_folder(folder)

    # --- programs ---
    def programs(self) -> list[tuple[str, str]]:
        """Return the id and name of every uploaded program."""
        names = [name.split("/") for name in Storage(self.storage.url("programs")).names()]
        return sorted((parts[0], parts[1]) for parts in names if len(parts) == 2 and not parts[1].endswith(".draft"))

    def add_program(self, program_id: str, name: str, data: bytes) -> None:
        """Store an uploaded program."""
        self.storage.create(f"programs/{program_id}/{name}", data)

    def program(self, program_id: str) -> tuple[str, bytes] | None:
        """Return the name and content of an uploaded program, or None if it is unknown."""
        name = dict(self.programs()).get(program_id)
        with suppress(FileNotFoundError):
            if name is not None:
                return name, self.storage.read(f"programs/{program_id}/{name}")
        return None

    def delete_program(self, program_id: str) -> bool:
        """Delete an uploaded program. Return False if it is unknown."""
        name = dict(self.programs()).get(program_id)
        if name is None:
            return False
        self.storage.delete(f"programs/{program_id}/{name}")
        self.storage.delete_empty_folder(f"programs/{program_id}")
        return True


class JobEntry:
    """The files of one job."""

    def __init__(self, url: str, job_id: str) -> None:
        self.storage = Storage(url)
        self.job_id = job_id

    # --- files ---
    def create(self, name: str, value: Any) -> None:
        """Create a file atomically. Raise AlreadyThere if it exists."""
        self.storage.create(name, _encode(value))

    def replace(self, name: str, value: Any) -> None:
        """Create or replace a file atomically."""
        draft = f"{name}.{os.urandom(6).hex()}.draft"
        self.storage.write(draft, [_encode(value)])
        self.storage.rename(draft, name)

    def read(self, kind: type[T], name: str) -> T:
        """Return the content of a file. Raise FileNotFoundError, or CorruptEntry if the content is damaged."""
        text = self.storage.read(name)
        try:
            said = json.loads(text)
            if not isinstance(said, dict):
                raise ValueError(f"it must hold a JSON object, not a {type(said).__name__}")
            return from_json(kind, said)
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            raise CorruptEntry(f"'{self.storage.url(name)}' cannot be read: {type(error).__name__}: {error}") from None

    def read_or_none(self, kind: type[T], name: str) -> T | None:
        """Return the content of a file, or None if it does not exist."""
        with suppress(FileNotFoundError):
            return self.read(kind, name)
        return None

    def _numbers(self, folder: str) -> list[int]:
        names = Storage(self.storage.url(folder)).names()
        stems = [name.removesuffix(".json") for name in names if name.endswith(".json")]
        return sorted(int(stem) for stem in stems if stem.isdigit())

    # --- the submission ---
    def spec(self) -> Spec:
        """Return the submitted spec."""
        return self.read(Spec, "spec.json")

    def program(self) -> tuple[str, bytes]:
        """Return the name and content of the program."""
        name = self.spec().program
        return name, self.storage.read(f"program/{name}")

    def revision(self, number: int | None = None) -> Revision:
        """Return the revision with this number, or with None the newest one."""
        chosen = max(self._numbers("revisions"), default=0) if number is None else number
        try:
            return self.read(Revision, f"revisions/{chosen:06}.json")
        except FileNotFoundError:
            raise CorruptEntry(f"'{self.storage.url()}' has no revision {chosen}") from None

    def revise(self, revision: Revision) -> Revision:
        """Add a revision and return it. If another leader has added this number before, return that revision."""
        try:
            self.create(f"revisions/{revision.number:06}.json", revision)
        except AlreadyThere:
            return self.revision(revision.number)
        return revision

    # --- requests of clients ---
    def read_wanted(self) -> Wanted:
        """Return the newest request of a client, or an empty one."""
        names = Storage(self.storage.url("wanted")).names()
        newest = max((name for name in names if name.endswith(".json")), default=None)
        return Wanted() if newest is None else self.read(Wanted, f"wanted/{newest}")

    def want(self, wanted: Wanted, fence: int) -> None:
        """Store a client's request under `fence`, the number of the leader."""
        names = Storage(self.storage.url("wanted")).names()
        own = [name for name in names if name.startswith(f"{fence:08}-") and name.endswith(".json")]
        self.create(f"wanted/{fence:08}-{len(own) + 1:06}.json", wanted)

    # --- drivers ---
    def drivers(self) -> list[int]:
        """Return the numbers of all drivers that were started."""
        return self._numbers("drivers")

    def place(self, number: int) -> DriverPlace | None:
        """Return the place of a driver, or None if it is unknown."""
        return self.read_or_none(DriverPlace, f"drivers/{number:06}.json")

    def enter(self, place: DriverPlace) -> None:
        """Become the driver of this number. Raise AlreadyThere if another process is."""
        self.create(f"drivers/{place.number:06}.json", place)

    def outcome(self, number: int) -> Outcome | None:
        """Return the outcome of a driver, or None if there is none.

        A driver that died after its rescaling savepoint was complete has the outcome RESCALED.
        """
        said = self.read_or_none(Outcome, f"outcomes/{number:06}.json")
        if said is not None:
            return said
        planned = self.read_or_none(Outcome, f"rescaling/{number:06}.json")
        found = _complete_savepoint(planned.savepoint) if planned is not None else None
        return None if found is None or planned is None else _with_savepoint(planned, found)

    def end(self, number: int, outcome: Outcome) -> None:
        """Store the outcome of a driver. If there is an outcome already, it stays."""
        with suppress(AlreadyThere):
            self.create(f"outcomes/{number:06}.json", outcome)

    def plan_rescaling(self, number: int, planned: Outcome) -> None:
        """Store the place of a rescaling's savepoint, so that it is found if the driver dies after completing it."""
        self.replace(f"rescaling/{number:06}.json", planned)

    # --- the program's jobs ---
    def owner_before(self, revision: int, ordinal: int, owner: int) -> int:
        """Return the job's last owner before this revision. If the revision begins now, store and return `owner`."""
        name = f"begun/{revision}-{ordinal}.json"
        try:
            self.create(name, {"owner": owner})
            return owner
        except AlreadyThere:
            return int(json.loads(self.storage.read(name))["owner"])

    def records(self) -> dict[int, JobRecord]:
        """Return the last records of the program's ended jobs, by their ordinals."""
        return {number: self.read(JobRecord, f"records/{number}.json") for number in self._numbers("records")}

    def keep(self, ordinal: int, record: JobRecord) -> None:
        """Store the last record of a job."""
        self.replace(f"records/{ordinal}.json", record)


def _encode(value: Any) -> bytes:
    return json.dumps(as_json(value)).encode()


def _complete_savepoint(folder: str | None) -> str | None:
    """Return the complete savepoint below a folder, or None."""
    if folder is None:
        return None
    storage = Storage(folder)
    found = [name for name in storage.names() if name.endswith("/_metadata")]
    return storage.url(posixpath.dirname(found[0])) if found else None


def _with_savepoint(planned: Outcome, savepoint: str) -> Outcome:
    return Outcome(
        How.RESCALED, planned.when, savepoint=savepoint, parallelism=planned.parallelism, ordinal=planned.ordinal
    )


def _protect(storage: Storage) -> None:
    """Forbid other users to read a register on a local disk, because options may be secrets."""
    if not storage.local:
        return
    try:
        Path(storage.root).mkdir(mode=0o700, parents=True, exist_ok=True)
        if os.stat(storage.root).st_uid == os.geteuid():
            os.chmod(storage.root, 0o700)
    except OSError as error:
        raise ConfigurationError(f"the register cannot be kept in '{storage.root}': {error}") from None


def readable(entries: Iterator[JobEntry]) -> Iterator[tuple[JobEntry, Spec]]:
    """Yield the entries whose spec can be read. Log the others."""
    for entry in entries:
        try:
            yield entry, entry.spec()
        except (CorruptEntry, StorageError, FileNotFoundError) as error:
            log.error("ignoring job %s, whose entry in the register is damaged: %s", entry.job_id, error)
