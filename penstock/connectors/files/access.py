"""The storage of the file connectors: visible files, decompression, and the classes of errors."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import posixpath
import zlib
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import IO, Any, cast

import zstandard

from penstock.base.storage import PATTERN, Storage, is_of_storage, is_passing
from penstock.connectors.retrying import Retries
from penstock.errors import AccessDenied, ConnectorError, NotFound

RETRIES = Retries()
HIDDEN = (".", "_")
"""Beginnings of the names of files that are hidden from readers."""
COPY_BYTES = 4 << 20


class Files(Storage):
    """A file, a folder or a pattern, given as a path or URL. Names are relative to it; '' is the file itself."""

    def visible(self) -> dict[str, int | None]:
        """Return the files for readers, with their sizes.

        They are one file, all files below a folder, or the files that match a pattern.
        """
        found = self._list_again(self._find)
        return {self._name(path) if path != self.root else "": size for path, size in found.items()}

    def is_folder(self) -> bool:
        """Return True if there is a folder, even an empty one."""
        return bool(self.fs.isdir(self.root))

    def version(self, name: str) -> str | None:
        """Return the time of a file's last change as a text, only for comparison; None if the file is gone."""
        try:
            return str(self.fs.modified(self.path(name)))
        except FileNotFoundError:
            return None

    def _find(self) -> dict[str, int | None]:
        if self.fs.isfile(self.root):
            return {self.root: self.fs.size(self.root)}
        pattern = PATTERN.search(self.root)
        if pattern is None or self.fs.isdir(self.root):
            return self._visible_files(self.root)
        found: dict[str, int | None] = {}
        named_folder = self.root[: pattern.start()].rpartition("/")[0]
        for path, info in self.fs.glob(self.root, detail=True).items():
            if not _is_hidden(path.removeprefix(f"{named_folder}/")):
                found.update(self._visible_files(path) if info["type"] == "directory" else {path: info.get("size")})
        return found

    def _visible_files(self, folder: str) -> dict[str, int | None]:
        below = self._below(folder)
        return {path: size for path, size in below.items() if not _is_hidden(posixpath.relpath(path, folder))}

    def open_to_read(self, closing: ExitStack) -> IO[bytes]:
        """Open the file until `closing` is closed. Decompress it if its name says that it is compressed."""
        raw = closing.enter_context(self.open(""))
        decompress = COMPRESSIONS.get(posixpath.splitext(self.root)[1])
        return raw if decompress is None else cast(IO[bytes], closing.enter_context(decompress(raw)))

    def head(self, length: int) -> Iterator[bytes]:
        """Yield the first bytes of the file, in pieces."""
        for start in range(0, length, COPY_BYTES):
            end = min(start + COPY_BYTES, length)
            piece = self.read("", start, end)
            if len(piece) != end - start:
                raise ConnectorError(
                    f"{self.url()} has {start + len(piece)} bytes instead of the {length} bytes that were written"
                )
            yield piece

    # --- what errors are called ---
    def _explain(self, verb: str, name: str, error: Exception) -> ConnectorError:
        return translate_error(error, self.url(name))

    def _missing(self, name: str, error: FileNotFoundError) -> ConnectorError:
        return translate_error(error, self.url(name))

    def _make_error(self, message: str, lasting: bool) -> ConnectorError:
        return ConnectorError(message)


def is_transient(error: Exception) -> bool:
    """Return True if another attempt may succeed."""
    return is_passing(error) and not is_damage(error)


def translate_error(error: Exception, url: str) -> ConnectorError:
    """Translate an error of a file system into one of ours."""
    if isinstance(error, FileNotFoundError):
        return NotFound(f"the file {url} does not exist, or no longer exists")
    if isinstance(error, PermissionError):
        return AccessDenied(f"no access to {url}: {error}")
    return ConnectorError(f"{url}: {error}")


@contextmanager
def naming(url: str) -> Iterator[None]:
    """Translate the errors of a file that is being written."""
    try:
        yield
    except FileNotFoundError as error:
        raise NotFound(f"{url} cannot be written: {error}") from error
    except Exception as error:
        if is_of_storage(error):
            raise translate_error(error, url) from error
        raise


def _is_hidden(relative: str) -> bool:
    return any(part.startswith(HIDDEN) for part in relative.split("/"))


# --- compressed files ---
class _Zstandard(io.RawIOBase):
    """A zstd file of any number of frames. The library's own reader cannot seek, and accepts a torn file as whole."""

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
                    raise EOFError("its last frame is incomplete")
                return 0
            self._ready = memoryview(b"".join(self._decompress(block)))
        count = min(len(buffer), len(self._ready))
        buffer[:count] = self._ready[:count]
        self._ready = self._ready[count:]
        self._at += count
        return count

    def _decompress(self, block: bytes) -> Iterator[bytes]:
        while block:
            self._frame = self._frame or zstandard.ZstdDecompressor().decompressobj()
            yield self._frame.decompress(block)
            block = self._frame.unused_data
            if self._frame.eof:
                self._frame = None

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        if whence == io.SEEK_END:
            raise io.UnsupportedOperation("a compressed file can only be read forward")
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
"""Functions that open a compressed file, by the end of its name."""


def is_damage(error: BaseException) -> bool:
    """Return True if the error means that a compressed file is damaged. Python has no special error for bz2."""
    damage = (gzip.BadGzipFile, zlib.error, EOFError, lzma.LZMAError, zstandard.ZstdError)
    return isinstance(error, damage) or (isinstance(error, OSError) and error.args == ("Invalid data stream",))
