"""Files on any fsspec URL: local disk, S3, GCS, Azure, HDFS, … are one code path.

Three promises matter. A file that `create` made exists completely or not at all, and never replaces another file of
that name. What `write` returned from is durable as far as the file system allows. A call that fails for a temporary
reason is retried for some seconds. What each kind of file system adds to that is in `docs/storage.md`.
"""

from __future__ import annotations

import errno
import io
import logging
import os
import posixpath
import re
import threading
import time
import uuid
from collections.abc import Callable, Iterable, Iterator
from contextlib import nullcontext, suppress
from functools import partial
from typing import Any, BinaryIO, TypeVar, cast

import fsspec
from fsspec.implementations.memory import MemoryFileSystem
from fsspec.spec import AbstractFileSystem

from penstock.base.hdfs import file_system, is_hdfs
from penstock.errors import AlreadyThere, PenstockError, StorageError

ATTEMPTS = 6
_WAITS = (0.02, 0.1, 0.5, 2.0, 4.0)
_PATIENCE = 20.0
"""Time, in seconds, after which a failing call is not repeated. By then the client has made its own retries."""
_LASTING = (FileNotFoundError, FileExistsError, PermissionError, IsADirectoryError, NotADirectoryError)
_LASTING_CODES = {
    *(errno.ENOSPC, errno.EDQUOT, errno.EACCES, errno.EPERM, errno.EROFS),
    *(errno.ENAMETOOLONG, errno.ENOTDIR, errno.EINVAL),
}
"""Errors that do not go away when the call is repeated."""
_CLIENTS = {"botocore", "aiobotocore", "aiohttp", "gcsfs", "google", "azure", "requests", "urllib3", "paramiko"}
"""Packages with which fsspec talks to a storage. Some of their errors are not OSError."""
_OBJECT_STORES = {"s3", "s3a", "gs", "gcs", "abfs", "abfss", "az"}
"""Protocols of object stores. They have no folders; a file appears whole, and on request only if it is new."""
_LISTINGS = 20
PATTERN = re.compile(r"[*?\[]")
_in_memory = threading.Lock()
"""Guards the memory file system of fsspec, which checks for a file and creates it in two steps."""
log = logging.getLogger("penstock.storage")
T = TypeVar("T")


