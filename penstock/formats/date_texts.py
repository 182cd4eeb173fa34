"""Dates and times as text."""

from __future__ import annotations

import datetime
import re

from penstock.common.time import Instant

_INSTANT = re.compile(r"(\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d)(?:\.(\d{1,9}))?Z")
_EPOCH = datetime.datetime(1970, 1, 1)


def as_utc(value: datetime.datetime) -> datetime.datetime:
    """Return a time without a zone unchanged, and one with a zone as a time of UTC."""
    return value if value.tzinfo is None else value.astimezone(datetime.UTC).replace(tzinfo=None)


def timestamp_text(value: datetime.datetime) -> str:
    """Write a time as ISO 8601 without a zone, as of UTC, with no more digits than needed."""
    text = as_utc(value).isoformat()
    return text.rstrip("0") if value.microsecond else text


def time_text(value: datetime.time) -> str:
    """Write a time of day as ISO 8601, without its zone and with no more digits than needed."""
    text = value.replace(tzinfo=None).isoformat()
    return text.rstrip("0") if value.microsecond else text


def read_date(text: str) -> datetime.date:
    """Read a date of ISO 8601."""
    return datetime.date.fromisoformat(text)


def read_time(text: str) -> datetime.time:
    """Read a time of day of ISO 8601, with or without a Z."""
    return datetime.time.fromisoformat(text.removesuffix("Z"))


def read_timestamp(text: str) -> datetime.datetime:
    """Read a time of ISO 8601; one with a zone is converted to UTC."""
    return as_utc(datetime.datetime.fromisoformat(text))


def instant_from(text: str) -> Instant:
    """Read a moment such as 2024-05-01T10:00:00Z, with up to nine digits of a second."""
    found = _INSTANT.fullmatch(text)
    if found is None:
        raise ValueError(f"{text!r} is not a timestamp such as 2024-05-01T10:00:00Z")
    whole = datetime.datetime.fromisoformat(found[1]) - _EPOCH
    return Instant(whole.days * 86_400 + whole.seconds, int((found[2] or "").ljust(9, "0")))
