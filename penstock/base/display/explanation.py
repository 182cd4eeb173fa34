"""Texts that a notebook shows as pictures."""

from __future__ import annotations

from collections.abc import Callable

from penstock.base.display.html_parts import code, whole


class TextWithPicture(str):
    """A text that is drawn where a notebook shows a value. It is pickled and copied as the text alone."""

    _draw: Callable[[], str] | None

    def __new__(cls, text: str, draw: Callable[[], str] | None = None) -> TextWithPicture:
        """Take a function that returns the text as HTML."""
        made = super().__new__(cls, text)
        made._draw = draw
        return made

    def __str__(self) -> str:
        return str.__str__(self)

    def __reduce__(self) -> tuple[type[str], tuple[str]]:
        return str, (str(self),)

    def _repr_html_(self) -> str:
        return whole(code(self)) if self._draw is None else self._draw()


class Explanation(TextWithPicture):
    """A text of several lines, which Python shows as they are."""

    def __repr__(self) -> str:
        return str(self)
