"""The stores of a job's checkpoints: a folder of a file system, or the memory of the driver."""

from __future__ import annotations

import logging
import posixpath
from collections.abc import Callable
from contextlib import suppress
from typing import Protocol

from penstock.base.storage import Storage
from penstock.engine.checkpoint import rules as protocol
from penstock.engine.checkpoint.metadata import FILE, Metadata, decode, encode
from penstock.errors import NoSuchSnapshot, StorageError

log = logging.getLogger("penstock.checkpoint")


class CheckpointStore(Protocol):
    """The store of one job's checkpoints."""

    def folder(self, number: int) -> str:
        """Return the URL of the folder into which slots write their files."""

    def publish(self, metadata: Metadata) -> str:
        """Make a checkpoint complete in one step and return its URL."""

    def drop(self, dropped: list[Metadata], kept: list[Metadata]) -> None:
        """Delete checkpoints and the files that only they need."""

    def discard(self, files: list[str]) -> None:
        """Delete files of a checkpoint that never became complete."""

    def retract(self, number: int) -> bool:
        """Make sure that a checkpoint whose publication failed does not exist. Return False if that is unknown.

        This is only for a checkpoint that is not the newest, since a job may have continued from the newest one.
        """

    def tidy(self, kept: list[Metadata], since: int = 0, confirm: Callable[[], None] = lambda: None) -> None:
        """Delete the files that no kept checkpoint needs, of the checkpoints from number `since` on.

        `confirm` is called after the files are listed. It raises if they must not be deleted.
        """

    def delete_if_empty(self) -> None:
        """Delete the folder of the job if it is empty."""


class FolderStore:
    """A store of checkpoints in `<directory>/<job id>/chk-<n>/`."""

    def __init__(self, directory: str, job_id: str) -> None:
        self._storage = Storage(f"{directory.rstrip('/')}/{job_id}")

    def url(self) -> str:
        """Return the URL of the job's folder."""
        return self._storage.url()

    def folder(self, number: int) -> str:
        return self._storage.url(protocol.folder_of(number))

    def publish(self, metadata: Metadata) -> str:
        folder = self.folder(metadata.number)
        self._storage.create(f"{protocol.folder_of(metadata.number)}/{FILE}", encode(metadata, folder))
        return folder

    # --- reading ---
    def complete(self) -> list[Metadata]:
        """Return all complete checkpoints, oldest first. Leave out those that a former owner deletes at this moment."""
        found = []
        for number in protocol.complete(self._storage.names()):
            with suppress(FileNotFoundError):
                found.append(self.read(number))
        return found

    def read(self, number: int) -> Metadata:
        """Return the metadata of a complete checkpoint."""
        return decode(self._storage.read(f"{protocol.folder_of(number)}/{FILE}"), self.folder(number))

    def next_number(self) -> int:
        """Return a number that no checkpoint in this folder has had."""
        return protocol.next_number(self._storage.names())

    # --- deleting ---
    def drop(self, dropped: list[Metadata], kept: list[Metadata]) -> None:
        """Delete checkpoints, metadata first, so that a checkpoint exists completely or not at all."""
        for metadata in dropped:
            self._delete(f"{protocol.folder_of(metadata.number)}/{FILE}")
        files = sorted(protocol.exclusive_files(dropped, kept))
        self.discard(files)
        folders = {posixpath.dirname(file) for file in files} | {self.folder(metadata.number) for metadata in dropped}
        for folder in folders:
            self._storage.delete_empty_folder(posixpath.basename(folder))

    def discard(self, files: list[str]) -> None:
        root = self._storage.url() + "/"
        for url in files:
            if url.startswith(root):
                self._delete(url.removeprefix(root))

    def retract(self, number: int) -> bool:
        return _retract(self._storage, f"{protocol.folder_of(number)}/{FILE}")

    def tidy(self, kept: list[Metadata], since: int = 0, confirm: Callable[[], None] = lambda: None) -> None:
        root = self._storage.url()
        needed = {m.number: {posixpath.relpath(url, root) for url in m.files()} for m in kept}
        try:
            unneeded = protocol.leftovers(self._storage.names(), needed, since)
        except StorageError as error:
            log.warning("%s; its files are not deleted", error)
            return
        confirm()
        for name in unneeded:
            self._delete(name)
        for folder in {posixpath.dirname(name) for name in unneeded}:
            self._storage.delete_empty_folder(folder)

    def delete_if_empty(self) -> None:
        self._storage.delete_empty_folder("")

    def _delete(self, name: str) -> None:
        """Delete a file. If that fails, log a warning and continue."""
        try:
            self._storage.delete(name)
        except StorageError as error:
            log.warning("%s; it is not deleted", error)


