"""The lines of a piece of a file, read in large blocks, with the exact byte at which each line begins."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import IO, Any

from penstock.errors import UndecodableRecord
from penstock.formats.contracts import FormatReader, Reject

BLOCK_BYTES = 1 << 20
_SEARCH_BYTES = 1 << 16


class Lines:
    """The lines whose first byte lies between `start` and `end`. They end with a line feed, or with the file."""

    def __init__(self, file: IO[bytes], start: int, end: int, position: int | None = None) -> None:
        self._file = file
        self._end = end
        self._ready: list[bytes] = []
        self._taken = 0
        self._tail = b""
        self.at = self._first_line(start) if position is None else position
        self._read_to = self.at
        file.seek(self.at)

    def _first_line(self, start: int) -> int:
        """Return the position of the first line at or after `start`: `start` itself if a line ends right before it."""
        if start == 0:
            return 0
        self._file.seek(start - 1)
        searched = start - 1
        while searched < self._end and (block := self._file.read(_SEARCH_BYTES)):
            found = block.find(b"\n")
            if found >= 0:
                return searched + found + 1
            searched += len(block)
        return max(searched, self._end)

    def take(self, most: int) -> list[bytes]:
        """Return the next lines without their line feed; an empty list at the end."""
        if not self.more():
            return []
        lines = self._ready[self._taken : self._taken + most]
        self._taken += len(lines)
        self.at += sum(map(len, lines)) + len(lines)
        return lines

    def more(self) -> bool:
        """Return True if there is another line."""
        if self._taken >= len(self._ready):
            self._ready, self._taken = self._next_lines(), 0
        return bool(self._ready)

    def _next_lines(self) -> list[bytes]:
        parts = [self._tail] if self._tail else []
        self._tail = b""
        while self._read_to < self._end:
            block = self._file.read(min(BLOCK_BYTES, self._end - self._read_to))
            if not block:  # a file that is shorter than was thought, or compressed
                self._read_to = self._end
                return [b"".join(parts)] if parts else []
            self._read_to += len(block)
            cut = block.rfind(b"\n")
            if cut >= 0:
                parts.append(block[:cut])
                self._tail = block[cut + 1 :]
                return b"".join(parts).split(b"\n")
            parts.append(block)
        return [b"".join(parts) + self._rest_of_line()] if parts else []

    def _rest_of_line(self) -> bytes:
        """Return the part behind `end` of a line that began before it."""
        parts: list[bytes] = []
        while block := self._file.read(_SEARCH_BYTES):
            head, line_feed, _ = block.partition(b"\n")
            parts.append(head)
            if line_feed:
                break
        return b"".join(parts)


class LinesReader(FormatReader):
    """Reads records that begin with a line. A position is the byte at which the next record begins."""

    def __init__(self, lines: Lines, reject: Reject) -> None:
        self._lines = lines
        self._reject = reject
        self.finished = not lines.more()

    def read(self, most: int) -> Sequence[Any]:
        values: Sequence[Any] = []
        while not values and not self.finished:
            begin = self._lines.at
            values = self.decode_all(self._lines.take(most), begin)
            self.finished = not self._lines.more()
        return values

    def position(self) -> int:
        return self._lines.at

    @abstractmethod
    def decode_all(self, lines: list[bytes], begin: int) -> Sequence[Any]:
        """Decode the records of some lines, the first of which begins at byte `begin`.

        A record that continues after these lines takes more lines from `_lines`.
        """

    def decode_one_by_one(
        self, lines: list[bytes], begin: int, decode: Callable[[bytes], Iterable[Any]]
    ) -> Iterator[Any]:
        """Yield the records that a function makes of each line. Lines on which it fails are rejected."""
        for index, line in enumerate(lines):
            try:
                yield from decode(line)
            except UndecodableRecord as error:
                self.reject(lines, (index, index + 1), begin, error)

    def reject(self, lines: list[bytes], record: tuple[int, int], begin: int, error: Exception) -> None:
        """Reject the record in the lines from the first number on, up to the second."""
        first, end = record
        at = begin + sum(map(len, lines[:first])) + first
        self._reject(b"\n".join(lines[first:end]).removesuffix(b"\r"), error, f"line at byte {at}")


def decode_lines(lines: list[bytes], charset: str) -> list[str]:
    """Decode lines, without the carriage return at a line end. Raise if one of them cannot be decoded."""
    text = b"\n".join(lines).decode(charset)
    if "\r" in text:
        text = f"{text}\n".replace("\r\n", "\n")[:-1]
    return text.split("\n")


def decode_line(line: bytes, charset: str) -> str:
    """Decode one line, without a carriage return at its end."""
    try:
        return line.removesuffix(b"\r").decode(charset)
    except UnicodeDecodeError as error:
        raise UndecodableRecord(f"not {charset}: {error}") from None
