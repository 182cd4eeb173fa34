"""Lengths of time and points in time."""

from __future__ import annotations

import datetime
import operator
from dataclasses import dataclass
from enum import Enum
from typing import Any, TypeAlias

from penstock.base.arguments import check_arguments, invalid_argument

__all__ = ["Duration", "Instant", "LengthOfTime", "Time", "TimeUnit", "to_millis"]

_NANOS_PER_MILLI = 1_000_000
_REPR_UNITS = (
    ("days", 86_400_000_000_000),
    ("hours", 3_600_000_000_000),
    ("minutes", 60_000_000_000),
    ("seconds", 1_000_000_000),
    ("millis", _NANOS_PER_MILLI),
)


@check_arguments
@dataclass(frozen=True, order=True, repr=False)
class Duration:
    """A length of time, exact to the nanosecond.

    >>> Duration.of_minutes(90).to_millis()
    5400000
    """

    nanos: int = 0

    def __post_init__(self) -> None:
        _whole("Duration", self.nanos)

    @staticmethod
    def of_days(days: int) -> Duration:
        """Return a duration of whole days of 24 hours."""
        return Duration(_whole("days", days) * 86_400_000_000_000)

    @staticmethod
    def of_hours(hours: int) -> Duration:
        """Return a duration of whole hours."""
        return Duration(_whole("hours", hours) * 3_600_000_000_000)

    @staticmethod
    def of_minutes(minutes: int) -> Duration:
        """Return a duration of whole minutes."""
        return Duration(_whole("minutes", minutes) * 60_000_000_000)

    @staticmethod
    def of_seconds(seconds: int) -> Duration:
        """Return a duration of whole seconds."""
        return Duration(_whole("seconds", seconds) * 1_000_000_000)

    @staticmethod
    def of_millis(millis: int) -> Duration:
        """Return a duration of whole milliseconds."""
        return Duration(_whole("millis", millis) * _NANOS_PER_MILLI)

    @staticmethod
    def of_nanos(nanos: int) -> Duration:
        """Return a duration of whole nanoseconds."""
        return Duration(nanos)

    def to_millis(self) -> int:
        """Return whole milliseconds, rounded down."""
        return self.nanos // _NANOS_PER_MILLI

    def __repr__(self) -> str:
        for unit, nanos in _REPR_UNITS:
            if self.nanos and self.nanos % nanos == 0:
                return f"Duration.of_{unit}({self.nanos // nanos})"
        return f"Duration.of_nanos({self.nanos})"


@dataclass(frozen=True, order=True, repr=False)
class Instant:
    """A point on the time-line: seconds since 1970-01-01T00:00Z, and nanoseconds within the second."""

    seconds: int
    nanos: int = 0

    def __post_init__(self) -> None:
        """Check the parts by hand, because records hold instants."""
        if type(self.seconds) is not int or type(self.nanos) is not int:
            object.__setattr__(self, "seconds", _to_int("Instant", "seconds", self.seconds))
            object.__setattr__(self, "nanos", _to_int("Instant", "nanos", self.nanos))

    @staticmethod
    def of_epoch_milli(epoch_milli: int) -> Instant:
        """Return the instant of a number of milliseconds since 1970."""
        seconds, millis = divmod(_to_int("Instant.of_epoch_milli", "epoch_milli", epoch_milli), 1000)
        return Instant(seconds, millis * _NANOS_PER_MILLI)

    def to_epoch_milli(self) -> int:
        """Return the whole milliseconds since 1970, rounded down."""
        return self.seconds * 1000 + self.nanos // _NANOS_PER_MILLI

    def __repr__(self) -> str:
        return f"Instant<{self.seconds}, {self.nanos}>"


class TimeUnit(Enum):
    """A unit of time, as Java names it. The value is its length in nanoseconds."""

    NANOSECONDS = 1
    MICROSECONDS = 1_000
    MILLISECONDS = 1_000_000
    SECONDS = 1_000_000_000
    MINUTES = 60_000_000_000
    HOURS = 3_600_000_000_000
    DAYS = 86_400_000_000_000

    def to_millis(self, duration: int) -> int:
        """Return the whole milliseconds in `duration` of this unit, rounded down."""
        nanos: int = _to_int("TimeUnit.to_millis", "duration", duration) * self.value
        return nanos // _NANOS_PER_MILLI


@check_arguments
class Time:
    """A length of time in whole milliseconds.

    >>> Time.seconds(5).to_milliseconds()
    5000
    """

    __slots__ = ("_milliseconds",)

    def __init__(self, milliseconds: int) -> None:
        self._milliseconds = _whole("milliseconds", milliseconds)

    @staticmethod
    def of(size: int, unit: TimeUnit) -> Time:
        """Return a number of units, such as `Time.of(10, TimeUnit.SECONDS)`."""
        return Time(unit.to_millis(size))

    @staticmethod
    def milliseconds(milliseconds: int) -> Time:
        """Return a length of time in whole milliseconds."""
        return Time(milliseconds)

    @staticmethod
    def seconds(seconds: int) -> Time:
        """Return a length of time in whole seconds."""
        return Time(_whole("seconds", seconds) * 1000)

    @staticmethod
    def minutes(minutes: int) -> Time:
        """Return a length of time in whole minutes."""
        return Time(_whole("minutes", minutes) * 60_000)

    @staticmethod
    def hours(hours: int) -> Time:
        """Return a length of time in whole hours."""
        return Time(_whole("hours", hours) * 3_600_000)

    @staticmethod
    def days(days: int) -> Time:
        """Return a length of time in whole days of 24 hours."""
        return Time(_whole("days", days) * 86_400_000)

    def to_milliseconds(self) -> int:
        """Return the length in milliseconds."""
        return self._milliseconds

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Time) and self._milliseconds == other._milliseconds

    def __hash__(self) -> int:
        return hash((Time, self._milliseconds))

    def __str__(self) -> str:
        return f"{self._milliseconds} ms"

    def __repr__(self) -> str:
        return f"Time.milliseconds({self._milliseconds})"


LengthOfTime: TypeAlias = Duration | Time | datetime.timedelta | int
"""A length of time as an argument. A plain number is in milliseconds."""


def to_millis(value: LengthOfTime) -> int:
    """Return the milliseconds of any length of time that the API accepts. A plain int is already in milliseconds."""
    if isinstance(value, Duration):
        return value.to_millis()
    if isinstance(value, Time):
        return value.to_milliseconds()
    if isinstance(value, datetime.timedelta):
        return value // datetime.timedelta(milliseconds=1)
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    allowed = "a Duration, a Time, a timedelta or a whole number of milliseconds"
    raise invalid_argument("to_millis", "value", value, allowed)


def _to_int(method: str, argument: str, value: Any) -> int:
    """Return a whole number, such as one of NumPy's, as an int. Raise InvalidArgument for any other value."""
    if isinstance(value, bool) or not hasattr(type(value), "__index__"):
        raise invalid_argument(method, argument, value, "a whole number")
    return operator.index(value)


def _whole(what: str, value: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeError(f"{what} must be a whole number, not {value!r}")
    return value
