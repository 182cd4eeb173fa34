"""A sort of records by key, time and arrival in bounded memory.

Records are gathered in a buffer. A buffer that has grown to the budget is written to disk as a sorted run, which is a
file of blocks; each block is a pickled list of pieces. At the end the runs are merged, with one block of each in
memory. The files have no name in the file system, so nothing is left behind, however the process ends.
"""

from __future__ import annotations

import pickle
import tempfile
from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from heapq import heapify, heappop, heapreplace
from itertools import repeat
from typing import Any, BinaryIO, NamedTuple

from penstock.base.pickling import dumps
from penstock.engine.records.elements import MIN_TIMESTAMP, Timestamps, Values

FAN_IN = 64
"""Number of runs of one level that are merged into one run of the next. Few blocks are then in memory at a time."""
PIECE_RECORDS = 1024
BLOCK_BYTES = 128 * 1024
_SAMPLE = 32
_RECORD_BYTES = 120
"""Bytes of a record beside its own objects: places in lists, its position, its share of the dictionary of keys."""
_KEY_BYTES = 250
_UNKNOWN_BYTES = 1000
_LENGTH = 8


class Piece(NamedTuple):
    """Consecutive records of one key, in order."""

    key: Any
    inputs: int | list[int]
    """The input of each record, or the one input of all."""
    timestamps: Timestamps
    values: Values

    def cut(self, at: int) -> tuple[Piece, Piece]:
        """Split into the records before this position, and the others."""
        return self.part(slice(None, at)), self.part(slice(at, None))

    def part(self, part: slice) -> Piece:
        """Return a slice of the records."""
        inputs = self.inputs if isinstance(self.inputs, int) else self.inputs[part]
        stamps = None if self.timestamps is None else self.timestamps[part]
        return Piece(self.key, inputs, stamps, self.values[part])

    def by_input(self) -> Iterator[tuple[int, Values, Timestamps]]:
        """Iterate over stretches of records of the same input, as (input, values, timestamps)."""
        if isinstance(self.inputs, int):
            yield self.inputs, self.values, self.timestamps
            return
        start = 0
        for position in range(1, len(self.values) + 1):
            if position == len(self.values) or self.inputs[position] != self.inputs[start]:
                stamps = None if self.timestamps is None else self.timestamps[start:position]
                yield self.inputs[start], self.values[start:position], stamps
                start = position


class ExternalSort:
    """Takes records and returns them sorted, once."""

    def __init__(self, order: Callable[[Any], Any], budget: int, folder: str | None = None) -> None:
        """Create an empty sort.

        `order` turns keys into values that can be compared and are equal only for equal keys. `budget` is in bytes.
        """
        self._order = order
        self._budget = budget
        self._folder = folder
        self._buffer = _Buffer()
        self._runs: list[_Run] = []

    def add(self, keys: Iterable[Any], input_index: int, values: Values, timestamps: Timestamps) -> None:
        """Add a chunk with a key for every record."""
        self._buffer.add(keys, input_index, values, timestamps)
        if self._buffer.bytes >= self._budget:
            self._spill()

    def pieces(self) -> Iterator[Piece]:
        """Return everything, sorted by key and time. Records that are equal in both stay in the order of arrival."""
        if not self._runs:
            return self._buffer.pieces(self._order)
        self._spill()
        return _join_pieces(_merge_runs([run.pieces() for run in self._runs], self._order))

    @property
    def bytes_on_disk(self) -> int:
        """Number of bytes on disk."""
        return sum(run.size for run in self._runs)

    def close(self) -> None:
        """Release memory and disk."""
        self._buffer = _Buffer()
        for run in self._runs:
            run.close()
        self._runs = []

    def _spill(self) -> None:
        if self._buffer.values:
            buffer, self._buffer = self._buffer, _Buffer()
            self._runs.append(_Run(buffer.pieces(self._order), buffer.record_bytes(), 0, self._folder))
            self._merge_levels()

    def _merge_levels(self) -> None:
        """Merge runs of the same level while there are enough.

        Runs are in the order of arrival, higher levels first.
        """
        while len(self._runs) >= FAN_IN and self._runs[-FAN_IN].level == self._runs[-1].level:
            last, self._runs = self._runs[-FAN_IN:], self._runs[:-FAN_IN]
            pieces = _join_pieces(_merge_runs([run.pieces() for run in last], self._order))
            self._runs.append(_Run(pieces, last[0].record_bytes, last[0].level + 1, self._folder))
            for run in last:
                run.close()


