"""Parsers of the texts of options. Each raises ValueError, with the values that are allowed, for another text."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from typing import TypeVar

from penstock.base.options.option import Parser
from penstock.errors import ConfigurationError

T = TypeVar("T")


# --- words and texts ---
def choice(values: Mapping[str, T]) -> Parser[T]:
    """Return a parser of a few words. It ignores case and treats '-' and '_' alike."""
    known = {_plain(word): value for word, value in values.items()}

    def parse(text: str) -> T:
        if _plain(text) not in known:
            raise ValueError(f"it must be one of {', '.join(values)}")
        return known[_plain(text)]

    return parse


def words(*allowed: str) -> Parser[str]:
    """Return a parser of a few words, whose values are the words themselves."""
    return choice({word: word for word in allowed})


def _plain(word: str) -> str:
    return word.strip().lower().replace("_", "-")


truth = choice({"true": True, "false": False})


def some_text(text: str) -> str:
    """Return the text without surrounding blanks. Raise ValueError if nothing is left."""
    return check(text.strip(), bool, "a text that is not empty")


def check(value: T, fits: Callable[[T], bool], allowed: str) -> T:
    """Return the value if it fits. Raise ValueError with what is allowed if not."""
    if not fits(value):
        raise ValueError(f"it must be {allowed}")
    return value


# --- numbers ---
def whole(text: str) -> int:
    """Parse a whole number."""
    if not re.fullmatch(r"\s*[+-]?\d+\s*", text):
        raise ValueError("it must be a whole number")
    return int(text)


def positive(text: str) -> int:
    """Parse a whole number above 0."""
    return check(whole(text), lambda number: number > 0, "a whole number above 0")


def not_negative(text: str) -> int:
    """Parse a whole number of at least 0."""
    return check(whole(text), lambda number: number >= 0, "a whole number of at least 0")


def number(text: str) -> float:
    """Parse a finite number."""
    try:
        return check(float(text), math.isfinite, "a number")
    except ValueError:
        raise ValueError("it must be a number") from None


# --- times and sizes ---
_UNIT_NANOS = {
    unit: nanos
    for units, nanos in [
        ("d day days", 86_400_000_000_000),
        ("h hour hours", 3_600_000_000_000),
        ("m min minute minutes", 60_000_000_000),
        ("s sec second seconds", 1_000_000_000),
        ("ms milli millis millisecond milliseconds", 1_000_000),
        ("µs micro micros microsecond microseconds", 1_000),
        ("ns nano nanos nanosecond nanoseconds", 1),
    ]
    for unit in units.split()
}
_MEMORY_UNITS = {
    unit: 1 << power
    for units, power in [
        ("b bytes", 0),
        ("k kb kibibytes", 10),
        ("m mb mebibytes", 20),
        ("g gb gibibytes", 30),
        ("t tb tebibytes", 40),
    ]
    for unit in units.split()
}


def parse_duration(text: str) -> int:
    """Return the milliseconds of a text such as `200 ms`, `1 min` or `5s`. A number without a unit is milliseconds."""
    match = re.fullmatch(r"\s*(\d+)\s*([a-zµ]*)\s*", text.lower())
    unit = (match[2] or "ms") if match else ""
    if match is None or unit not in _UNIT_NANOS:
        raise ConfigurationError(f"{text!r} is not a duration; write a whole number and d, h, min, s, ms, µs or ns")
    return int(match[1]) * _UNIT_NANOS[unit] // 1_000_000


def some_time(text: str) -> int:
    """Parse a duration of at least 1 ms. Return milliseconds."""
    return check(parse_duration(text), lambda millis: millis > 0, "at least 1 ms")


def parse_memory_size(text: str) -> int:
    """Return the bytes that a text such as `200 mb` or `1g` means.

    A number without a unit counts bytes. A kb has 1024 bytes.
    """
    match = re.fullmatch(r"\s*(\d+)\s*([a-z]*)\s*", text.lower())
    unit = (match[2] or "b") if match else ""
    if match is None or unit not in _MEMORY_UNITS:
        raise ValueError("it must be a whole number followed by b, kb, mb, gb or tb")
    return int(match[1]) * _MEMORY_UNITS[unit]
