"""Tokens of the text form of a pattern, and errors with their position."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import NoReturn, TypeVar

from penstock.errors import MalformedPatternException, UnsupportedOperation

T = TypeVar("T")
_TOKEN = re.compile(
    r"\s*(?:(?P<number>\d+(?:\.\d+)?)|(?P<text>'(?:[^']|'')*')|(?P<name>[^\W\d]\w*)"
    r"|(?P<sign>->>|!->|!=>|->|=>|<=|>=|!=|[-+*/%(){}?,.=<>])|(?P<end>$)|(?P<wrong>.))",
    re.DOTALL,
)


@dataclass(frozen=True)
class Token:
    """A piece of the text, and where it begins."""

    kind: str
    text: str
    position: int


class Reader:
    """A reader that returns tokens one by one."""

    def __init__(self, text: str) -> None:
        if not isinstance(text, str):
            raise TypeError(f"a pattern as text must be a str, not {text!r}")
        self._text = text
        self._tokens = list(self._cut())
        self._next = 0

    def _cut(self) -> Iterator[Token]:
        position = 0
        while True:
            found = _TOKEN.match(self._text, position)
            assert found is not None and found.lastgroup is not None
            token = Token(found.lastgroup, found[found.lastgroup], found.start(found.lastgroup))
            if token.kind == "wrong":
                self.fail(f"{token.text!r} has no meaning here", token)
            yield token
            if token.kind == "end":
                return
            position = found.end()

    # --- looking and taking ---
    @property
    def token(self) -> Token:
        """The next token."""
        return self._tokens[self._next]

    def take(self, text: str) -> bool:
        """Take the next token if it is this sign or word. Return True if it is."""
        return self.take_one_of(text) is not None

    def take_one_of(self, *texts: str) -> str | None:
        """Take the next token if it is one of these texts, and return it. Otherwise return None."""
        token = self.token
        if token.kind not in ("name", "sign") or token.text not in texts:
            return None
        self._next += 1
        return token.text

    def take_kind(self, kind: str) -> str | None:
        """Take the next token if it is of this kind, and return its text. Otherwise return None."""
        token = self.token
        if token.kind != kind:
            return None
        self._next += kind != "end"
        return token.text

    def expect(self, text: str) -> None:
        """Take the next token, which must be this text."""
        self.expect_one_of(text)

    def expect_one_of(self, *texts: str) -> str:
        """Take the next token, which must be one of these texts, and return it."""
        taken = self.take_one_of(*texts)
        if taken is None:
            self.fail(f"expected {' or '.join(repr(text) for text in texts)}")
        return taken

    def name(self, what: str) -> str:
        """Take the next token, which must be a name, and return it. An error calls the expected name `what`."""
        return self.take_kind("name") or self.fail(f"expected {what}")

    def number(self) -> float:
        """Take the next token, which must be a number, and return it."""
        return float(self.take_kind("number") or self.fail("expected a number"))

    def whole_number(self) -> int:
        """Take the next token, which must be a whole number, and return it."""
        token = self.token
        number = self.number()
        return int(number) if number == int(number) else self.fail("expected a whole number", token)

    def expect_end(self) -> None:
        """Raise an error unless the text ends here."""
        if self.token.kind != "end":
            self.fail("expected an arrow such as -> or the end")

    # --- looking ahead ---
    def names_behind(self, *signs: str) -> Iterator[str]:
        """Yield the name at the beginning and the names after these signs. Parentheses may lie between."""
        expected = True
        for token in self._tokens:
            if expected and token.kind == "name":
                yield token.text
            expected = token.text in signs or (expected and token.text == "(")

    def cut_off(self, words: tuple[str, ...], read: Callable[[Reader], T]) -> T | None:
        """Read the text from one of these words on with another function, and end the remaining text before it."""
        outside = [i for i, token in enumerate(self._tokens) if token.kind == "name" and token.text in words]
        starts = [i for i in outside if i > 0 and self._tokens[i - 1].text not in ("(", ".", "->", "=>", "->>")]
        if not starts or self._depth(starts[0]) != 0:
            return None
        here, self._next = self._next, starts[0]
        result = read(self)
        self.expect_end()
        self._next = here
        del self._tokens[starts[0] : -1]
        return result

    def _depth(self, index: int) -> int:
        texts = [token.text for token in self._tokens[:index] if token.kind == "sign"]
        return texts.count("(") - texts.count(")")

    # --- errors ---
    @contextmanager
    def errors_here(self) -> Iterator[None]:
        """Report errors of Pattern's methods at the beginning of the element."""
        token = self.token
        try:
            yield
        except PatternSyntaxError:
            raise
        except (MalformedPatternException, UnsupportedOperation, ValueError) as error:
            self.fail(str(error), token)

    def fail(self, why: str, token: Token | None = None) -> NoReturn:
        """Raise PatternSyntaxError at a token, by default the next one."""
        at = self.token if token is None else token
        found = "the end" if at.kind == "end" else repr(at.text)
        before = self._text[: at.position]
        line, column = before.count("\n") + 1, at.position - (before.rfind("\n") + 1) + 1
        shown = self._text.splitlines()[line - 1] if self._text else ""
        raise PatternSyntaxError(
            f"line {line}, column {column}, at {found}: {why}\n  {shown}\n  {' ' * (column - 1)}^", line, column
        )


class PatternSyntaxError(MalformedPatternException):
    """A pattern in text form that cannot be read."""

    def __init__(self, message: str, line: int, column: int) -> None:
        super().__init__(message)
        self.line = line
        self.column = column
