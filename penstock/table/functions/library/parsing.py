"""The conversion of texts to values, for CAST from STRING."""

from __future__ import annotations

import calendar
import datetime
import re
from collections.abc import Callable
from decimal import Decimal
from typing import Any
from zoneinfo import ZoneInfo

from penstock.table.functions.library.decimal_kernels import fit_decimal
from penstock.table.types import data_types as t

Parse = Callable[[str], Any]

_WHOLE = re.compile(r"([+-]?)(\d*)(?:\.\d*)?")
_FLOAT = re.compile(r"[+-]?(?:NaN|Infinity|(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?[fFdD]?)")
_DATE = re.compile(r"(\d{1,4})(?:-(\d{1,2})(?:-(\d{1,2})(?:[ T].*)?)?)?")
_TIME = re.compile(r"(\d{1,2})(?::(\d{1,2})(?::(\d{1,2})(?:\.(\d{1,9}))?)?)?")
_TIMESTAMP = re.compile(r"(\d{1,4}-\d{1,2}-\d{1,2})(?: (\d{1,2}:\d{1,2}:\d{1,2}(?:\.\d{1,9})?))?")
_TRUE = frozenset({"t", "true", "y", "yes", "1"})
_FALSE = frozenset({"f", "false", "n", "no", "0"})
BLANKS = " \t\n\r\f\v\x1c\x1d\x1e\x1f"


def boolean(text: str) -> bool:
    """Return the truth value of a word."""
    word = text.lower()
    if word in _TRUE:
        return True
    if word in _FALSE:
        return False
    raise ValueError("not true, false, yes, no, t, f, y, n, 1 or 0")


def whole(bits: int) -> Parse:
    """Return a parser of digits with a sign. It ignores digits after a point."""
    least, most = -(1 << bits - 1), (1 << bits - 1) - 1

    def parse(text: str) -> int:
        found = _WHOLE.fullmatch(text.strip(BLANKS))
        if found is None or found[0] in ("", "+", "-"):
            raise ValueError("not a whole number")
        value = int(found[1] + (found[2] or "0"))
        if not least <= value <= most:
            raise ValueError(f"outside {least} to {most}")
        return value

    return parse


def floating(text: str) -> float:
    """Return a floating-point number."""
    word = text.strip(BLANKS)
    if not _FLOAT.fullmatch(word):
        raise ValueError("not a number")
    return float(word.rstrip("fFdD") if word[-1:] in "fFdD" and not word.endswith("Infinity") else word)


def decimal(kind: t.DecimalType) -> Parse:
    """Return a parser of numbers of a DECIMAL."""

    def parse(text: str) -> Decimal:
        try:
            value = Decimal(text.strip(BLANKS))
        except ArithmeticError:
            raise ValueError("not a number") from None
        fit = fit_decimal(value, kind.precision, kind.scale)
        if fit is None:
            raise ValueError("too large")
        return fit

    return parse


def date(text: str) -> datetime.date:
    """Return a date. Month and day are optional, and a time after the date is ignored."""
    found = _DATE.fullmatch(text.strip(BLANKS))
    if found is None:
        raise ValueError("not a date such as 2024-02-29")
    return datetime.date(int(found[1]), int(found[2] or 1), int(found[3] or 1))


def time(precision: int) -> Parse:
    """Return a parser of times with a precision."""

    def parse(text: str) -> datetime.time:
        found = _TIME.fullmatch(text.strip(BLANKS))
        if found is None:
            raise ValueError("not a time such as 10:30:00")
        hour, minute, second = (int(part or 0) for part in found.groups()[:3])
        return datetime.time(hour, minute, second, micros(found[4] or "", min(precision, 3)))

    return parse


def micros(digits: str, precision: int) -> int:
    """Return the microseconds of the digits after a second, cut off at a precision.

    Raise ValueError if the precision asks for digits below a microsecond, which no column can hold.
    """
    if digits[6:precision].strip("0"):
        raise ValueError("more precise than a microsecond")
    return int(digits[: min(precision, 6)].ljust(6, "0") or 0)


def timestamp(precision: int) -> Parse:
    """Return a parser of timestamps with a precision."""

    def parse(text: str) -> datetime.datetime:
        found = _TIMESTAMP.fullmatch(text.strip(BLANKS))
        if found is None:
            raise ValueError("not a timestamp such as 2024-02-29 10:30:00")
        clock, _, fraction = (found[2] or "0:0:0").partition(".")
        hour, minute, second = map(int, clock.split(":"))
        return datetime.datetime.combine(
            _day(found[1]), datetime.time(hour, minute, second, micros(fraction, precision))
        )

    return parse


def _day(text: str) -> datetime.date:
    """Return a day. The 29th to 31st of a shorter month become its last day."""
    year, month, day = map(int, text.split("-"))
    last = calendar.monthrange(year, month)[1]
    return datetime.date(year, month, last if last < day <= 31 else day)


def local_timestamp(precision: int, zone: str) -> Parse:
    """Return a parser of local times of the session's zone."""
    parse, there = timestamp(precision), ZoneInfo(zone)
    return lambda text: parse(text).replace(tzinfo=there).astimezone(datetime.UTC)


def parser(kind: t.DataType, zone: str = "UTC") -> Parse:
    """Return a function that reads a text as a value of a type. It raises ValueError with the reason."""
    match kind:
        case t.BooleanType():
            return boolean
        case t.IntegralType():
            return whole(kind.bits)
        case t.FloatType() | t.DoubleType():
            return floating
        case t.DecimalType():
            return decimal(kind)
        case t.DateType():
            return date
        case t.TimeType():
            return time(kind.precision)
        case t.TimestampType():
            return timestamp(kind.precision)
        case t.LocalZonedTimestampType():
            return local_timestamp(kind.precision, zone)
    raise TypeError(f"a string cannot be cast to {kind.summary()}")
