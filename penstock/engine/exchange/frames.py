"""Frames: consecutive elements of a channel travel between slots as one pickled list, with columns in Arrow's format.

Values of importable classes use plain pickle. Classes that a program defined in its main script are made importable in
the slots (see `main_classes.adopt_classes`). For values of classes defined inside functions, a frame falls back to
cloudpickle.
"""

from __future__ import annotations

import pickle
from array import array
from collections.abc import Sequence
from typing import Any

from penstock.api.latency_marker import LatencyMarker
from penstock.base.pickling import dumps
from penstock.common.types import Row, rows_from_columns, rows_to_columns
from penstock.engine.observe.slot_activity import Traffic
from penstock.engine.records.columns import Columns, go_together, pack_columns, unpack_columns
from penstock.engine.records.elements import MAX_TIMESTAMP, Chunk, Receiver, Timestamps, Values
from penstock.errors import NotSerializable

FRAME_RECORDS = 8192

_VALUES, _ROWS, _WATERMARK, _STATUS, _END, _COLUMNS, _MARKER = range(7)


class FrameBuilder:
    """Collects the elements of one channel and cuts them into frames. It merges adjacent chunks."""

    def __init__(self, sent: Traffic | None = None) -> None:
        """Create an empty builder, which counts the contents of frames in `sent`."""
        self._sent = sent or Traffic()
        self.values: Values = []
        self.timestamps: list[Any] = []
        self._timed = False
        self._columns: list[Columns] = []
        self._elements: list[tuple[Any, ...]] = []
        self._frames: list[bytes] = []
        self._weight = 0

    def add(self, chunk: Chunk) -> None:
        """Append a chunk in its own form. `settle` cuts frames."""
        if chunk.columns is None:
            self.extend(chunk.values, chunk.timestamps)
        else:
            self.add_columns(chunk.columns)

    def add_columns(self, columns: Columns) -> None:
        """Append a chunk of columns."""
        if self.values or (self._columns and not go_together(self._columns[-1], columns)):
            self._close_chunk()
        self._columns.append(columns)
        self._weight += len(columns)

    def extend(self, values: Values, timestamps: Timestamps) -> None:
        """Append a chunk of values."""
        self.expect(timestamps is not None)
        self.values.extend(values)
        if timestamps is not None:
            self.timestamps.extend(timestamps)

    def expect(self, timed: bool) -> None:
        """Declare whether the next records have timestamps. All records of a chunk are of one kind."""
        if timed is not self._timed or self._columns:
            self._close_chunk()
            self._timed = timed

    def settle(self) -> None:
        """Cut a frame if enough records have gathered."""
        if len(self.values) + self._weight >= FRAME_RECORDS:
            self._cut()

    def waiting(self) -> int:
        """Return the approximate number of records that have not been taken yet."""
        return len(self.values) + self._weight + len(self._frames) * FRAME_RECORDS

    def watermark(self, timestamp: int) -> None:
        self._control((_WATERMARK, timestamp))

    def status(self, idle: bool) -> None:
        self._control((_STATUS, idle))

    def end(self) -> None:
        self._control((_END,))

    def marker(self, marker: LatencyMarker) -> None:
        self._control((_MARKER, tuple(marker)))

    def take(self) -> list[bytes]:
        """Return all frames since the last call."""
        self._cut()
        frames, self._frames = self._frames, []
        return frames

    def _control(self, element: tuple[Any, ...]) -> None:
        self._close_chunk()
        self._elements.append(element)
        self._weight += 1

    def _close_chunk(self) -> None:
        """Close the chunk that is being collected.

        The lists are copied and emptied, not replaced: writers hold on to their append methods.
        """
        if self._columns:
            columns, self._columns = self._columns, []
            self._sent.records += sum(map(len, columns))
            self._elements.append((_COLUMNS, pack_columns(columns), columns[0].times is not None, columns[0].row_type))
        if not self.values:
            return
        self._weight += len(self.values)
        self._sent.records += len(self.values)
        stamps = _pack_timestamps(self.timestamps) if self._timed else None
        self._elements.append(_pack_values(self.values.copy(), stamps))
        self.values.clear()
        self.timestamps.clear()

    def _cut(self) -> None:
        self._close_chunk()
        if self._elements:
            elements, self._elements, self._weight = self._elements, [], 0
            frame = self._pickle(elements)
            self._sent.bytes += len(frame)
            self._frames.append(frame)

    @staticmethod
    def _pickle(elements: list[tuple[Any, ...]]) -> bytes:
        try:
            return dumps(elements)
        except Exception as error:
            raise Unpicklable(error, _culprit(elements)) from error


class Unpicklable(NotSerializable):
    """A record that cannot be sent to another slot."""

    def __init__(self, cause: BaseException, record: Any) -> None:
        super().__init__(
            f"a record cannot be sent to another slot ({type(cause).__name__}: {cause}): emit plain data, and open "
            "connections and locks in the function's open() method"
        )
        self.record = record


def _culprit(elements: list[tuple[Any, ...]]) -> Any:
    """Return the first record that cannot be pickled by itself."""
    for element in elements:
        for value in _records_of(element):
            try:
                dumps(value)
            except Exception:
                return value
    return None


def _records_of(element: tuple[Any, ...]) -> Sequence[Any]:
    if element[0] == _ROWS:
        return rows_from_columns(element[1])
    return element[1] if element[0] == _VALUES else ()


def deliver(frame: bytes, receiver: Receiver) -> int:
    """Replay a frame into a receiver, and return the number of its records."""
    records = 0
    for element in pickle.loads(frame):
        kind = element[0]
        if kind == _VALUES:
            records += len(element[1])
            receiver.chunk(Chunk(element[1], _unpack_timestamps(element[2])))
        elif kind == _ROWS:
            rows = rows_from_columns(element[1])
            records += len(rows)
            receiver.chunk(Chunk(rows, _unpack_timestamps(element[2])))
        elif kind == _WATERMARK:
            receiver.watermark(element[1])
        elif kind == _STATUS:
            receiver.status(element[1])
        elif kind == _END:
            receiver.end()
        elif kind == _MARKER:
            receiver.marker(LatencyMarker(*element[1]))
        else:
            for columns in unpack_columns(*element[1:]):
                records += len(columns)
                receiver.chunk(Chunk.of(columns))
    return records


def _pack_values(values: Values, stamps: Any) -> tuple[Any, ...]:
    if type(values[0]) is Row:
        columns = rows_to_columns(values) if set(map(type, values)) == {Row} else None
        if columns is not None:
            return (_ROWS, columns, stamps)
    return (_VALUES, values, stamps)


def _pack_timestamps(timestamps: list[Any]) -> Any:
    try:
        return array("q", timestamps)
    except (TypeError, OverflowError):
        return [None if t is None else min(t, MAX_TIMESTAMP) for t in timestamps]


def _unpack_timestamps(packed: Any) -> Timestamps:
    return packed.tolist() if isinstance(packed, array) else packed
