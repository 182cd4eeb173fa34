"""PRINTF: the formats of Java's Formatter."""

from __future__ import annotations

import re
from decimal import Decimal
from typing import Any

from penstock.common.java_texts import double_text

_DIRECTIVE = re.compile(r"%(?:(\d+)\$)?([-#+ 0,(]*)(\d+)?(?:\.(\d+))?([a-zA-Z%])")


def printf(form: str | None, *values: Any) -> str | None:
    """Return the text with its directives replaced, or None if a value does not suit its directive."""
    if form is None:
        return None
    rest = iter(values)

    def put(found: re.Match[str]) -> str:
        number, flags, width, precision, letter = found.groups()
        if letter == "%":
            return _pad("%", flags, width)
        if letter == "n":
            return "\n"
        value = values[int(number) - 1] if number else next(rest)
        return _pad(_one(value, flags, width, precision, letter), flags, width)

    try:
        if re.search(r"%", _DIRECTIVE.sub("", form)):
            return None
        return _DIRECTIVE.sub(put, form)
    except (StopIteration, IndexError, TypeError, ValueError, RuntimeError):
        return None


def _one(value: Any, flags: str, width: str | None, precision: str | None, letter: str) -> str:
    if letter in "sS":
        text = _text(value)
        text = text if precision is None else text[: int(precision)]
        return text.upper() if letter == "S" else text
    if letter in "bB":
        return str(bool(value) if isinstance(value, bool) else value is not None).lower()
    if value is None:
        return "null"
    if letter in "dxXo":
        return _whole(value, flags, width, letter)
    if letter in "feEgG":
        return _fraction(value, flags, width, precision, letter)
    if letter in "cC":
        return chr(value) if isinstance(value, int) else str(value)
    raise ValueError(f"no directive %{letter}")


def _text(value: Any) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return str(value).lower()
    return double_text(value) if isinstance(value, float) else str(value)


def _whole(value: Any, flags: str, width: str | None, letter: str) -> str:
    if not isinstance(value, int) or isinstance(value, bool):
        raise TypeError("a whole number is needed")
    if letter != "d":
        return format(value & (2**32 - 1 if value >= -(2**31) else 2**64 - 1) if value < 0 else value, letter)
    return _zeros(format(value, ("+" if "+" in flags else "") + ("," if "," in flags else "") + "d"), flags, width)


def _fraction(value: Any, flags: str, width: str | None, precision: str | None, letter: str) -> str:
    if not isinstance(value, float | Decimal):
        raise TypeError("a fraction is needed")
    sign = ("+" if "+" in flags else "") + ("," if "," in flags else "")
    return _zeros(format(value, f"{sign}.{precision or 6}{letter}"), flags, width)


def _zeros(text: str, flags: str, width: str | None) -> str:
    return text.zfill(int(width)) if width and "0" in flags else text


def _pad(text: str, flags: str, width: str | None) -> str:
    if not width:
        return text
    return text.ljust(int(width)) if "-" in flags else text.rjust(int(width))
