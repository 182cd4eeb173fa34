"""Files on any fsspec URL: local disk, S3, GCS, Azure, HDFS, … are one code path.

Two promises matter: a file that `create` made is whole or not there, and what `write` returned from is durable as far
as the file system allows. Calls that fail for a passing reason are tried again a few times.
"""

from __future__ import annotations

import errno
import os
import posixpath
import time
import uuid
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Any, BinaryIO, TypeVar, cast

import fsspec

from penstock.errors import StorageError

ATTEMPTS = 3
_WAITS = (0.02, 0.1)
_LASTING = {errno.ENOSPC, errno.EDQUOT, errno.EACCES, errno.EPERM, errno.EROFS, errno.ENAMETOOLONG, errno.ENOTDIR}
"""Errors that another try will not heal."""
_WHOLE_PUTS = {"s3", "s3a", "gs", "gcs", "abfs", "abfss", "az", "adl", "memory"}
"""File systems whose files appear whole, so that no rename is needed."""
T = TypeVar("T")


class Storage:
    """A folder on some file system. Names are relative to it, with '/' between parts."""

    def __init__(self, url: str) -> None:
        try:
            self.fs, self.root = fsspec.core.url_to_fs(url)
        except (ValueError, ImportError, OSError) as error:
            raise StorageError(f"cannot use '{url}' as a storage: {error}") from None
        self.root = self.root.rstrip("/")
        protocol = self.fs.protocol
        self._protocols = {protocol} if isinstance(protocol, str) else set(protocol)
        self._local = bool(self._protocols & {"file", "local"})

    def path(self, name: str) -> str:
        """The path of a name as the file system knows it."""
        return posixpath.normpath(posixpath.join(self.root, name)) if name else self.root

    def url(self, name: str = "") -> str:
        """The full URL of a name."""
        return str(self.fs.unstrip_protocol(self.path(name)))

    # --- writing ---
    def write(self, name: str, pieces: Iterable[bytes]) -> int:
        """Write a file piece by piece and return its size. Pieces from an iterator cannot be written twice."""
        once = not isinstance(pieces, (list, tuple))
        return self._tried("write", name, lambda: self._write(self.path(name), pieces), 1 if once else ATTEMPTS)

    def create(self, name: str, data: bytes) -> None:
        """Make a file that is whole or not there; one that exists already is an error, never overwritten."""
        path = self.path(name)
        if self._local:
            self._tried("create", name, lambda: self._create_local(path, data))
            return
        if self.exists(name):
            raise StorageError(f"'{self.url(name)}' exists already")
        if self._protocols & _WHOLE_PUTS:
            self._tried("create", name, lambda: self._write(path, [data]))
        else:
            self._tried("create", name, lambda: self._create_by_rename(path, data))

    def _write(self, path: str, pieces: Iterable[bytes]) -> int:
        self.fs.makedirs(posixpath.dirname(path), exist_ok=True)
        size = 0
        with self.fs.open(path, "wb") as file:
            for piece in pieces:
                size += file.write(piece)
            if self._local:
                file.flush()
                os.fsync(file.fileno())
        return size

    def _create_local(self, path: str, data: bytes) -> None:
        draft = f"{path}.{uuid.uuid4().hex}.draft"
        self._write(draft, [data])
        try:
            os.link(draft, path)
            _sync_folder(os.path.dirname(path))
        except FileExistsError:
            raise StorageError(f"'{path}' exists already") from None
        finally:
            os.unlink(draft)

    def _create_by_rename(self, path: str, data: bytes) -> None:
        draft = f"{path}.{uuid.uuid4().hex}.draft"
        self._write(draft, [data])
        self.fs.mv(draft, path)

    # --- reading ---
    def read(self, name: str) -> bytes:
        """The whole file."""
        return cast(bytes, self._tried("read", name, lambda: self.fs.cat_file(self.path(name))))

    def open(self, name: str) -> BinaryIO:
        """A file to seek and read in."""
        return cast(BinaryIO, self._tried("open", name, lambda: self.fs.open(self.path(name), "rb")))

    def exists(self, name: str) -> bool:
        return bool(self._tried("look for", name, lambda: self.fs.exists(self.path(name))))

    def names(self) -> list[str]:
        """Every file below the folder; none if there is no such folder."""
        self.fs.invalidate_cache()
        found = self._tried("list", "", lambda: self.fs.find(self.root) if self.fs.exists(self.root) else [])
        return sorted(posixpath.relpath(path, self.root) for path in found)

    # --- deleting ---
    def delete(self, name: str) -> None:
        """Remove a file; one that is not there is fine."""
        with suppress(FileNotFoundError):
            self._tried("delete", name, lambda: self.fs.rm_file(self.path(name)))

    def delete_empty_folder(self, name: str) -> None:
        """Remove a folder if it holds nothing; where folders are no things of their own there is nothing to do."""
        with suppress(OSError, NotImplementedError):
            self.fs.rmdir(self.path(name))

    def _tried(self, verb: str, name: str, action: Callable[[], T], attempts: int = ATTEMPTS) -> T:
        for attempt in range(attempts):
            try:
                return action()
            except FileNotFoundError:
                raise
            except OSError as error:
                if attempt + 1 >= attempts or error.errno in _LASTING:
                    raise StorageError(f"cannot {verb} '{self.url(name)}': {error}") from error
                time.sleep(_WAITS[attempt])
        raise AssertionError("a storage call is tried at least once")


def _sync_folder(path: str) -> None:
    """Make a new name in a folder durable."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def split_url(url: str) -> tuple[str, str]:
    """The folder and the last part of a URL or path."""
    folder, _, name = url.rstrip("/").rpartition("/")
    return folder, name


def describe(error: Any) -> str:
    """An error in one line."""
    return f"{type(error).__name__}: {error}"
