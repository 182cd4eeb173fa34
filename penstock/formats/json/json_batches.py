"""Many messages of JSON, parsed in one call.

The parser of the standard library needs about half the time for one long array that it needs for the elements one by
one. The array is made of the messages themselves. Messages that are no JSON by themselves could still be JSON together:
`[1` and `2]`, for example. So a mark stands between any two messages, a number that nobody can know beforehand. If all
marks are found in their places, the text between two of them is one whole value.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Callable
from typing import Any

ParseStart = Callable[[str], tuple[Any, int]]
"""Parses the value at the beginning of a text. Returns the value and the position of its end."""

_MARK = (1 << 61) + secrets.randbits(61)
_PAIR = re.compile(r"\\u[dD][89abAB]..\\u[dD][c-fC-F]..")
_HALF = re.compile(r"\\u[dD][89a-fA-F]")


def parse_together(messages: list[bytes], parse_start: ParseStart) -> list[Any] | None:
    """Return the values of some messages; None if one of them is not one JSON value in UTF-8.

    Return None too if a message contains an unpaired surrogate, which an escape can express and Arrow cannot store.
    """
    try:
        text = (b"[" + (b",%d," % _MARK).join(messages) + b"]").decode()
        if has_half_character(text):
            return None
        values, end = parse_start(text)
    except (ValueError, ArithmeticError, RecursionError):
        return None
    marks = len(messages) - 1
    if end != len(text) or len(values) != 2 * marks + 1 or values[1::2].count(_MARK) != marks:
        return None
    return list(values[::2])


def has_half_character(text: str) -> bool:
    """Return True if a text may contain an escape for an unpaired surrogate."""
    if "\\ud" not in text and "\\uD" not in text:
        return False
    without_backslashes = text.replace("\\\\", " ")
    return _HALF.search(_PAIR.sub(" ", without_backslashes)) is not None
