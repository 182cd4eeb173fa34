"""The compaction of many small files into few large ones, before readers see any of them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import IO, Any

from penstock.base.arguments import check_arguments
from penstock.connectors.files.access import COPY_BYTES, Files
from penstock.connectors.files.parts import Closed
from penstock.errors import UndecodableRecord
from penstock.formats.contracts import FileFormat

WriteAll = Callable[[Sequence[Any]], None]
"""Writes values in the sink's own format into the compacted file."""


@dataclass(frozen=True)
class FileCompactStrategy:
    """The conditions under which the closed files of a bucket become one file."""

    num_checkpoints_before_compaction: int | None = None
    size_threshold: int | None = None
    num_compact_threads: int = 1

    @staticmethod
    def builder() -> FileCompactStrategy.Builder:
        """Return a builder without any condition."""
        return FileCompactStrategy.Builder()

    def is_due(self, closed: list[Closed]) -> bool:
        """Return True if the files of a bucket have waited long enough, or are large enough together."""
        checkpoints, size = self.num_checkpoints_before_compaction, self.size_threshold
        return (checkpoints is not None and max(part.checkpoints for part in closed) >= checkpoints) or (
            size is not None and sum(part.length for part in closed) >= size
        )

    @check_arguments
    class Builder:
        """Builds a FileCompactStrategy, which needs at least one condition."""

        def __init__(self) -> None:
            self._checkpoints: int | None = None
            self._size: int | None = None
            self._threads = 1

        def enable_compaction_on_checkpoint(
            self, num_checkpoints_before_compaction: int
        ) -> FileCompactStrategy.Builder:
            """Compact files once the oldest has waited for this many checkpoints."""
            self._checkpoints = _at_least_one("checkpoints before a compaction", num_checkpoints_before_compaction)
            return self

        def set_size_threshold(self, size_threshold: int) -> FileCompactStrategy.Builder:
            """Compact files at the checkpoint at which they have this many bytes together."""
            self._size = _at_least_one("bytes", size_threshold)
            return self

        def set_num_compact_threads(self, num_compact_threads: int) -> FileCompactStrategy.Builder:
            """Compact this many buckets of a subtask at the same time."""
            self._threads = _at_least_one("threads", num_compact_threads)
            return self

        def build(self) -> FileCompactStrategy:
            """Return the strategy; raise ValueError if it has no condition."""
            if self._checkpoints is None and self._size is None:
                raise ValueError(
                    "a FileCompactStrategy needs enable_compaction_on_checkpoint(…), set_size_threshold(…) or both"
                )
            return FileCompactStrategy(self._checkpoints, self._size, self._threads)


def _at_least_one(what: str, number: int) -> int:
    if not isinstance(number, int) or number < 1:
        raise ValueError(f"the number of {what} is at least 1, not {number!r}")
    return number


class FileCompactor(ABC):
    """Makes one file from several."""

    merges = True
    """True if files are combined, False if each file stays separate."""

    @abstractmethod
    def compact(self, inputs: Iterable[IO[bytes]], output: IO[bytes], write_all: WriteAll) -> None:
        """Write the content of the input files into the compacted file, in their order.

        An input is open until the next one is taken. Write either bytes into `output`, or records in the format of the
        sink through `write_all`, not both.
        """

    @staticmethod
    @check_arguments
    def concat_file_compactor(file_delimiter: bytes | None = None) -> FileCompactor:
        """Concatenate the bytes of the files, with a delimiter between them. This is for row formats."""
        if file_delimiter is not None and not isinstance(file_delimiter, bytes):
            raise TypeError(f"the delimiter between files is bytes, not {file_delimiter!r}")
        return ConcatFileCompactor(file_delimiter or b"")

    @staticmethod
    def identical_file_compactor() -> FileCompactor:
        """Keep every file separate and unchanged."""
        return IdenticalFileCompactor()

    @staticmethod
    @check_arguments
    def record_wise_file_compactor(file_format: FileFormat) -> FileCompactor:
        """Read the records of every file and write them again.

        This is for formats that cannot be combined otherwise.
        """
        if not isinstance(file_format, FileFormat):
            raise TypeError(f"records are read from a StreamFormat or BulkFormat, not from {file_format!r}")
        return RecordWiseFileCompactor(file_format)


@dataclass(frozen=True)
class ConcatFileCompactor(FileCompactor):
    """Concatenates the bytes of files."""

    delimiter: bytes = b""

    def compact(self, inputs: Iterable[IO[bytes]], output: IO[bytes], write_all: WriteAll) -> None:
        for index, part in enumerate(inputs):
            if index and self.delimiter:
                output.write(self.delimiter)
            while piece := part.read(COPY_BYTES):
                output.write(piece)


@dataclass(frozen=True)
class IdenticalFileCompactor(FileCompactor):
    """Keeps every file separate and unchanged."""

    merges = False

    def compact(self, inputs: Iterable[IO[bytes]], output: IO[bytes], write_all: WriteAll) -> None:
        ConcatFileCompactor().compact(inputs, output, write_all)


@dataclass(frozen=True)
class RecordWiseFileCompactor(FileCompactor):
    """Reads the records of every file and writes them again."""

    file_format: FileFormat

    def compact(self, inputs: Iterable[IO[bytes]], output: IO[bytes], write_all: WriteAll) -> None:
        for part in inputs:
            for values in self._records(part):
                write_all(values)

    def _records(self, part: IO[bytes]) -> Iterator[Sequence[Any]]:
        size = part.seek(0, 2)
        part.seek(0)
        reader = self.file_format.open(part, 0, size, None, _refuse)
        while size and not reader.finished:
            yield reader.read(1000)
        reader.close()


def _refuse(message: Any, error: Exception, where: str) -> None:
    raise UndecodableRecord(f"a file cannot be read for compaction, {where}: {error}") from error


def open_parts(parts: list[Closed]) -> Iterator[IO[bytes]]:
    """Open closed parts one after the other. The error for a missing file names it."""
    for part in parts:
        with Files(part.hidden).open("") as file:
            yield file
