"""Contents of a slot's part of a checkpoint, and the layout of its file.

A file consists of a magic number, the sections, and an index in JSON. The index gives the place, length and checksum of
each section. The checkpoint's metadata holds the checksum of the index, so that every flipped bit is detected. A
section holds the pages of one table or one pickled value, and can be read without the other sections.
"""

from __future__ import annotations

import json
import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from enum import Enum
from hashlib import blake2b
from io import BytesIO
from typing import Any, BinaryIO, NamedTuple

import zstandard

from penstock.base.storage import ATTEMPTS, Storage, pause, split_url
from penstock.errors import CorruptSnapshot, StorageError

MAGIC = b"PENSTOCK"
OWN = "_own"
"""Name of the section with the state that the runtime keeps for a subtask."""


class Kind(Enum):
    """Kind of a section. It decides how the section is distributed to the subtasks of a restored operator."""

    KEYED = "keyed"
    """A table of keyed state, distributed by key group."""
    TIMERS = "timers"
    """A table of timers, distributed by key group."""
    LIST = "list"
    """Operator list state, split evenly."""
    UNION = "union"
    """Operator union list state. Every subtask gets all items."""
    BROADCAST = "broadcast"
    """A broadcast map. Every subtask gets a copy."""
    OWN = "own"
    """State that the runtime keeps for a subtask: positions, watermarks, pending commits."""


class Name(NamedTuple):
    """Identity of the state that a section holds."""

    uid: str
    kind: Kind
    name: str
    scope: str = ""
    """Empty for state of a key, 'window' for state of a key and a window."""


@dataclass
class State:
    """One state of one subtask, on its way into a checkpoint."""

    name: Name
    pages: Iterable[bytes]
    schema: dict[str, Any] | None = None


@dataclass(frozen=True)
class FileRef:
    """A reference to a file of a checkpoint, or its whole content if that is small."""

    url: str
    size: int
    index_at: int
    checksum: str
    """The checksum of the index."""
    inline: bytes | None = None
    operators: dict[str, int] = field(default_factory=dict, compare=False)
    """Bytes of state by operator uid. Only the driver for which the file was written knows them."""


@dataclass
class SlotSnapshot:
    """Additions of one slot to a checkpoint: files, oldest first, each with the changes since the one before."""

    files: list[FileRef]
    schemas: dict[Name, dict[str, Any]] = field(default_factory=dict)

    def size(self) -> int:
        """Return the size of all files, in bytes."""
        return sum(file.size for file in self.files)

    def operators(self) -> dict[str, int]:
        """Return the known sizes of state, in bytes, by operator uid."""
        sizes: Counter[str] = Counter()
        for file in self.files:
            sizes.update(file.operators)
        return dict(sizes)


class Shape(NamedTuple):
    """Distribution of an operator over subtasks at the time its state was written."""

    parallelism: int
    max_parallelism: int
    name: str = ""
    keeps: bool = False
    """True if the operator keeps more than declared state that must not be lost, such as a source's position."""


@dataclass
class Restore:
    """All data that a slot needs to restore the state of a checkpoint."""

    checkpoint: int
    shapes: dict[str, Shape]
    """Shapes of the operators, by uid."""
    slots: list[SlotSnapshot]
    continued: bool = False
    """True if the next checkpoint may build on these files: the same job goes on in the same shape."""
    drained: bool = False
    """True if event time was brought to its end before the snapshot. Clocks then start anew."""


# --- writing ---
Copying = Callable[[str, Iterable[bytes]], Iterable[bytes]]
"""Function that receives the URL and the pieces of a file, and passes the pieces on."""


def write_file(
    url: str, states: Iterable[State], *, compress: bool, inline_below: int, copying: Copying | None = None
) -> FileRef:
    """Write a slot's states as one file, or keep them inline if they are small. `copying` receives all bytes."""
    # States that are produced during the writing can be written only once.
    again = isinstance(states, list) and all(isinstance(state.pages, list) for state in states)
    attempts = ATTEMPTS if again else 1
    for attempt in range(attempts):
        try:
            return _write_file(url, _Pieces(states, compress), inline_below, copying)
        except StorageError as error:
            if attempt + 1 == attempts or error.lasting:
                raise
            pause(attempt)
    raise AssertionError("writing a file is attempted at least once")