class _Buffer:
    """Records in memory: columns in the order of arrival, and for each key the positions of its records."""

    def __init__(self) -> None:
        self.values: Values = []
        self.bytes = 0
        """Approximate number of bytes in memory."""
        self._timestamps: list[int | None] = []
        self._inputs: list[int] = []
        self._positions: defaultdict[Any, list[int]] = defaultdict(list)
        self._timed = False
        self._mixed = False

    def add(self, keys: Iterable[Any], input_index: int, values: Values, timestamps: Timestamps) -> None:
        first, known, positions = len(self.values), len(self._positions), self._positions
        for position, key in enumerate(keys, first):
            positions[key].append(position)
        self.values.extend(values)
        self._timestamps.extend(repeat(None, len(values)) if timestamps is None else timestamps)
        self._inputs.extend(repeat(input_index, len(values)))
        self._timed = self._timed or timestamps is not None
        self._mixed = self._mixed or input_index != self._inputs[0]
        self.bytes += len(values) * _average_bytes(values) + (len(positions) - known) * _KEY_BYTES

    def record_bytes(self) -> int:
        """Return the average size of a record in bytes."""
        return max(1, self.bytes // len(self.values))

    def pieces(self, order: Callable[[Any], Any]) -> Iterator[Piece]:
        """Iterate over the records in order, in pieces of a bounded size."""
        for key in sorted(self._positions, key=order):
            positions = self._positions[key]
            if self._timed and len(positions) > 1:
                positions.sort(key=lambda position: _time(self._timestamps[position]))
            for start in range(0, len(positions), PIECE_RECORDS):
                yield self._piece(key, positions[start : start + PIECE_RECORDS])

    def _piece(self, key: Any, positions: list[int]) -> Piece:
        inputs: int | list[int] = self._inputs[0]
        if self._mixed:
            inputs = [self._inputs[position] for position in positions]
        stamps = [self._timestamps[position] for position in positions] if self._timed else None
        return Piece(key, inputs, stamps, [self.values[position] for position in positions])


class _Run:
    """Sorted pieces in a file."""

    def __init__(self, pieces: Iterator[Piece], record_bytes: int, level: int, folder: str | None) -> None:
        self.record_bytes = record_bytes
        self.level = level
        self._file: BinaryIO = tempfile.TemporaryFile(prefix="penstock-sort-", dir=folder)  # noqa: SIM115
        try:
            for block in _blocks(pieces, max(1, BLOCK_BYTES // record_bytes)):
                self._file.write(len(block).to_bytes(_LENGTH, "big"))
                self._file.write(block)
            self.size = self._file.tell()
        except BaseException:
            self.close()
            raise

    def pieces(self) -> Iterator[Piece]:
        self._file.seek(0)
        while length := self._file.read(_LENGTH):
            yield from map(Piece._make, pickle.loads(self._file.read(int.from_bytes(length, "big"))))

    def close(self) -> None:
        self._file.close()


def _blocks(pieces: Iterator[Piece], records: int) -> Iterator[bytes]:
    """Iterate over pickled lists of pieces with about this many records each."""
    block: list[tuple[Any, ...]] = []
    gathered = 0
    for piece in pieces:
        for start in range(0, len(piece.values), records):
            part = piece if len(piece.values) <= records else piece.part(slice(start, start + records))
            block.append(tuple(part))
            gathered += len(part.values)
            if gathered >= records:
                yield dumps(block)
                block, gathered = [], 0
    if block:
        yield dumps(block)


def _join_pieces(pieces: Iterator[Piece]) -> Iterator[Piece]:
    """Join neighbouring pieces of one key, up to the usual size: a key may have few records in each of many runs."""
    group: list[Piece] = []
    records = 0
    for piece in pieces:
        if group and (records + len(piece.values) > PIECE_RECORDS or group[0].key != piece.key):
            yield _one(group)
            group, records = [], 0
        group.append(piece)
        records += len(piece.values)
    if group:
        yield _one(group)


def _one(pieces: list[Piece]) -> Piece:
    if len(pieces) == 1:
        return pieces[0]
    first = pieces[0]
    inputs: int | list[int] = first.inputs
    if isinstance(inputs, list) or any(piece.inputs != inputs for piece in pieces):
        inputs = [index for piece in pieces for index in _column(piece.inputs, len(piece.values))]
    stamps: Timestamps = None
    if any(piece.timestamps is not None for piece in pieces):
        stamps = [time for piece in pieces for time in piece.timestamps or repeat(None, len(piece.values))]
    return Piece(first.key, inputs, stamps, [value for piece in pieces for value in piece.values])


def _column(inputs: int | list[int], count: int) -> Iterable[int]:
    return repeat(inputs, count) if isinstance(inputs, int) else inputs


def _merge_runs(runs: Sequence[Iterator[Piece]], order: Callable[[Any], Any]) -> Iterator[Piece]:
    """Merge the pieces of all runs in order. Cut a piece where records of another run belong in between."""
    heads = [head for number, run in enumerate(runs) for head in _head(number, next(run, None), run, order)]
    heapify(heads)
    while heads:
        _, _, number, piece, run = heads[0]
        others = min(heads[1:3], default=None)
        count = len(piece.values) if others is None else _before(heads[0], others)
        if count < len(piece.values):
            piece, rest = piece.cut(count)
            yield piece
            heapreplace(heads, (heads[0][0], _first_time(rest), number, rest, run))
            continue
        yield piece
        following = _head(number, next(run, None), run, order)
        if following:
            heapreplace(heads, following[0])
        else:
            heappop(heads)


_Head = tuple[Any, int, int, Piece, Iterator[Piece]]
"""(order of the key, first time, number of the run, next piece, rest of the run)"""


def _head(number: int, piece: Piece | None, run: Iterator[Piece], order: Callable[[Any], Any]) -> list[_Head]:
    return [] if piece is None else [(order(piece.key), _first_time(piece), number, piece, run)]


def _before(first: _Head, other: _Head) -> int:
    """Return the number of records of the first piece that come before the other piece."""
    piece = first[3]
    if first[0] != other[0] or piece.timestamps is None:
        return len(piece.values)
    count = bisect_right if first[2] < other[2] else bisect_left
    return count(piece.timestamps, other[1], key=_time)


def _first_time(piece: Piece) -> int:
    return MIN_TIMESTAMP if piece.timestamps is None else _time(piece.timestamps[0])


def _time(timestamp: int | None) -> int:
    return MIN_TIMESTAMP if timestamp is None else timestamp


def _average_bytes(values: Values) -> int:
    """Estimate the bytes of a record from a sample: objects are about twice as large as their pickles."""
    sample = values[:: max(1, len(values) // _SAMPLE)]
    if not sample:
        return 0
    try:
        return _RECORD_BYTES + 2 * len(dumps(sample)) // len(sample)
    except Exception:
        # A record that cannot be pickled cannot be spilled either. The error comes when it must be spilled.
        return _UNKNOWN_BYTES
