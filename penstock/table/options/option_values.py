"""Parsers of the values of options `table.*`. They check a text and return it unchanged."""

from __future__ import annotations

from collections.abc import Callable

from penstock.base.options.option import Parser
from penstock.base.options.parsers import parse_duration, parse_memory_size
from penstock.errors import ConfigurationError


def _checked(allowed: str, is_right: Callable[[str], object]) -> Parser[str]:
    """Return a parser of the texts for which a function is true and raises no error."""

    def parse(text: str) -> str:
        try:
            right = is_right(text)
        except (ConfigurationError, ValueError):
            right = False
        if not right:
            raise ValueError(f"it must be {allowed}")
        return text

    return parse


def words(*allowed: str) -> Parser[str]:
    """Return a parser of a few words, in any case."""
    listed = f"{', '.join(allowed[:-1])} or {allowed[-1]}" if allowed[1:] else allowed[0]
    known = {word.upper() for word in allowed}
    return _checked(listed, lambda text: text.strip().upper() in known)


def whole(least: int | None = None) -> Parser[str]:
    """Return a parser of whole numbers."""
    allowed = "a whole number" if least is None else f"a whole number of at least {least}"
    return _checked(allowed, lambda text: int(text) >= (int(text) if least is None else least))


def _is_zone(text: str) -> bool:
    from penstock.connectors.files.buckets import time_zone

    time_zone(text)
    return True


TRUTH = words("true", "false")
TIME = _checked("a time of at least zero, such as '5 s'", lambda text: parse_duration(text) >= 0)
NUMBER = _checked("a number", lambda text: [float(text)])
MEMORY = _checked("an amount of memory such as '64 kb'", lambda text: parse_memory_size(text) >= 0)
TEXT = _checked("a text", lambda text: True)
NAME = _checked("a name", str.strip)
ZONE = _checked("a time zone such as 'UTC', 'Europe/Oslo' or 'GMT-08:00'", _is_zone)
