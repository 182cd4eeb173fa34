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

from penstock.errors import AlreadyThere, StorageError

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
        self._make_folder(name)
        return self._tried("write", name, lambda: self._write(self.path(name), pieces), 1 if once else ATTEMPTS)

    def create(self, name: str, data: bytes) -> None:
        """Make a file that is whole or not there; one that exists already is an error, never overwritten."""
        if not self._local and self.exists(name):
            raise _exists(self.url(name))
        self._make_folder(name)
        if self._protocols & _WHOLE_PUTS:
            self._tried("create", name, lambda: self._put(name, data))
            return
        draft = f"{name}.{uuid.uuid4().hex}.draft"
        try:
            self._tried("create", name, lambda: self._write(self.path(draft), [data]))
            self._tried("create", name, lambda: self._publish(name, draft))
        finally:
            with suppress(StorageError):
                self.delete(draft)

    def _put(self, name: str, data: bytes) -> None:
        """In one go, and only if it is not there, on file systems that can say so."""
        path = self.path(name)
        try:
            self.fs.pipe_file(path, data, mode="create")
        except FileExistsError:
            if self.fs.cat_file(path) != data:
                raise _exists(self.url(name)) from None
        except (TypeError, ValueError, NotImplementedError):
            # A file system that knows no mode "create", or no such mode in this version, says so in one of these ways.
            # It still puts files whole; that nobody else has made this one was looked for before.
            self._write(path, [data])

    def _publish(self, name: str, draft: str) -> None:
        """Give a finished draft its name. What a try that seemed to fail has done already is fine."""
        path, source = self.path(name), self.path(draft)
        if self._local:
            try:
                os.link(source, path)
            except FileExistsError:
                if not os.path.samefile(source, path):
                    raise _exists(self.url(name)) from None
            _sync_folder(os.path.dirname(path))
        elif not self.fs.exists(path):
            self.fs.mv(source, path)
        elif self.fs.exists(source):
            raise _exists(self.url(name))

    def _make_folder(self, name: str) -> None:
        folder = posixpath.dirname(self.path(name))
        self._tried("write", name, lambda: self.fs.makedirs(folder, exist_ok=True))

    def _write(self, path: str, pieces: Iterable[bytes]) -> int:
        size = 0
        with self.fs.open(path, "wb") as file:
            for piece in pieces:
                size += file.write(piece)
            if self._local:
                file.flush()
                os.fsync(file.fileno())
        return size

    # --- reading ---
    def read(self, name: str) -> bytes:
        """The whole file."""
        return cast(bytes, self._tried("read", name, lambda: self.fs.cat_file(self.path(name)), missing=True))

    def open(self, name: str) -> BinaryIO:
        """A file to seek and read in."""
        return cast(BinaryIO, self._tried("open", name, lambda: self.fs.open(self.path(name), "rb"), missing=True))

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
            self._tried("delete", name, lambda: self.fs.rm_file(self.path(name)), missing=True)

    def delete_empty_folder(self, name: str) -> None:
        """Remove a folder if it holds nothing; where folders are no things of their own there is nothing to do."""
        # OSError: it holds something, or is gone. NotImplementedError: fsspec's answer where there are no folders.
        with suppress(OSError, NotImplementedError):
            self.fs.rmdir(self.path(name))

    def _tried(
        self, verb: str, name: str, action: Callable[[], T], attempts: int = ATTEMPTS, *, missing: bool = False
    ) -> T:
        """Try a few times. With `missing`, a file that is not there is FileNotFoundError, for the caller to judge."""
        for attempt in range(attempts):
            try:
                return action()
            except OSError as error:
                gone = isinstance(error, FileNotFoundError)
                if gone and missing:
                    raise
                lasting = gone or error.errno in _LASTING
                if attempt + 1 >= attempts or lasting:
                    raise _refused(f"cannot {verb} '{self.url(name)}': {error}", lasting) from error
                time.sleep(_WAITS[attempt])
        raise AssertionError("a storage call is tried at least once")


def _exists(url: str) -> AlreadyThere:
    return AlreadyThere(f"'{url}' exists already")


def _refused(message: str, lasting: bool) -> StorageError:
    refused = StorageError(message)
    refused.lasting = lasting
    return refused


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
