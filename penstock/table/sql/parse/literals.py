"""Literals: numbers, dates, times and intervals, with the types that Flink gives them."""

from __future__ import annotations

import datetime
import re
from decimal import Decimal
from typing import Any

from penstock.errors import SqlParserException, ValidationException
from penstock.table.sql.parse.tokens import Position
from penstock.table.types.data_types import (
    BigIntType,
    BinaryType,
    CharType,
    DataType,
    DateType,
    DayTimeIntervalType,
    DecimalType,
    DoubleType,
    IntType,
    Resolution,
    TimestampType,
    TimeType,
    YearMonthIntervalType,
)

MILLISECONDS = {"DAY": 86_400_000, "HOUR": 3_600_000, "MINUTE": 60_000, "SECOND": 1_000, "WEEK": 604_800_000}
MONTHS = {"YEAR": 12, "MONTH": 1, "QUARTER": 3}
_DAY_TIME = ["DAY", "HOUR", "MINUTE", "SECOND"]

Value = tuple[DataType, Any]


def number(text: str, at: Position) -> Value:
    """Return a number without sign.

    >>> number("1.50", Position())[0].as_sql()
    'DECIMAL(3, 2) NOT NULL'
    """
    if "e" in text.lower():
        return DoubleType(False), float(text)
    if "." in text and not text.endswith("."):
        scale = len(text) - text.index(".") - 1
        precision = max(len(text) - 1, scale)
        if precision > 38:
            raise ValidationException(f"{at}: {text} has more digits than a DECIMAL can hold, which is 38")
        return DecimalType(precision, scale, False), Decimal(text)
    return _whole(int(text.rstrip(".")), at)


def _whole(value: int, at: Position) -> Value:
    if value < 2**31:
        return IntType(False), value
    if value < 2**63:
        return BigIntType(False), value
    raise ValidationException(f"{at}: {value} is too large; the largest whole number is {2**63 - 1}")


def string(text: str) -> Value:
    """Return a text with its type."""
    return CharType(len(text), False), text


def binary(digits: str, at: Position) -> Value:
    """Return bytes from their hexadecimal digits."""
    if len(digits) % 2:
        raise SqlParserException(f"{at}: X'{digits}' needs an even number of digits")
    return BinaryType(len(digits) // 2, False), bytes.fromhex(digits)


def moment(kind: str, text: str, at: Position) -> Value:
    """Return the value of DATE '...', TIME '...' or TIMESTAMP '...'."""
    fraction = len(text.partition(".")[2])
    try:
        if kind == "DATE":
            return DateType(False), datetime.date.fromisoformat(text.strip())
        if kind != "DATE" and text.strip().partition(".")[2][6:].strip("0"):
            raise ValidationException(
                f"{at}: {kind} '{text}' is more precise than a microsecond, the smallest step of a {kind}; "
                "write at most six digits behind the second"
            )
        if kind == "TIME":
            return TimeType(fraction, False), datetime.time.fromisoformat(_cut(text.strip()))
        return TimestampType(fraction, False), _timestamp(text.strip())
    except ValueError as problem:
        raise ValidationException(f"{at}: '{text}' is no {kind}; it is written as {_FORMS[kind]}") from problem


_FORMS = {"DATE": "yyyy-MM-dd", "TIME": "HH:mm:ss", "TIMESTAMP": "yyyy-MM-dd HH:mm:ss.SSS"}


def _timestamp(text: str) -> datetime.datetime:
    if not re.fullmatch(r"\d{4}-\d{1,2}-\d{1,2}( \d{1,2}:\d{1,2}:\d{1,2}(\.\d{1,9})?)?", text):
        raise ValueError(text)
    day, _, clock = text.partition(" ")
    year, month, date = (int(part) for part in day.split("-"))
    hours, minutes, seconds = (clock or "0:0:0").split(":")
    whole, _, fraction = seconds.partition(".")
    micros = int(fraction[:6].ljust(6, "0"))
    return datetime.datetime(year, month, date, int(hours), int(minutes), int(whole), micros)


def _cut(text: str) -> str:
    """Return a time with six digits after the second. Python reads three or six."""
    whole, _, fraction = text.partition(".")
    return f"{whole}.{fraction[:6].ljust(6, '0')}" if fraction else whole


def interval(text: str, first: str, last: str, at: Position) -> Value:
    """Return the value of INTERVAL 'text' first TO last, in milliseconds or months.

    >>> interval("1:30", "MINUTE", "SECOND", Position())[1]
    90000
    """
    sign, digits = (-1, text.strip()[1:]) if text.strip().startswith("-") else (1, text.strip().removeprefix("+"))
    if first in MONTHS:
        return _months_type(first, last), sign * _months(digits, first, last, at)
    parts = _parts(digits, first, last, at)
    units = [first] if first == last else _DAY_TIME[_DAY_TIME.index(first) : _DAY_TIME.index(last) + 1]
    if len(parts) != len(units):
        raise _not_an_interval(digits, first, last, at)
    total = sum(Decimal(part) * MILLISECONDS[unit] for part, unit in zip(parts, units, strict=True))
    return _millis_type(first, last), sign * int(total)


def _parts(digits: str, first: str, last: str, at: Position) -> list[str]:
    parts = [part for part in re.split(r"[ :]", digits) if part]
    if not all(re.fullmatch(r"\d+(\.\d*)?", part) for part in parts) or (last != "SECOND" and "." in digits):
        raise _not_an_interval(digits, first, last, at)
    return parts


def _months(digits: str, first: str, last: str, at: Position) -> int:
    parts = digits.split("-")
    units = [first] if first == last else [first, last]
    if len(parts) != len(units) or not all(part.strip().isdigit() for part in parts):
        raise _not_an_interval(digits, first, last, at)
    return sum(int(part) * MONTHS[unit] for part, unit in zip(parts, units, strict=True))


def _months_type(first: str, last: str) -> DataType:
    names = {"QUARTER": "MONTH"}
    return YearMonthIntervalType(Resolution[names.get(first, first)], Resolution[names.get(last, last)], False)


def _millis_type(first: str, last: str) -> DataType:
    names = {"WEEK": "DAY"}
    return DayTimeIntervalType(Resolution[names.get(first, first)], Resolution[names.get(last, last)], False)


def _not_an_interval(digits: str, first: str, last: str, at: Position) -> ValidationException:
    unit = first if first == last else f"{first} TO {last}"
    return ValidationException(f"{at}: '{digits}' is no interval of {unit}")
