"""A cursor over tokens. It tests and consumes tokens, and reports errors with the tokens that are allowed."""

from __future__ import annotations

import difflib
from typing import TYPE_CHECKING, NoReturn

from penstock.errors import SqlParserException, TableException
from penstock.table.sql.parse.problems import SqlParserEOFException
from penstock.table.sql.parse.reserved import RESERVED
from penstock.table.sql.parse.tokens import END, HINT, NUMBER, QUOTED, STRING, SYMBOL, WORD, Position, Token, tokens

if TYPE_CHECKING:
    from penstock.table.sql.parse.grammar import Grammar

_SHOWN = 10
"""Maximum number of expected tokens that an error lists."""


class Cursor:
    """A position among the tokens of a text.

    The cursor remembers every test, so that an error can list the tokens that are allowed.
    """

    def __init__(self, text: str, grammar: Grammar | None = None) -> None:
        """Create a cursor at the start of a text. Without a grammar, only types and names can be parsed."""
        self.text = text
        self._grammar = grammar
        self.tokens = tokens(text)
        self.index = 0
        self._tried: dict[str, None] = {}
        self._tried_at = 0

    @property
    def grammar(self) -> Grammar:
        """The parsers of what expressions contain."""
        assert self._grammar is not None, "this cursor has no grammar of expressions"
        return self._grammar

    # --- looking ---
    @property
    def token(self) -> Token:
        """The current token."""
        return self.tokens[self.index]

    @property
    def at(self) -> Position:
        """The position of the current token in the text."""
        return self.token.at

    def ahead(self, count: int = 1) -> Token:
        """Return a later token, or the last one."""
        return self.tokens[min(self.index + count, len(self.tokens) - 1)]

    def sees(self, *words: str) -> bool:
        """Return True if these words come next."""
        self._try(" ".join(words))
        return all(self.ahead(count).upper == word for count, word in enumerate(words))

    def sees_any(self, *words: str) -> bool:
        """Return True if one of these words comes next."""
        found = [self.sees(word) for word in words]
        return any(found)

    def sees_symbol(self, symbol: str) -> bool:
        """Return True if a symbol comes next."""
        self._try(f'"{symbol}"')
        return self.token.kind == SYMBOL and self.token.text == symbol

    def _try(self, what: str) -> None:
        if self._tried_at != self.index:
            self._tried, self._tried_at = {}, self.index
        self._tried[what] = None

    # --- taking ---
    def advance(self) -> Token:
        """Return the current token, and move to the next one."""
        token = self.token
        if token.kind != END:
            self.index += 1
        return token

    def accept(self, *words: str) -> bool:
        """Return True and consume these words if they come next."""
        found = self.sees(*words)
        if found:
            self.index += len(words)
        return found

    def accept_any(self, *words: str) -> str | None:
        """Consume and return the current word if it is one of these, otherwise return None."""
        return next((word for word in words if self.accept(word)), None)

    def accept_symbol(self, symbol: str) -> bool:
        """Return True and consume a symbol if it comes next."""
        found = self.sees_symbol(symbol)
        if found:
            self.index += 1
        return found

    def expect(self, *words: str) -> None:
        """Consume these words, or fail."""
        if not self.accept(*words):
            self.fail()

    def expect_any(self, *words: str) -> str:
        """Consume and return one of these words, or fail."""
        return self.accept_any(*words) or self.fail()

    def expect_symbol(self, symbol: str) -> None:
        """Consume a symbol, or fail."""
        if not self.accept_symbol(symbol):
            self.fail()

    def string(self) -> str:
        """Consume a string, and return its text."""
        self._try("a string in quotes")
        if self.token.kind != STRING:
            self.fail()
        return self.advance().text

    def whole_number(self) -> int:
        """Consume and return a whole number."""
        self._try("a whole number")
        if self.token.kind != NUMBER or not self.token.text.isdigit():
            self.fail()
        return int(self.advance().text)

    # --- names ---
    def sees_name(self) -> bool:
        """Return True if a name can start here."""
        self._try("a name")
        return self.token.kind == QUOTED or (self.token.kind == WORD and self.token.upper not in RESERVED)

    def name(self) -> str:
        """Consume and return a name."""
        if not self.sees_name():
            self.fail()
        return self.advance().text

    def path(self) -> tuple[str, ...]:
        """Consume and return names with dots between them."""
        parts = [self.name()]
        while self.accept_symbol("."):
            parts.append(self.name())
        return tuple(parts)

    def names(self) -> tuple[str, ...]:
        """Consume and return names in brackets."""
        self.expect_symbol("(")
        parts = [self.name()]
        while self.accept_symbol(","):
            parts.append(self.name())
        self.expect_symbol(")")
        return tuple(parts)

    # --- errors ---
    def fail(self, expected: str = "") -> NoReturn:
        """Raise an error with the current token and the allowed ones."""
        kind = SqlParserEOFException if self.token.kind == END else SqlParserException
        raise kind(f"{self.at}: {self.complaint(expected)}")

    def refuse(self, what: str) -> NoReturn:
        """Raise an error for syntax that is understood but not supported. It has Flink's class for that."""
        raise TableException(f"{self.at}: {what} not supported")

    def complaint(self, expected: str) -> str:
        """Return the text of an error: the current token, and what is allowed instead."""
        tried = list(self._tried) if self._tried_at == self.index else []
        likely = tried[-1:] + tried[:-1]
        wanted = expected or ", ".join(likely[:_SHOWN]) + (", ..." if len(tried) > _SHOWN else "")
        return f"found {self.token.describe()}{self._hint(tried)}" + (f"; expected {wanted}" if wanted else "")

    def _hint(self, tried: list[str]) -> str:
        """Return a probable correction of the current word, or a note that the word is reserved."""
        word = self.token.upper
        if word in RESERVED and "a name" in tried:
            return f", which is a reserved word (write `{self.token.text}` if it is a name)"
        words = [one for one in tried if one.isupper() and one != word]
        close = difflib.get_close_matches(word, words, 1, 0.7) if word else []
        return f" (did you mean {close[0]}?)" if close else ""

    def text_since(self, start: int) -> str:
        """Return the text from the token with this index up to here, as it was written."""
        return self.text[self.tokens[start].start : self.tokens[self.index - 1].end]

    def sees_hint(self) -> bool:
        """Return True if a hint comes next."""
        return self.token.kind == HINT