class Storage:
    """A folder on some file system. Names are relative to it, with '/' between parts; '' is the folder itself."""

    def __init__(self, url: str) -> None:
        # No listing is cached, because files of other processes must be visible at once.
        options = {"use_listings_cache": False} if url.partition("://")[0] in _OBJECT_STORES else {}
        try:
            self.fs, root = file_system(url) if is_hdfs(url) else fsspec.core.url_to_fs(url, **options)
        except (ValueError, ImportError, OSError) as error:
            raise self._make_error(f"cannot use '{url}' as a storage: {error}", True) from None
        self.root = root.rstrip("/") or root[:1]
        self._url = url.rstrip("/")
        protocol = self.fs.protocol
        self._protocols = {protocol} if isinstance(protocol, str) else set(protocol)
        self.local = bool(self._protocols & {"file", "local"})
        self.in_memory = isinstance(self.fs, MemoryFileSystem)
        self._stores_objects = bool(self._protocols & _OBJECT_STORES)
        self._renames_by_order = is_hdfs(url)
        self._puts_whole = self._stores_objects or "memory" in self._protocols
        self.shows_flushed = self.local or self.in_memory
        """True if other processes see data that was flushed into a file that is still open."""

    # --- names ---
    def path(self, name: str) -> str:
        """Return the path of a name on the file system."""
        return posixpath.normpath(posixpath.join(self.root, name)) if name else self.root

    def url(self, name: str = "") -> str:
        """Return the full URL of a name. It keeps parts that the file system cuts off, such as a host."""
        if self.local or "://" not in self._url:
            return str(self.fs.unstrip_protocol(self.path(name)))
        base, name = self._url, posixpath.normpath(name)
        while name.startswith(".."):
            base, name = base.rpartition("/")[0], name[3:] or "."
        return base if name == "." else f"{base}/{name}"

    def name(self, url: str) -> str:
        """Return the name of a file on the same file system, given its URL."""
        return self._name(str(self.fs._strip_protocol(url)))

    def _name(self, path: str) -> str:
        return posixpath.relpath(path, self.root)

    # --- writing ---
    def write(self, name: str, pieces: Iterable[bytes]) -> int:
        """Write a file piece by piece and return its size. Pieces from an iterator cannot be written twice."""
        once = not isinstance(pieces, (list, tuple))
        self._make_folder(name)
        return self._retry("write", name, lambda: self._write(self.path(name), pieces), 1 if once else ATTEMPTS)

    def open_new(self, name: str) -> BinaryIO:
        """Open a file for writing. Its folder is created if necessary, and an existing file is replaced."""
        self._make_folder(name)
        return cast(BinaryIO, self._retry("write", name, lambda: self.fs.open(self.path(name), "wb")))

    def sync(self, file: Any) -> None:
        """Make the data written into an open file durable, as far as the file system allows."""
        file.flush()
        if self.local:
            os.fsync(file.fileno())
        elif hasattr(file, "sync"):
            file.sync()

    def sync_folder(self, name: str = "") -> None:
        """Make the names of the files in a folder durable, as far as the file system allows."""
        if self.local:
            with suppress(FileNotFoundError):
                _sync_folder(self.path(name))

    def _make_folder(self, name: str) -> None:
        if not self._stores_objects:
            folder = posixpath.dirname(self.path(name))
            self._retry("write", name, lambda: self.fs.makedirs(folder, exist_ok=True))

    def _write(self, path: str, pieces: Iterable[bytes]) -> int:
        size = 0
        with self.fs.open(path, "wb") as file:
            for piece in pieces:
                size += file.write(piece)
            if self.local:
                self.sync(file)
        return size

    # --- creating ---
    def create(self, name: str, data: bytes) -> None:
        """Create a file that is either complete or absent. Raise AlreadyThere if another process has created it.

        A file with the same bytes may come from an earlier attempt of this call whose answer was lost, and
        counts as created by it. A caller that must be certain writes unique bytes. If a storage returns only a part
        of such a file, it is read again. A StorageError says that it stayed unclear who has created the file.
        """
        if not self.local and self.exists(name):
            raise self._exists(name)
        self._place(name, data)

    def is_exclusive(self) -> bool:
        """Test with a temporary file whether one of two processes that create the same file is refused."""
        name = f"{uuid.uuid4().hex}.trial"
        try:
            self._place(name, b"first")
            self._place(name, b"second", blindly=True)
            return False
        except AlreadyThere:
            return True
        finally:
            with suppress(StorageError):
                self.delete(name)

    def _place(self, name: str, data: bytes, blindly: bool = False) -> None:
        self._make_folder(name)
        if self._puts_whole:
            self._retry("create", name, lambda: self._put(name, data))
            return
        draft = f"{name}.{uuid.uuid4().hex}.draft"
        publish = self._link if self.local else self._move_blindly if blindly else partial(self._move, data)
        try:
            self._retry("create", name, lambda: self._write(self.path(draft), [data]))
            self._retry("create", name, lambda: publish(draft, name))
        finally:
            with suppress(PenstockError):
                self.delete(draft)

    def _put(self, name: str, data: bytes) -> None:
        """Create a file in one step. The file system itself refuses this if the file exists."""
        path = self.path(name)
        try:
            with _in_memory if self.in_memory else nullcontext():
                self.fs.pipe_file(path, data, mode="create")
        except (TypeError, NotImplementedError) as error:
            raise self._make_error(
                f"cannot create '{self.url(name)}': {type(self.fs).__module__} cannot create a file on the "
                f"condition that it does not exist. Install version 2024.12 or newer ({error})",
                True,
            ) from error
        except OSError as error:
            if not _is_refusal(error):
                raise
            self._compare(name, data)

    def _compare(self, name: str, data: bytes) -> None:
        try:
            found = self.fs.cat_file(self.path(name))
        except FileNotFoundError:
            raise OSError("somebody else has made it, and deleted it again") from None
        if found == data:
            return
        if data.startswith(found):
            raise OSError("only a part of it was read, so that nobody can tell who has made it")
        raise self._exists(name) from None

    def _link(self, draft: str, name: str) -> None:
        source, path = self.path(draft), self.path(name)
        try:
            os.link(source, path)
        except FileExistsError:
            if not os.path.samefile(source, path):  # otherwise an attempt that seemed to fail has succeeded
                raise self._exists(name) from None
        except OSError as error:
            if error.errno in (errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS):
                message = f"cannot create '{self.url(name)}': the file system does not support hard links ({error})"
                raise self._make_error(message, True) from error
            raise
        _sync_folder(os.path.dirname(path))

    def _move(self, data: bytes, draft: str, name: str) -> None:
        if not self.fs.exists(self.path(name)):
            self._move_blindly(draft, name)
        elif self.fs.exists(self.path(draft)):  # otherwise an attempt that seemed to fail has succeeded
            self._compare(name, data)  # or has copied a part of the file

    def _move_blindly(self, draft: str, name: str) -> None:
        source = self.path(draft)
        try:
            self._rename_now(source, self.path(name), overwrite=False)
        except FileExistsError:
            raise self._exists(name) from None
        # Some servers refuse a rename without an error.
        if self.fs.exists(source):
            raise self._exists(name)

    def _exists(self, name: str) -> AlreadyThere:
        return AlreadyThere(f"'{self.url(name)}' exists already")

    # --- renaming ---
    def rename(self, name: str, new: str) -> None:
        """Rename a file. An existing file of the new name is replaced. In an object store the file is copied."""
        source, target = self.path(name), self.path(new)

        def move() -> None:
            try:
                self._rename_now(source, target)
            except FileNotFoundError:
                if self.fs.exists(source) or not self.fs.exists(target):  # otherwise an earlier attempt has succeeded
                    raise

        self._retry("rename", name, move, missing=True)

    def _rename_now(self, source: str, target: str, overwrite: bool = True) -> None:
        if self.local:
            os.replace(source, target)
        elif self._renames_by_order:
            self.fs.mv(source, target, overwrite=overwrite)
        elif self._stores_objects or PATTERN.search(source + target):
            # fsspec treats names in `mv` as patterns, but not names in these calls.
            self.fs.cp_file(source, target)
            self.fs.rm_file(source)
        else:
            self.fs.mv(source, target)

    # --- reading ---
    def read(self, name: str, start: int | None = None, end: int | None = None) -> bytes:
        """Return the whole file, or a range of it. Raise FileNotFoundError if there is no such file."""
        path = self.path(name)
        read = self._retry("read", name, lambda: self.fs.cat_file(path, start=start, end=end), missing=True)
        return cast(bytes, read)

    def open(self, name: str) -> BinaryIO:
        """Open a file for seeking and reading. Raise FileNotFoundError if there is no such file."""
        return self._retry("open", name, lambda: self._open(self.path(name)), missing=True)

    def _open(self, path: str) -> BinaryIO:
        if self.in_memory:
            # Each of its files is one object with one reading position, however often it is opened.
            return io.BytesIO(self.fs.cat_file(path))
        return cast(BinaryIO, self.fs.open(path, "rb"))

    # --- finding ---
    def exists(self, name: str) -> bool:
        """Return True if a file or folder with this name exists."""
        return bool(self._retry("look for", name, lambda: self.fs.exists(self.path(name))))

    def age(self, name: str) -> float | None:
        """Return the age of a file in seconds, by the clock of the storage alone.

        A temporary file gives the present time. Return None if there is no such file, or if the storage does not report
        times.
        """
        probe = f"{name}.{uuid.uuid4().hex}.probe"
        try:
            self.fs.invalidate_cache()
            written = self.fs.modified(self.path(name))
            self.write(probe, [b"now"])
            return float((self.fs.modified(self.path(probe)) - written).total_seconds())
        except (OSError, NotImplementedError, StorageError):
            return None
        finally:
            with suppress(StorageError):
                self.delete(probe)

    def size(self, name: str) -> int | None:
        """Return the size of a file, or None if there is no such file."""

        def look() -> int | None:
            self.fs.invalidate_cache()
            try:
                return int(self.fs.size(self.path(name)))
            except FileNotFoundError:
                return None

        return self._retry("look for", name, look)

    def names(self) -> list[str]:
        """Return the names of all files below the folder. The result is empty if there is no such folder."""
        return sorted(self.sizes())

    def sizes(self) -> dict[str, int | None]:
        """Return all files below the folder with their sizes, if known.

        The result is empty if there is no such folder.
        """
        found = self._list_again(lambda: self._below(self.root))
        return {self._name(path): size for path, size in found.items()}

    def _list_again(self, find: Callable[[], dict[str, int | None]]) -> dict[str, int | None]:
        """List files, and repeat this if one disappears meanwhile, because others work in the same folder."""

        def find_again() -> dict[str, int | None]:
            for _ in range(_LISTINGS):
                self.fs.invalidate_cache()
                try:
                    return find()
                except FileNotFoundError:
                    if not self.fs.exists(self.root):
                        return {}
            raise OSError(f"files disappeared during the listing, in each of {_LISTINGS} attempts")

        return self._retry("list", "", find_again)

    def _below(self, folder: str) -> dict[str, int | None]:
        """Return the paths and sizes of all files below a folder."""
        # fsspec's own `find` silently leaves out folders that it cannot list.
        own = type(self.fs).find is not AbstractFileSystem.find
        found = self.fs.find(folder, detail=True).values() if own else self._walk(folder)
        return {info["name"]: info.get("size") for info in found if info["type"] != "directory"}

    def _walk(self, folder: str) -> Iterator[dict[str, Any]]:
        folders = [folder]
        while folders:
            path = folders.pop()
            for info in self.fs.ls(path, detail=True):
                yield info
                if info["type"] == "directory" and info["name"].rstrip("/") != path:
                    folders.append(info["name"])

    # --- deleting ---
    def delete(self, name: str) -> None:
        """Remove a file if it exists."""

        def remove() -> None:
            with suppress(FileNotFoundError):
                self.fs.rm_file(self.path(name))

        self._retry("delete", name, remove)

    def delete_empty_folder(self, name: str) -> None:
        """Remove a folder if it is empty. Object stores have no folders, so nothing is done there."""
        if not self._stores_objects:
            # OSError: the folder is not empty, or is gone. NotImplementedError: this file system has no folders.
            with suppress(OSError, NotImplementedError):
                self.fs.rmdir(self.path(name))

    # --- trying again ---
    def _retry(
        self, verb: str, name: str, action: Callable[[], T], attempts: int = ATTEMPTS, *, missing: bool = False
    ) -> T:
        """Try an action a few times. With `missing`, `_missing` decides about the error for a missing file."""
        began = time.monotonic()
        for attempt in range(attempts):
            try:
                return action()
            except Exception as error:
                if not is_of_storage(error):
                    raise
                if missing and isinstance(error, FileNotFoundError):
                    raise self._missing(name, error) from error.__cause__
                last = attempt + 1 >= attempts or time.monotonic() - began > _PATIENCE
                if last or not is_passing(error):
                    raise self._explain(verb, name, error) from error
                log.info("cannot %s '%s'; trying again: %s", verb, self.url(name), error)
                pause(attempt)
        raise AssertionError("a storage call is attempted at least once")

    def _explain(self, verb: str, name: str, error: Exception) -> PenstockError:
        return self._make_error(f"cannot {verb} '{self.url(name)}': {error}", not is_passing(error))

    def _missing(self, name: str, error: FileNotFoundError) -> Exception:
        return error

    def _make_error(self, message: str, lasting: bool) -> PenstockError:
        refused = StorageError(message)
        refused.lasting = lasting
        return refused


def pause(attempt: int) -> None:
    """Wait before the next attempt. The time grows with the number of attempts."""
    time.sleep(_WAITS[attempt])


# --- errors ---
def is_passing(error: BaseException) -> bool:
    """Return True if a storage failed in a way that another attempt may heal."""
    lasting = isinstance(error, _LASTING) or getattr(error, "errno", None) in _LASTING_CODES
    return is_of_storage(error) and not lasting


def is_of_storage(error: BaseException) -> bool:
    """Return True if a file system or its client failed."""
    return isinstance(error, OSError) or type(error).__module__.partition(".")[0] in _CLIENTS


def _is_refusal(error: OSError) -> bool:
    """Return True if a file was not created because it exists.

    s3fs shows this only if the server names the condition.
    """
    response = getattr(error.__cause__, "response", None) or {}
    return isinstance(error, FileExistsError) or response.get("ResponseMetadata", {}).get("HTTPStatusCode") == 412


def _sync_folder(path: str) -> None:
    """Make a new name in a folder durable."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def split_url(url: str) -> tuple[str, str]:
    """Return the folder and the last part of a URL or path."""
    folder, _, name = url.rstrip("/").rpartition("/")
    return folder, name
