"""The interface through which operators receive chunks of records, watermarks, idleness, markers and the end."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from numbers import Real
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from penstock.api.latency_marker import LatencyMarker
    from penstock.engine.records.columns import Columns

MIN_TIMESTAMP = -(2**63)
MAX_TIMESTAMP = 2**63 - 1


def whole_millis(time: Any) -> int:
    """Drop the fraction of a number of milliseconds, as PyFlink does. Raise TypeError for anything but a number."""
    if isinstance(time, bool) or not isinstance(time, (Real, Decimal)):
        raise TypeError(f"{time!r} is not a number")
    return int(time)  # type: ignore[arg-type]


Values = list[Any]
Timestamps = list[int | None] | None


class Chunk:
    """Consecutive records of a stream in one of two forms: columns, or a list of values beside a list of timestamps.

    Values can be read in both cases. A chunk of columns creates them when they are first asked for, and keeps them.
    """

    __slots__ = ("columns", "timestamps", "values")
    values: Values
    timestamps: Timestamps
    """The timestamps of the records; None if no record has one."""
    columns: Columns | None
    """The columns of the records; None if the chunk was made of values."""

    def __init__(self, values: Values, timestamps: Timestamps = None) -> None:
        self.values = values
        self.timestamps = timestamps
        self.columns = None

    @classmethod
    def of(cls, columns: Columns) -> Chunk:
        """Create a chunk of columns. Its values are made when they are first asked for."""
        chunk = cls.__new__(cls)
        chunk.columns = columns
        return chunk

    def __getattr__(self, name: str) -> Any:
        """Create `values` and `timestamps` of columns. Python calls this only for attributes that do not exist yet."""
        if name == "values":
            assert self.columns is not None
            self.values = self.columns.rows()
            return self.values
        if name == "timestamps":
            assert self.columns is not None
            self.timestamps = self.columns.timestamps()
            return self.timestamps
        raise AttributeError(f"a chunk has no attribute {name!r}")

    def __len__(self) -> int:
        return len(self.values) if self.columns is None else len(self.columns)


class Receiver(Protocol):
    """Takes a stream in order."""

    def chunk(self, chunk: Chunk) -> None:
        """Take records, which the receiver may keep but not change."""

    def watermark(self, timestamp: int) -> None:
        """Take a watermark: no record at or before `timestamp` is expected any more."""

    def status(self, idle: bool) -> None:
        """Take a change of idleness. A stream that is idle does not hold back event time."""

    def end(self) -> None:
        """Take the end of the stream. The watermark has become MAX_TIMESTAMP before."""

    def marker(self, marker: LatencyMarker) -> None:
        """Take a latency marker, which a source has sent along with the records."""


class Tee:
    """Passes a stream to several receivers, in the order of their definition."""

    def __init__(self, receivers: Sequence[Receiver]) -> None:
        self._receivers = list(receivers)

    def chunk(self, chunk: Chunk) -> None:
        for receiver in self._receivers:
            receiver.chunk(chunk)

    def watermark(self, timestamp: int) -> None:
        for receiver in self._receivers:
            receiver.watermark(timestamp)

    def status(self, idle: bool) -> None:
        for receiver in self._receivers:
            receiver.status(idle)

    def end(self) -> None:
        for receiver in self._receivers:
            receiver.end()

    def marker(self, marker: LatencyMarker) -> None:
        for receiver in self._receivers:
            receiver.marker(marker)


def join_receivers(receivers: Sequence[Receiver]) -> Receiver:
    """Return one receiver for all of these."""
    return receivers[0] if len(receivers) == 1 else Tee(receivers)


class Nobody:
    """The output of an operator that no other operator reads."""

    def chunk(self, chunk: Chunk) -> None:
        pass

    def watermark(self, timestamp: int) -> None:
        pass

    def status(self, idle: bool) -> None:
        pass

    def end(self) -> None:
        pass

    def marker(self, marker: LatencyMarker) -> None:
        pass


NOBODY = Nobody()


class ControlOnly(Nobody):
    """Passes the watermarks of the main output to the receiver of a side output, without its records."""

    def __init__(self, receiver: Receiver) -> None:
        self.watermark = receiver.watermark  # type: ignore[method-assign]
        self.status = receiver.status  # type: ignore[method-assign]
        self.end = receiver.end  # type: ignore[method-assign]
        self.marker = receiver.marker  # type: ignore[method-assign]
