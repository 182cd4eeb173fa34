"""Files on any fsspec URL, as the file connectors see them: passing errors are tried again, lasting ones get names."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import os
import posixpath
import re
import zlib
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from typing import IO, Any, TypeVar, cast

import fsspec
import zstandard
from fsspec.implementations.local import LocalFileSystem
from fsspec.implementations.memory import MemoryFileSystem

from penstock.datastream.connectors.retrying import Retries
from penstock.errors import AccessDenied, ConnectorError, NotFound

T = TypeVar("T")
RETRIES = Retries()
HIDDEN = (".", "_")
"""What the names of files begin with that are not for readers."""
COPY_BYTES = 4 << 20
LISTINGS = 20
_MAGIC = re.compile(r"[*?\[]")


class Files:
    """The file system of a URL. Paths are as it knows them; `url` makes them whole again."""

    def __init__(self, url: str, retries: Retries = RETRIES) -> None:
        try:
            self.fs, self.root = fsspec.core.url_to_fs(url)
        except (ValueError, ImportError, OSError) as error:
            raise ConnectorError(f"cannot use '{url}' for files: {error}") from None
        self.root = self.root.rstrip("/") or "/"
        self._prefix = url.rstrip("/").removesuffix(self.root) if url.rstrip("/").endswith(self.root) else None
        self._retries = retries
        self.local = isinstance(self.fs, LocalFileSystem)
        self.shows_flushed = isinstance(self.fs, (LocalFileSystem, MemoryFileSystem))
        """Whether others see what was flushed into a file that is still open."""

    def url(self, path: str) -> str:
        """The URL of a path. What the file system cut off in front, such as a host, comes back."""
        if self.local or self._prefix is None:
            return str(self.fs.unstrip_protocol(path))
        return self._prefix + path

    def path(self, url: str) -> str:
        """The path of a URL on the same file system."""
        return str(self.fs._strip_protocol(url))

    # --- finding ---
    def listed(self, folder: str) -> list[str]:
        """Every file below a folder, hidden ones too; none if there is no such folder."""

        def find() -> list[str]:
            return list(self.fs.find(folder)) if self.fs.isdir(folder) else []

        return self._listing(folder, find)

    def visible(self) -> dict[str, int | None]:
        """The files at the root with their sizes: one file, all below a folder, or those that match a pattern."""

        def find() -> dict[str, int | None]:
            if self.fs.isfile(self.root):
                return {self.root: self.fs.size(self.root)}
            pattern = _MAGIC.search(self.root)
            if pattern is None or self.fs.isdir(self.root):
                return dict(self._below(self.root))
            found: dict[str, int | None] = {}
            named_folder = self.root[: pattern.start()].rpartition("/")[0]
            for path, info in self.fs.glob(self.root, detail=True).items():
                if not _is_hidden(path.removeprefix(f"{named_folder}/")):
                    found.update(self._below(path) if info["type"] == "directory" else {path: info.get("size")})
            return found

        return self._listing(self.root, find)

    def _listing(self, path: str, find: Callable[[], T]) -> T:
        """List, again if a file was gone before it could be looked at: others work in the same folder."""

        def listed() -> T:
            for _ in range(LISTINGS):
                self.fs.invalidate_cache()
                with suppress(FileNotFoundError):
                    return find()
            raise OSError(f"its files went away while they were listed, {LISTINGS} times")

        return self.tried("listing", path, listed)

    def _below(self, folder: str) -> Iterator[tuple[str, int | None]]:
        if self.fs.isdir(folder):
            for path, info in self.fs.find(folder, detail=True).items():
                if not _is_hidden(posixpath.relpath(path, folder)):
                    yield path, info.get("size")

    def size(self, path: str) -> int | None:
        """The size of a file; None if there is none."""

        def look() -> int | None:
            self.fs.invalidate_cache()
            try:
                return int(self.fs.size(path))
            except FileNotFoundError:
                return None

        return self.tried("looking for", path, look)

    # --- reading ---
    def open_to_read(self, path: str, closing: ExitStack) -> IO[bytes]:
        """Open a file until `closing` is closed, decompressed if its name says that it is compressed."""
        raw = self.open_raw(path, closing)
        decompress = COMPRESSIONS.get(posixpath.splitext(path)[1])
        return raw if decompress is None else cast(IO[bytes], closing.enter_context(decompress(raw)))

    def open_raw(self, path: str, closing: ExitStack) -> IO[bytes]:
        """Open a file until `closing` is closed."""
        return closing.enter_context(self.tried("opening", path, lambda: self._open_raw(path)))

    def _open_raw(self, path: str) -> IO[bytes]:
        if isinstance(self.fs, MemoryFileSystem):
            # Its files are one object with one place to read from, whoever opens them.
            return io.BytesIO(self.fs.cat_file(path))
        return cast(IO[bytes], self.fs.open(path, "rb"))

    def head(self, path: str, length: int) -> Iterator[bytes]:
        """The first bytes of a file, in pieces."""
        for start in range(0, length, COPY_BYTES):
            end = min(start + COPY_BYTES, length)
            piece = self.tried("reading", path, lambda s=start, e=end: self.fs.cat_file(path, start=s, end=e))  # type: ignore[misc]
            if len(piece) != end - start:
                raise ConnectorError(f"{self.url(path)} has {start + len(piece)} bytes, and {length} were written")
            yield piece

    # --- writing ---
    def create(self, path: str) -> Any:
        """Open a new file to write, in a folder that is made if need be."""

        def make() -> Any:
            self.fs.makedirs(posixpath.dirname(path), exist_ok=True)
            return self.fs.open(path, "wb")

        return self.tried("making", path, make)

    def sync(self, file: Any) -> None:
        """Push out what was written into an open file, as far as the file system allows."""
        file.flush()
        if self.local:
            os.fsync(file.fileno())

    def sync_folder(self, folder: str) -> None:
        """Make the names of the files in a folder durable, as far as the file system allows."""
        if self.local:
            with suppress(FileNotFoundError):
                descriptor = os.open(folder, os.O_RDONLY)
                try:
                    os.fsync(descriptor)
                finally:
                    os.close(descriptor)

    def rename(self, path: str, new: str) -> None:
        """Give a file another name; a file that has that name is replaced."""

        def move() -> None:
            try:
                move_now()
            except FileNotFoundError:
                if self.fs.exists(path) or not self.fs.exists(new):  # otherwise a try that seemed to fail has done it
                    raise

        def move_now() -> None:
            if self.local:
                os.replace(path, new)
            elif _MAGIC.search(path) or _MAGIC.search(new):
                # fsspec takes the names in `mv` for patterns, but not in these.
                self.fs.cp_file(path, new)
                self.fs.rm_file(path)
            else:
                self.fs.mv(path, new)

        self.tried("renaming", path, move)

    def delete(self, path: str) -> None:
        """Remove a file; one that is not there is fine."""

        def remove() -> None:
            with suppress(FileNotFoundError):
                self.fs.rm_file(path)

        self.tried("deleting", path, remove)

    def tried(self, verb: str, path: str, action: Callable[[], T]) -> T:
        """Do something to a file, again if it fails for a passing reason."""
        try:
            return self._retries.call(action, f"{verb} {self.url(path)}", is_transient)
        except OSError as error:
            raise named(error, self.url(path)) from error


def is_transient(error: Exception) -> bool:
    """Whether another try may help."""
    lasting = (FileNotFoundError, FileExistsError, PermissionError, IsADirectoryError, NotADirectoryError)
    return isinstance(error, OSError) and not isinstance(error, lasting) and not is_damage(error)


def named(error: OSError, url: str) -> ConnectorError:
    """An error of a file system as one of ours."""
    if isinstance(error, FileNotFoundError):
        return NotFound(f"there is no file {url}, or no longer")
    if isinstance(error, PermissionError):
        return AccessDenied(f"no access to {url}: {error}")
    return ConnectorError(f"{url}: {error}")


def _is_hidden(relative: str) -> bool:
    return any(part.startswith(HIDDEN) for part in relative.split("/"))


# --- compressed files ---
class _Zstandard(io.RawIOBase):
    """A zstd file of any number of frames. The library's own reader cannot seek, and takes a torn file for whole."""

    def __init__(self, raw: IO[bytes]) -> None:
        self._raw = raw
        self._rewind()

    def _rewind(self) -> None:
        self._raw.seek(0)
        self._at = 0
        self._ready = memoryview(b"")
        self._frame: Any = None

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._at

    def readinto(self, buffer: Any) -> int:
        while not self._ready:
            if not (block := self._raw.read(_ZSTD_BLOCK)):
                if self._frame is not None:
                    raise EOFError("its last frame is not whole")
                return 0
            self._ready = memoryview(b"".join(self._decompressed(block)))
        count = min(len(buffer), len(self._ready))
        buffer[:count] = self._ready[:count]
        self._ready = self._ready[count:]
        self._at += count
        return count

    def _decompressed(self, block: bytes) -> Iterator[bytes]:
        while block:
            self._frame = self._frame or zstandard.ZstdDecompressor().decompressobj()
            yield self._frame.decompress(block)
            block = self._frame.unused_data
            if self._frame.eof:
                self._frame = None

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        if whence == io.SEEK_END:
            raise io.UnsupportedOperation("a compressed file is read forward")
        target = offset + (self._at if whence == io.SEEK_CUR else 0)
        if target < self._at:
            self._rewind()
        while self._at < target and self.read(min(target - self._at, 1 << 20)):
            pass
        return self._at


_ZSTD_BLOCK = 32 << 10
COMPRESSIONS: dict[str, Callable[[IO[bytes]], Any]] = {
    ".gz": lambda raw: gzip.GzipFile(fileobj=raw, mode="rb"),
    ".bz2": lambda raw: bz2.BZ2File(raw, "rb"),
    ".xz": lambda raw: lzma.LZMAFile(raw, "rb"),  # noqa: SIM115 - its reader closes it
    ".zst": lambda raw: io.BufferedReader(_Zstandard(raw)),
}
"""By the end of a file's name: how it is decompressed."""


def is_damage(error: BaseException) -> bool:
    """Whether a compressed file is not what it should be. For bz2, Python has no error of its own."""
    damage = (gzip.BadGzipFile, zlib.error, EOFError, lzma.LZMAError, zstandard.ZstdError)
    return isinstance(error, damage) or (isinstance(error, OSError) and error.args == ("Invalid data stream",))
