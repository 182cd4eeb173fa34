"""The values that an option can have, and their description in errors."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from penstock.common.configuration import parse_duration
from penstock.errors import ConfigurationError
from penstock.service.launch.options import parse_memory_size


@dataclass(frozen=True)
class Values:
    """A kind of values. `allowed` completes the sentence "the option is ..."."""

    allowed: str
    is_right: Callable[[str], bool]


def words(*allowed: str) -> Values:
    """Return the values that are one of a few words, in any case."""
    text = f"{', '.join(allowed[:-1])} or {allowed[-1]}" if allowed[1:] else allowed[0]
    known = {word.upper() for word in allowed}
    return Values(text, lambda value: value.strip().upper() in known)


def whole(least: int | None = None) -> Values:
    """Return the values that are whole numbers."""

    def is_right(value: str) -> bool:
        try:
            number = int(value)
        except ValueError:
            return False
        return least is None or number >= least

    return Values("a whole number" if least is None else f"a whole number of at least {least}", is_right)


def _is_number(value: str) -> bool:
    try:
        float(value)
    except ValueError:
        return False
    return True


def _is_time(value: str) -> bool:
    try:
        return parse_duration(value) >= 0
    except (ConfigurationError, ValueError):
        return False


def _is_memory(value: str) -> bool:
    try:
        return parse_memory_size(value) >= 0
    except (ConfigurationError, ValueError):
        return False


def _is_zone(value: str) -> bool:
    from penstock.connectors.files.buckets import time_zone

    try:
        time_zone(value)
    except ValueError:
        return False
    return True


TRUTH = words("true", "false")
TIME = Values("a time of at least zero, such as '5 s'", _is_time)
NUMBER = Values("a number", _is_number)
MEMORY = Values("an amount of memory such as '64 kb'", _is_memory)
TEXT = Values("a text", lambda value: True)
NAME = Values("a name", lambda value: bool(value.strip()))
ZONE = Values("a time zone such as 'UTC', 'Europe/Oslo' or 'GMT-08:00'", _is_zone)
