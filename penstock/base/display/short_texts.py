"""Texts that are safe and short enough to be shown."""

from __future__ import annotations

import html
import re

MOST_IN_TOOLTIP = 1000
"""Greatest length of a tooltip, in characters."""
_INVISIBLE = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff]")
"""Characters that XML or UTF-8 do not allow, or that control a terminal."""


def printable(text: str) -> str:
    """Replace each character that cannot be shown by one that says so.

    >>> printable("a\\x00b")
    'a\ufffdb'
    """
    return _INVISIBLE.sub("\N{REPLACEMENT CHARACTER}", text)


def shorten(text: str, longest: int) -> str:
    """Return a text of at most `longest` characters. The last one is an ellipsis if there was more.

    >>> shorten("abcdef", 4), shorten("abcd", 4)
    ('abc…', 'abcd')
    """
    return text if len(text) <= longest else text[: max(longest - 1, 0)] + "…"


def shorten_middle(text: str, longest: int) -> str:
    """Return a text of at most `longest` characters, with an ellipsis in the place of its middle if there was more.

    >>> shorten_middle("datagen default.orders", 12)
    'datage…rders'
    """
    if len(text) <= longest:
        return text
    tail = (longest - 1) // 2
    return f"{text[: longest - 1 - tail]}…{text[len(text) - tail :]}"


def one_line(text: str) -> str:
    """Return a text with marks in the place of line breaks and tabs.

    >>> one_line("a\\nb\\tc")
    'a↵b⇥c'
    """
    return text.replace("\r\n", "↵").replace("\n", "↵").replace("\r", "↵").replace("\t", "⇥")


def escape(text: str) -> str:
    """Return the text with escapes, so that HTML and SVG show it unchanged."""
    return html.escape(printable(text))


def tooltip(text: str) -> str:
    """Return the attribute that shows a text when the mouse is over an element."""
    return f' title="{escape(shorten(text, MOST_IN_TOOLTIP))}"'


def count(number: int, noun: str) -> str:
    """Return a number with its noun.

    >>> count(1, "row"), count(1234, "row")
    ('1 row', '1,234 rows')
    """
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def size_text(size: float) -> str:
    """Return a number of bytes as text.

    >>> size_text(512), size_text(1_234_567)
    ('512 B', '1.23 MB')
    """
    for unit in ("B", "kB", "MB", "GB"):
        if size < 1000:
            return f"{size:.3g} {unit}"
        size /= 1000
    return f"{size:.3g} TB"


__all__ = ["count", "escape", "one_line", "printable", "shorten", "shorten_middle", "size_text", "tooltip"]
