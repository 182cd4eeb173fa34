"""The sources that come with the engine: collections, sequences, rates, text files, and what the driver feeds."""

from __future__ import annotations

import glob
import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import fsspec

from penstock.errors import ProgramError
from penstock.runtime.elements import Receiver
from penstock.runtime.operator import Clock, OperatorContext
from penstock.runtime.source import CHUNK_RECORDS, Budget, Enumerator, Reader, Source


@dataclass
class CollectionSource(Source):
    """The elements of a list, in order, from one subtask."""

    values: list[Any]
    parallel = False

    def reader(self, context: OperatorContext) -> Reader:
        return _CollectionReader(self.values)


class _CollectionReader(Reader):
    def __init__(self, values: list[Any]) -> None:
        self._values = values
        self._next = 0
        self.finished = False

    def poll(self, output: Receiver, budget: Budget) -> int:
        chunk = self._values[self._next : self._next + min(CHUNK_RECORDS, budget.records)]
        if chunk:
            output.records(chunk, None)
        self._next += len(chunk)
        self.finished = self._next >= len(self._values)
        return len(chunk)

    def position(self) -> int:
        return self._next


@dataclass
class SequenceSource(Source):
    """The whole numbers from start to end, both included, split into one run per subtask."""

    start: int
    end: int

    def reader(self, context: OperatorContext) -> Reader:
        total = self.end - self.start + 1
        first = self.start + total * context.subtask // context.parallelism
        return _SequenceReader(first, self.start + total * (context.subtask + 1) // context.parallelism)


class _SequenceReader(Reader):
    def __init__(self, first: int, stop: int) -> None:
        self._next = first
        self._stop = stop

    def poll(self, output: Receiver, budget: Budget) -> int:
        stop = min(self._next + min(CHUNK_RECORDS, budget.records), self._stop)
        taken = stop - self._next
        if taken > 0:
            output.records(list(range(self._next, stop)), None)
            self._next = stop
        self.finished = self._next >= self._stop
        return taken

    def position(self) -> int:
        return self._next


@dataclass
class RateSource(Source):
    """function(0), function(1), … at a steady rate, for ever or for `count` records."""

    function: Callable[[int], Any] | None
    per_second: float
    count: int | None = None

    @property
    def bounded(self) -> bool:  # type: ignore[override]
        return self.count is not None

    def reader(self, context: OperatorContext) -> Reader:
        return _RateReader(self, context.subtask, context.parallelism, context.clock)


class _RateReader(Reader):
    """Subtask i of p emits i, i + p, i + 2p, …; how many are due follows from the epoch's processing time."""

    def __init__(self, source: RateSource, subtask: int, parallelism: int, clock: Clock) -> None:
        self._source = source
        self._subtask = subtask
        self._step = parallelism
        self._clock = clock
        self._began = clock.now
        self._emitted = 0
        total = source.count
        self._total = None if total is None else max(0, -(-(total - subtask) // parallelism))

    def _due(self) -> int:
        elapsed = (self._clock.now - self._began) / 1000
        due = int(elapsed * self._source.per_second / self._step) + 1
        return due if self._total is None else min(due, self._total)

    def poll(self, output: Receiver, budget: Budget) -> int:
        taken = min(self._due() - self._emitted, CHUNK_RECORDS, budget.records)
        if taken > 0:
            first = self._subtask + self._emitted * self._step
            indices = range(first, first + taken * self._step, self._step)
            function = self._source.function
            self._emitted += taken
            output.records(list(indices) if function is None else [function(i) for i in indices], None)
        self.finished = self._total is not None and self._emitted >= self._total
        return max(taken, 0)

    def next_due(self) -> int | None:
        return self._began + int(1000 * self._emitted * self._step / self._source.per_second) + 1

    def position(self) -> int:
        return self._emitted


@dataclass(frozen=True)
class FileSplit:
    """A byte range of a file: the lines that begin in it."""

    path: str
    start: int
    end: int


SPLIT_BYTES = 32 << 20


@dataclass
class TextFileSource(Source):
    """The lines of a file, or of the files in a directory or matching a pattern, without their line ends."""

    splits: list[FileSplit]
    charset: str = "UTF-8"

    def __post_init__(self) -> None:
        if "\n".encode(self.charset) != b"\n":
            raise ProgramError(f"text files are cut at line ends of one byte, and {self.charset} has longer ones")

    def reader(self, context: OperatorContext) -> Reader:
        return _TextFileReader(self.splits[context.subtask :: context.parallelism], self.charset)


def file_splits(path: str, split_bytes: int = SPLIT_BYTES) -> list[FileSplit]:
    """The byte ranges that together hold every line under `path`; hidden files are passed over."""
    filesystem, root = fsspec.core.url_to_fs(path)
    names = _files_under(filesystem, root)
    if not names:
        raise ProgramError(f"there is no file at '{path}'")
    splits: list[FileSplit] = []
    for name in names:
        size = filesystem.size(name)
        url = filesystem.unstrip_protocol(name)
        starts = range(0, size, split_bytes)
        splits.extend(FileSplit(url, start, min(start + split_bytes, size)) for start in starts)
    return splits


def _files_under(filesystem: Any, root: str) -> list[str]:
    if filesystem.isdir(root):
        found = filesystem.ls(root, detail=False)
    elif filesystem.exists(root):
        found = [root]
    else:
        found = filesystem.glob(root) if glob.has_magic(root) else []
    visible = [name for name in found if not os.path.basename(name.rstrip("/")).startswith((".", "_"))]
    return sorted(name for name in visible if filesystem.isfile(name))


class _TextFileReader(Reader):
    def __init__(self, splits: list[FileSplit], charset: str) -> None:
        self._lines = _lines_of(splits, charset)

    def poll(self, output: Receiver, budget: Budget) -> int:
        wanted = min(CHUNK_RECORDS, budget.records)
        chunk = [line for _, line in zip(range(wanted), self._lines, strict=False)]
        if chunk:
            output.records(chunk, None)
        self.finished = len(chunk) < wanted
        return len(chunk)


def _lines_of(splits: Iterable[FileSplit], charset: str) -> Iterator[str]:
    """A line belongs to the split in which its first byte lies."""
    for split in splits:
        with fsspec.open(split.path, "rb") as file:
            if split.start > 0:
                file.seek(split.start - 1)
                file.readline()
            while file.tell() < split.end:
                line = file.readline()
                if not line:
                    break
                yield line.removesuffix(b"\n").removesuffix(b"\r").decode(charset)


@dataclass
class FedSource(Source):
    """Records that the driver reads and hands out with each command."""

    make_enumerator: Callable[[], Enumerator]

    def reader(self, context: OperatorContext) -> Reader:
        return _FedReader()

    def enumerator(self) -> Enumerator | None:
        return self.make_enumerator()

    def __getstate__(self) -> dict[str, Any]:
        """The driver's part stays with the driver."""
        return {"make_enumerator": None}


class _FedReader(Reader):
    """Takes a payload (values, last) once an epoch."""

    def poll(self, output: Receiver, budget: Budget) -> int:
        if budget.payload is None:
            return 0
        (values, last), budget.payload = budget.payload, None
        if values:
            output.records(values, None)
        self.finished = last
        return len(values)

    def waits_for_input(self) -> bool:
        return True


class IteratorEnumerator(Enumerator):
    """Deals an iterator's values out to the subtasks."""

    def __init__(self, values: Iterator[Any]) -> None:
        self._values = values

    def assign(self, parallelism: int, max_records: int) -> list[Any]:
        if self.exhausted:
            return [None] * parallelism
        taken = [value for _, value in zip(range(max_records), self._values, strict=False)]
        self.exhausted = len(taken) < max_records
        return [(taken[subtask::parallelism], self.exhausted) for subtask in range(parallelism)]
