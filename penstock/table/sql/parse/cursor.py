"""Going through tokens: what stands here, what may stand here, and what to say if something else does."""

from __future__ import annotations

import difflib
from typing import NoReturn

from penstock.errors import SqlParserException, TableException
from penstock.table.sql.parse.problems import SqlParserEOFException
from penstock.table.sql.parse.reserved import RESERVED
from penstock.table.sql.parse.tokens import END, HINT, NUMBER, QUOTED, STRING, SYMBOL, WORD, Position, Token, tokens

_SHOWN = 10
"""How many of the things that were expected an error lists."""


class Cursor:
    """A place among the tokens of a text.

    Every question whether something stands here is remembered, so that an error can list what would have been right.
    """

    def __init__(self, text: str) -> None:
        self.text = text
        self.tokens = tokens(text)
        self.index = 0
        self._tried: dict[str, None] = {}
        self._tried_at = 0

    # --- looking ---
    @property
    def token(self) -> Token:
        return self.tokens[self.index]

    @property
    def at(self) -> Position:
        return self.token.at

    def ahead(self, count: int = 1) -> Token:
        return self.tokens[min(self.index + count, len(self.tokens) - 1)]

    def sees(self, *words: str) -> bool:
        """Whether these words come next."""
        self._try(" ".join(words))
        return all(self.ahead(count).upper == word for count, word in enumerate(words))

    def sees_any(self, *words: str) -> bool:
        found = [self.sees(word) for word in words]
        return any(found)

    def sees_symbol(self, symbol: str) -> bool:
        self._try(f'"{symbol}"')
        return self.token.kind == SYMBOL and self.token.text == symbol

    def _try(self, what: str) -> None:
        if self._tried_at != self.index:
            self._tried, self._tried_at = {}, self.index
        self._tried[what] = None

    # --- taking ---
    def advance(self) -> Token:
        token = self.token
        if token.kind != END:
            self.index += 1
        return token

    def accept(self, *words: str) -> bool:
        found = self.sees(*words)
        if found:
            self.index += len(words)
        return found

    def accept_any(self, *words: str) -> str | None:
        """The word that stands here, if it is one of these."""
        return next((word for word in words if self.accept(word)), None)

    def accept_symbol(self, symbol: str) -> bool:
        found = self.sees_symbol(symbol)
        if found:
            self.index += 1
        return found

    def expect(self, *words: str) -> None:
        if not self.accept(*words):
            self.fail()

    def expect_any(self, *words: str) -> str:
        return self.accept_any(*words) or self.fail()

    def expect_symbol(self, symbol: str) -> None:
        if not self.accept_symbol(symbol):
            self.fail()

    def string(self) -> str:
        self._try("a string in quotes")
        if self.token.kind != STRING:
            self.fail()
        return self.advance().text

    def whole_number(self) -> int:
        self._try("a whole number")
        if self.token.kind != NUMBER or not self.token.text.isdigit():
            self.fail()
        return int(self.advance().text)

    # --- names ---
    def sees_name(self) -> bool:
        """Whether a name can start here."""
        self._try("a name")
        return self.token.kind == QUOTED or (self.token.kind == WORD and self.token.upper not in RESERVED)

    def name(self) -> str:
        if not self.sees_name():
            self.fail()
        return self.advance().text

    def path(self) -> tuple[str, ...]:
        """Names with dots between them."""
        parts = [self.name()]
        while self.accept_symbol("."):
            parts.append(self.name())
        return tuple(parts)

    def names(self) -> tuple[str, ...]:
        """Names in brackets."""
        self.expect_symbol("(")
        parts = [self.name()]
        while self.accept_symbol(","):
            parts.append(self.name())
        self.expect_symbol(")")
        return tuple(parts)

    # --- errors ---
    def fail(self, expected: str = "") -> NoReturn:
        """Says what stands here and what would have been right."""
        kind = SqlParserEOFException if self.token.kind == END else SqlParserException
        raise kind(f"{self.at}: {self._complaint(expected)}")

    def refuse(self, what: str) -> NoReturn:
        """Says that what stands here is understood, but not offered; of Flink's class for that."""
        raise TableException(f"{self.at}: {what} not supported")

    def _complaint(self, expected: str) -> str:
        tried = list(self._tried) if self._tried_at == self.index else []
        likely = tried[-1:] + tried[:-1]
        wanted = expected or ", ".join(likely[:_SHOWN]) + (", ..." if len(tried) > _SHOWN else "")
        return f"found {self.token.describe()}{self._hint(tried)}" + (f"; expected {wanted}" if wanted else "")

    def _hint(self, tried: list[str]) -> str:
        """A word that was probably meant, or that the word is reserved."""
        word = self.token.upper
        if word in RESERVED and "a name" in tried:
            return f", which is a reserved word (write `{self.token.text}` if it is a name)"
        words = [one for one in tried if one.isupper() and one != word]
        close = difflib.get_close_matches(word, words, 1, 0.7) if word else []
        return f" (did you mean {close[0]}?)" if close else ""

    def text_since(self, start: int) -> str:
        """The text from the token of this index up to here, as it was written."""
        return self.text[self.tokens[start].start : self.tokens[self.index - 1].end]

    def sees_hint(self) -> bool:
        return self.token.kind == HINT
