"""Parts of the writers of bulk formats: a factory for any of them, and a writer of lines of text."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import IO, Any

from penstock.common.serialization import BulkWriter, BulkWriterFactory

_MOST_BUFFERED = 1024


@dataclass(frozen=True)
class WriterFactory(BulkWriterFactory):
    """Makes writers by calling a class or function with the stream and some settings."""

    make: Callable[..., BulkWriter]
    settings: tuple[Any, ...]

    def create(self, stream: IO[bytes]) -> BulkWriter:
        return self.make(stream, *self.settings)


class LinesWriter(BulkWriter):
    """Writes elements as lines in UTF-8, many at a time."""

    def __init__(self, stream: IO[bytes], lines: Callable[[list[Any]], Iterable[str]], line_end: str = "\n") -> None:
        """Take `lines`, a function that makes the lines of some elements, without their ends."""
        self._stream = stream
        self._lines = lines
        self._line_end = line_end
        self._buffer: list[Any] = []

    def add_element(self, element: Any) -> None:
        self._buffer.append(element)
        if len(self._buffer) >= _MOST_BUFFERED:
            self.flush()

    def flush(self) -> None:
        if self._buffer:
            elements, self._buffer = self._buffer, []
            self._stream.write((self._line_end.join(self._lines(elements)) + self._line_end).encode())

    def finish(self) -> None:
        self.flush()
