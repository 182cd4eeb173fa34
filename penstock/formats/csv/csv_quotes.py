"""The quoting of CSV fields."""

from __future__ import annotations

import re
from dataclasses import dataclass

from penstock.errors import TypeMismatch

_LONGEST_BARE = 24
_BACKSLASH = "\\"


@dataclass(frozen=True)
class Dialect:
    """The characters that separate and mark the fields of a line."""

    delimiter: str = ","
    quote: str | None = '"'
    escape: str | None = None
    null_literal: str | None = None
    comments: bool = False

    def __post_init__(self) -> None:
        if len(self.marks) != len([mark for mark in (self.delimiter, self.quote, self.escape) if mark is not None]):
            raise ValueError(f"delimiter, quote and escape character must differ, but are {sorted(self.marks)}")

    @property
    def marks(self) -> set[str]:
        """Characters with a meaning in this dialect."""
        return {mark for mark in (self.delimiter, self.quote, self.escape) if mark is not None}


class Quotes:
    """Puts texts into quotes.

    Texts are treated as in Flink, whose rule is broad. A text is quoted if it is longer than 24 units of UTF-16, or if
    it contains the escape character (a backslash, if there is none) or any character up to the greater of delimiter and
    quote character. So a space is quoted between commas, and every ASCII letter between bars. An empty text is never
    quoted.

    If quotes are disabled, Flink writes lines that nobody can read again. Here the escape character protects characters
    that would end a field. Without an escape character, such a text is refused.
    """

    def __init__(self, dialect: Dialect) -> None:
        self._dialect = dialect
        greatest = max(dialect.delimiter, dialect.quote or "", "\r")
        suspicious = re.escape(greatest) + re.escape(dialect.escape or _BACKSLASH)
        self._suspicious = re.compile(f"[\0-{suspicious}]")
        self._special = re.compile("[" + "".join(map(re.escape, dialect.marks | {"\r", "\n"})) + "]")

    def text(self, text: str) -> str:
        """Return the field of a text, by Flink's rule."""
        if self._dialect.quote is None:
            return self.bare(text)
        if self._suspicious.search(text) is None and _units(text) <= _LONGEST_BARE:
            return text
        return self._quote(text, self._dialect.quote)

    def bare(self, text: str) -> str:
        """Return the field of a number or the null literal. It is quoted only if it could not be read otherwise."""
        if self._special.search(text) is None:
            return text
        if self._dialect.quote is not None:
            return self._quote(text, self._dialect.quote)
        return self._escape(text)

    def _quote(self, text: str, quote: str) -> str:
        escape = self._dialect.escape
        if escape is not None:
            text = text.replace(escape, escape * 2)
        return f"{quote}{text.replace(quote, quote * 2)}{quote}"

    def _escape(self, text: str) -> str:
        escape = self._dialect.escape
        if escape is None:
            raise TypeMismatch(
                f"{text[:60]!r} ends a field or line, and neither a quote nor an escape character is set"
            )
        return self._special.sub(lambda found: f"{escape}{found[0]}", text)


def _units(text: str) -> int:
    """Return the length of a text in Java."""
    return len(text) if text.isascii() else len(text.encode("utf-16-le", "surrogatepass")) // 2