def _write_file(url: str, pieces: _Pieces, inline_below: int, copying: Copying | None) -> FileRef:
    head = BytesIO()
    for piece in pieces:
        head.write(piece)
        if head.tell() >= inline_below:
            folder, name = split_url(url)
            whole = _then(head.getvalue(), pieces)
            size = Storage(folder).write(name, whole if copying is None else copying(url, whole))
            return FileRef(url, size, pieces.index_at, pieces.checksum, operators=dict(pieces.operators))
    inline = head.getvalue()
    return FileRef(url, len(inline), pieces.index_at, pieces.checksum, inline, dict(pieces.operators))


def _then(first: bytes, rest: Iterable[bytes]) -> Iterator[bytes]:
    yield first
    yield from rest


class _Pieces:
    """Yields the bytes of a file piece by piece. The index is known once all of them have been read."""

    def __init__(self, states: Iterable[State], compress: bool) -> None:
        self._states = states
        self._compress = zstandard.ZstdCompressor(level=1).compress if compress else None
        self._feed = self._pieces()
        self.index_at = 0
        self.checksum = ""
        self.operators: Counter[str] = Counter()

    def __iter__(self) -> Iterator[bytes]:
        return self._feed

    def _pieces(self) -> Iterator[bytes]:
        yield MAGIC
        at, index = len(MAGIC), []
        for state in self._states:
            places = []
            for page in state.pages:
                piece = page if self._compress is None else self._compress(page)
                places.append([at, len(piece), zlib.crc32(piece)])
                at += len(piece)
                yield piece
            uid, kind, name, scope = state.name
            self.operators[uid] += sum(length for _, length, _ in places)
            index.append([uid, kind.value, name, scope, places])
        body = json.dumps({"compressed": self._compress is not None, "sections": index}).encode()
        self.index_at, self.checksum = at, checksum(body)
        yield body


def checksum(data: bytes) -> str:
    """Return the checksum of some bytes, as hexadecimal text."""
    return blake2b(data, digest_size=16).hexdigest()


# --- reading ---
class SnapshotFile:
    """An open file of a checkpoint. Every part is checked against its checksum when it is read."""

    def __init__(self, ref: FileRef) -> None:
        self._ref = ref
        self._file = self._open()
        if self._read(0, len(MAGIC)) != MAGIC:
            raise self._corrupt("its first bytes are not those of a checkpoint file")
        body = self._read(ref.index_at, ref.size - ref.index_at)
        if checksum(body) != ref.checksum:
            raise self._corrupt("its index does not match its checksum")
        index = json.loads(body)
        self._compressed: bool = index["compressed"]
        self.sections: dict[Name, list[tuple[int, int, int]]] = {
            Name(uid, Kind(kind), name, scope): places for uid, kind, name, scope, places in index["sections"]
        }

    def _open(self) -> BinaryIO:
        if self._ref.inline is not None:
            return BytesIO(self._ref.inline)
        folder, name = split_url(self._ref.url)
        try:
            return Storage(folder).open(name)
        except FileNotFoundError:
            raise CorruptSnapshot(f"file '{self._ref.url}' of the checkpoint is missing") from None

    def pages(self, name: Name) -> Iterator[bytes]:
        """Yield the pages of a section."""
        decompress = zstandard.ZstdDecompressor().decompress if self._compressed else None
        for at, length, crc in self.sections.get(name, ()):
            piece = self._read(at, length)
            if zlib.crc32(piece) != crc:
                raise self._corrupt(f"{name.kind.value} state '{name.name}' of operator '{name.uid}' was changed")
            yield piece if decompress is None else decompress(piece)

    def _read(self, at: int, length: int) -> bytes:
        self._file.seek(at)
        data = self._file.read(length)
        if len(data) != length:
            raise self._corrupt("it is truncated")
        return data

    def _corrupt(self, why: str) -> CorruptSnapshot:
        return CorruptSnapshot(f"file '{self._ref.url}' of the checkpoint cannot be used: {why}")

    def close(self) -> None:
        self._file.close()

    def __enter__(self) -> SnapshotFile:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
