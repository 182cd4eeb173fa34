"""Tells trouble with a file system from broken bytes; the libraries that read files report both alike."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO, Any

from penstock.errors import PenstockError, UndecodableRecord


def describe(error: Exception) -> str:
    return str(error) or type(error).__name__


class WatchedFile:
    """A file that remembers what went wrong when it was read."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self._failure: Exception | None = None

    def read(self, size: int = -1) -> bytes:
        try:
            return self._file.read(size)
        except Exception as error:
            self._failure = error
            raise

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)

    @contextmanager
    def undecodable(self, what: str) -> Iterator[None]:
        """Raise what the file raised, if it did, and what the library says about the bytes as UndecodableRecord."""
        try:
            yield
        except PenstockError:
            raise
        except Exception as error:  # libraries raise what their parts do: struct.error, zlib.error, IndexError
            if self._failure is not None:
                raise self._failure from None
            raise UndecodableRecord(f"{what}: {describe(error)}") from None