class MemoryStore:
    """A store of checkpoints that live and die with the driver. Slots send their state along with their reports."""

    def __init__(self, job_id: str) -> None:
        self._job_id = job_id

    def folder(self, number: int) -> str:
        return f"driver://{self._job_id}/{protocol.folder_of(number)}"

    def publish(self, metadata: Metadata) -> str:
        return self.folder(metadata.number)

    def drop(self, dropped: list[Metadata], kept: list[Metadata]) -> None:
        """Do nothing: the coordinator holds the only references."""

    def discard(self, files: list[str]) -> None:
        """Do nothing: a store in memory has no files."""

    def retract(self, number: int) -> bool:
        return True

    def tidy(self, kept: list[Metadata], since: int = 0, confirm: Callable[[], None] = lambda: None) -> None:
        """Do nothing: no files are left behind."""

    def delete_if_empty(self) -> None:
        """Do nothing: a store in memory has no folder."""


def read_snapshot(path: str) -> Metadata:
    """Return the metadata of a checkpoint or savepoint, given its folder or its metadata file."""
    folder = path.rstrip("/")
    if folder.endswith(f"/{FILE}"):
        folder = folder[: -len(FILE) - 1]
    storage = Storage(folder)
    try:
        data = storage.read(FILE)
    except FileNotFoundError:
        raise NoSuchSnapshot(_nothing_at(path, storage)) from None
    except StorageError as error:
        if isinstance(error.__cause__, NotADirectoryError):
            raise NoSuchSnapshot(f"there is no checkpoint or savepoint at '{path}': this is not a folder") from None
        raise
    return decode(data, storage.url())


def _nothing_at(path: str, storage: Storage) -> str:
    complete_ones = protocol.complete(storage.names())
    hint = f"; complete checkpoints below it: {', '.join(map(protocol.folder_of, complete_ones))}"
    return f"there is no checkpoint or savepoint at '{path}': no file '{FILE}'" + (hint if complete_ones else "")


def write_savepoint(metadata: Metadata, folder: str) -> None:
    """Complete a savepoint whose files have been written."""
    storage = Storage(folder)
    storage.create(FILE, encode(metadata, storage.url()))


def discard_savepoint(folder: str, files: list[str], uncertain: bool) -> None:
    """Delete the files of a failed savepoint. If it may be published, make sure first that it is not."""
    try:
        storage = Storage(folder)
        if not uncertain or _retract(storage, FILE):
            for url in files:
                storage.delete(posixpath.basename(url))
            storage.delete_empty_folder("")
    except StorageError as error:
        log.warning("%s; it is not deleted", error)


def _retract(storage: Storage, name: str) -> bool:
    try:
        storage.delete(name)
        return not storage.exists(name)
    except StorageError as error:
        log.warning("%s; it is not deleted", error)
        return False


def dispose_savepoint(path: str) -> None:
    """Delete a savepoint."""
    if not read_snapshot(path).savepoint:
        raise NoSuchSnapshot(f"'{path}' is a checkpoint, which belongs to its job; only savepoints can be disposed of")
    delete_snapshot(path)


def delete_snapshot(path: str) -> None:
    """Delete a checkpoint or savepoint: its metadata first, then the files that it names."""
    metadata = read_snapshot(path)
    storage = Storage(path.rstrip("/").removesuffix(f"/{FILE}"))
    storage.delete(FILE)
    root = storage.url()
    for url in sorted(metadata.files()):
        storage.delete(posixpath.relpath(url, root))
    storage.delete_empty_folder("")
