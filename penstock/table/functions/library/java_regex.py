"""Java's regular expressions, converted for Python's engine."""

from __future__ import annotations

import functools
import re

_CLASSES = {
    "Lower": "a-z",
    "Upper": "A-Z",
    "Alpha": "a-zA-Z",
    "Digit": "0-9",
    "Alnum": "a-zA-Z0-9",
    "Punct": re.escape("!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~"),
    "Space": r" \t\n\x0b\f\r",
    "Blank": r" \t",
    "XDigit": "0-9a-fA-F",
    "L": r"^\W\d_",
    "IsAlphabetic": r"^\W\d_",
}
_NAMED = re.compile(r"\(\?<([A-Za-z]\w*)>")
_QUOTED = re.compile(r"\\Q(.*?)(?:\\E|$)", re.DOTALL)
_PROPERTY = re.compile(r"\\p\{(\w+)\}")


@functools.lru_cache(maxsize=256)
def compile_regex(pattern: str) -> re.Pattern[str]:
    """Return the pattern for Python. Raise re.error if it is not valid. Classes are those of ASCII, as in Java."""
    pattern = _QUOTED.sub(lambda found: re.escape(found[1]), pattern)
    pattern = _NAMED.sub(r"(?P<\1>", pattern)
    pattern = _PROPERTY.sub(_property, pattern)
    pattern = pattern.replace(r"\z", r"\Z")
    return re.compile(pattern, re.ASCII)


def _property(found: re.Match[str]) -> str:
    known = _CLASSES.get(found[1])
    if known is None:
        raise re.error(f"unknown property {found[1]}")
    return f"[{known}]"
