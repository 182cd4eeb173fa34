"""The tokens of a text, by sqlglot's tokenizer with Flink's lexical rules, and their positions."""

from __future__ import annotations

import bisect
from dataclasses import dataclass
from typing import Any

from sqlglot.errors import TokenError
from sqlglot.tokenizer_core import Token as SqlglotToken
from sqlglot.tokenizer_core import TokenType
from sqlglot.tokens import Tokenizer

from penstock.errors import SqlParserException

WORD, QUOTED, STRING, NUMBER, HEX, SYMBOL, HINT, END = "word", "quoted", "string", "number", "hex", "symbol", "hint", ""

_KINDS = {
    TokenType.STRING: STRING,
    TokenType.UNICODE_STRING: STRING,
    TokenType.NUMBER: NUMBER,
    TokenType.HEX_STRING: HEX,
    TokenType.IDENTIFIER: QUOTED,
    TokenType.HINT: HINT,
}


class FlinkTokenizer(Tokenizer):
    """A tokenizer without keywords. The parser decides by the context which words have a meaning."""

    IDENTIFIERS = ["`"]
    QUOTES = ["'"]
    STRING_ESCAPES = ["'"]
    HEX_STRINGS = [("x'", "'"), ("X'", "'")]
    UNICODE_STRINGS = [("u&'", "'"), ("U&'", "'")]
    COMMENTS = ["--", "//", ("/*", "*/")]
    TOKENS_PRECEDING_HINT = {TokenType.VAR, TokenType.IDENTIFIER, TokenType.R_PAREN}
    KEYWORDS = {
        "/*+": TokenType.HINT,
        "||": TokenType.DPIPE,
        "<>": TokenType.NEQ,
        "!=": TokenType.NEQ,
        "<=": TokenType.LTE,
        ">=": TokenType.GTE,
        "=>": TokenType.FARROW,
    }


@dataclass(frozen=True, order=True)
class Position:
    """A position in the text. Lines and columns count from 1."""

    line: int = 1
    column: int = 1

    def __str__(self) -> str:
        return f"line {self.line}, column {self.column}"


@dataclass(frozen=True)
class Token:
    """A token with its position."""

    kind: str
    text: str
    start: int
    end: int
    at: Position

    @property
    def upper(self) -> str:
        """The word in capitals, or an empty string for other tokens."""
        return self.text.upper() if self.kind == WORD else ""

    def describe(self) -> str:
        """Return the text of the token for errors."""
        if self.kind == END:
            return "the end of the text"
        return f"'{self.text}'" if self.kind == STRING else f'"{self.text}"'


class Lines:
    """Converts offsets in a text to positions."""

    def __init__(self, text: str) -> None:
        self._starts = [0, *(index + 1 for index, sign in enumerate(text) if sign == "\n")]

    def position(self, offset: int) -> Position:
        """Return the position of an offset."""
        line = bisect.bisect_right(self._starts, offset)
        return Position(line, offset - self._starts[line - 1] + 1)


def tokens(text: str) -> list[Token]:
    """Return the tokens of a text. The last one marks its end."""
    lines = Lines(text)
    try:
        found = FlinkTokenizer().tokenize(text)
    except TokenError as problem:
        raise _unreadable(text, lines) from problem
    made = [_token(one, text, lines) for one in found]
    return [*made, Token(END, "", len(text), len(text), lines.position(len(text.rstrip())))]


def _token(one: SqlglotToken, text: str, lines: Lines) -> Token:
    kind = _KINDS.get(one.token_type)
    if kind is None:
        kind = WORD if one.text[:1].isalpha() or one.text[:1] in {"_", "$"} else SYMBOL
    value: Any = one.text
    if one.token_type is TokenType.UNICODE_STRING:
        value = _unicode(value)
    return Token(kind, value, one.start, one.end + 1, lines.position(one.start))


def _unicode(text: str) -> str:
    r"""Return the text of a U&'...' string, with \XXXX replaced by characters."""
    parts = text.split("\\")
    return parts[0] + "".join(chr(int(part[:4], 16)) + part[4:] for part in parts[1:])


def _unreadable(text: str, lines: Lines) -> SqlParserException:
    """Return the error for a quote or comment that never ends: the last one that was opened."""
    for sign, name in (("/*", "comment"), ("'", "string"), ("`", "quoted name")):
        ends = "*/" if sign == "/*" else sign
        if text.count(sign) > text.count(ends) or (sign == ends and text.count(sign) % 2):
            return SqlParserException(
                f"{lines.position(text.rindex(sign))}: this {name} does not end; {ends} is missing"
            )
    return SqlParserException("line 1, column 1: the text cannot be split into words")
