"""What flows between operators: chunks of records, watermarks, idleness and the end, all through one interface."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from numbers import Real
from typing import Any, Protocol

MIN_TIMESTAMP = -(2**63)
MAX_TIMESTAMP = 2**63 - 1


def whole_millis(time: Any) -> int:
    """A number of milliseconds without its fraction, as PyFlink takes it; what is no number is an error."""
    if not isinstance(time, (Real, Decimal)):
        raise TypeError(f"{time!r} is no number")
    return int(time)  # type: ignore[arg-type]


Values = list[Any]
Timestamps = list[int | None] | None


class Receiver(Protocol):
    """Takes a stream in order. A chunk is a list of values beside a list of timestamps (None: no record has one)."""

    def records(self, values: Values, timestamps: Timestamps) -> None:
        """A chunk, which the receiver may keep but not change."""

    def watermark(self, timestamp: int) -> None:
        """No record at or before `timestamp` is expected any more."""

    def status(self, idle: bool) -> None:
        """The stream became idle, and no longer holds back event time, or active again."""

    def end(self) -> None:
        """Nothing follows. The watermark has become MAX before."""


class Tee:
    """Hands a stream to several receivers, in the order of their definition."""

    def __init__(self, receivers: Sequence[Receiver]) -> None:
        self._receivers = list(receivers)

    def records(self, values: Values, timestamps: Timestamps) -> None:
        for receiver in self._receivers:
            receiver.records(values, timestamps)

    def watermark(self, timestamp: int) -> None:
        for receiver in self._receivers:
            receiver.watermark(timestamp)

    def status(self, idle: bool) -> None:
        for receiver in self._receivers:
            receiver.status(idle)

    def end(self) -> None:
        for receiver in self._receivers:
            receiver.end()


def joined(receivers: Sequence[Receiver]) -> Receiver:
    """One receiver for all of them."""
    return receivers[0] if len(receivers) == 1 else Tee(receivers)
