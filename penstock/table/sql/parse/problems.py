"""Errors of queries that can be read, but make no sense: with their place and with what was probably meant."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import TypeVar

from penstock.errors import SqlParserException, TableException, ValidationException
from penstock.table.sql.parse.tokens import Position

Made = TypeVar("Made")


class SqlParserEOFException(SqlParserException):
    """A text that ends too early."""


class SqlValidateException(SqlParserException):
    """A definition that SQL allows for and that cannot be kept: a key that would have to be checked."""


class IllegalStateException(TableException):
    """What is understood, and cannot be planned."""


class IllegalArgumentException(SqlParserException):
    """Not one statement, but several; or a pattern without a least number."""


class CalciteContextException(ValidationException):
    """A definition whose expressions or query make no sense."""


@contextmanager
def of_definition() -> Iterator[None]:
    """What makes no sense inside is told as part of a definition."""
    try:
        yield
    except ValidationException as problem:
        raise CalciteContextException(str(problem)) from problem


def invalid(at: Position, message: str) -> ValidationException:
    return ValidationException(f"{at}: {message}")


def unsupported(at: Position, message: str) -> TableException:
    return TableException(f"{at}: {message}")


def suggestion(name: str, names: Iterable[str]) -> str:
    """A question for the name that was probably meant; other capitals come first.

    >>> suggestion("Id", ["id", "it"])
    "; did you mean 'id'?"
    """
    known = list(dict.fromkeys(names))
    same = [one for one in known if one.lower() == name.lower()]
    close = same or difflib.get_close_matches(name, known, 1, 0.6)
    return f"; did you mean '{close[0]}'?" if close else ""


def with_place(at: Position, make: Callable[[], Made]) -> Made:
    """What `make` makes; an error of it gets the place, unless it has one."""
    try:
        return make()
    except ValidationException as problem:
        message = str(problem)
        if message.startswith("line "):
            raise
        raise type(problem)(f"{at}: {message}") from problem
