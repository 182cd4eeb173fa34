"""The distinction between trouble with a file system and broken bytes, which libraries report alike."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO, Any

from penstock.errors import PenstockError, UndecodableRecord


def describe(error: Exception) -> str:
    """Return the message of an error, or its class if it has no message."""
    return str(error) or type(error).__name__


class WatchedFile:
    """A file that remembers its last error."""

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
        """Raise the file's own error, if there was one.

        Raise the library's error about the bytes as UndecodableRecord.
        """
        try:
            yield
        except PenstockError:
            raise
        except Exception as error:  # libraries raise what their parts do: struct.error, zlib.error, IndexError
            if self._failure is not None:
                raise self._failure from None
            raise UndecodableRecord(f"{what}: {describe(error)}") from None
