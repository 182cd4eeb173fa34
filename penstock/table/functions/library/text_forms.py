"""The conversion of values to text, for CAST to STRING."""

from __future__ import annotations

import datetime
from collections.abc import Callable
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np

from penstock.common.java_texts import double_text, java_text
from penstock.table.types import data_types as t

Form = Callable[[Any], str]


def float_text(value: float) -> str:
    """Return a float in Java's form: the fewest digits that distinguish it from its neighbours.

    >>> float_text(0.10000000149011612)
    '0.1'
    """
    return java_text(value, str(np.float32(value)))


def fraction_text(microsecond: int, precision: int) -> str:
    """Return the fraction of a second, with the point before it, or an empty text if the precision is 0."""
    return f".{microsecond:06d}000"[: precision + 1] if precision else ""


def timestamp_text(value: datetime.datetime, precision: int) -> str:
    """Return a timestamp as text."""
    day = f"{value.year:04d}-{value.month:02d}-{value.day:02d}"
    return f"{day} {value:%H:%M:%S}{fraction_text(value.microsecond, precision)}"


def time_text(value: datetime.time, precision: int) -> str:
    """Return a time as text."""
    return f"{value:%H:%M:%S}{fraction_text(value.microsecond, precision)}"


def day_time_text(value: datetime.timedelta) -> str:
    """Return an interval of days to seconds as text.

    >>> day_time_text(datetime.timedelta(hours=-1))
    '-0 01:00:00.000'
    """
    millis = round(value / datetime.timedelta(milliseconds=1))
    sign, millis = ("-" if millis < 0 else "+"), abs(millis)
    seconds, millis = divmod(millis, 1000)
    minutes, seconds = divmod(seconds, 60)
    hours, minutes = divmod(minutes, 60)
    days, hours = divmod(hours, 24)
    return f"{sign}{days} {hours:02d}:{minutes:02d}:{seconds:02d}.{millis:03d}"


def year_month_text(months: int) -> str:
    """Return an interval of years and months as text."""
    years, rest = divmod(abs(months), 12)
    return f"{'-' if months < 0 else '+'}{years}-{rest:02d}"


def text_form(kind: t.DataType, zone: str = "UTC") -> Form:
    """Return a function that writes values of a type."""
    match kind:
        case t.CharType() | t.VarCharType():
            return str
        case t.BooleanType():
            return lambda value: "TRUE" if value else "FALSE"
        case t.IntegralType():
            return str
        case t.FloatType():
            return float_text
        case t.DoubleType():
            return double_text
        case t.DecimalType():
            return lambda value: format(value, "f")
        case t.BinaryType() | t.VarBinaryType():
            return lambda value: value.decode("utf-8", "replace")
        case t.DateType():
            return lambda value: f"{value.year:04d}-{value.month:02d}-{value.day:02d}"
        case t.TimeType():
            return lambda value: time_text(value, kind.precision)
        case t.TimestampType():
            return lambda value: timestamp_text(value, kind.precision)
        case t.LocalZonedTimestampType():
            there = ZoneInfo(zone)
            return lambda value: timestamp_text(value.astimezone(there), kind.precision)
        case t.DayTimeIntervalType():
            return day_time_text
        case t.YearMonthIntervalType():
            return year_month_text
        case t.ArrayType():
            element = _or_null(kind.element_type, zone)
            return lambda value: f"[{', '.join(map(element, value))}]"
        case t.MultisetType():
            element = _or_null(kind.element_type, zone)
            return lambda value: f"{{{', '.join(f'{element(one)}={count}' for one, count in value.items())}}}"
        case t.MapType():
            key, part = _or_null(kind.key_type, zone), _or_null(kind.value_type, zone)
            return lambda value: f"{{{', '.join(f'{key(one)}={part(other)}' for one, other in value.items())}}}"
        case t.RowType():
            parts = [_or_null(field.data_type, zone) for field in kind.fields]
            return lambda value: f"({', '.join(form(one) for form, one in zip(parts, value, strict=True))})"
    return str


def _or_null(kind: t.DataType, zone: str) -> Form:
    form = text_form(kind, zone)
    return lambda value: "NULL" if value is None else form(value)
