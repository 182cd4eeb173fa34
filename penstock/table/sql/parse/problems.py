"""Errors of queries that can be parsed but not bound. They have a position and a probable correction."""

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
    """A definition that SQL allows but that is not supported: a key that would have to be enforced."""


class IllegalStateException(TableException):
    """A query that can be bound but not planned."""


class IllegalArgumentException(SqlParserException):
    """Several statements instead of one, or a pattern without a lower limit."""


class CalciteContextException(ValidationException):
    """A definition whose expressions or query are not valid."""


@contextmanager
def of_definition() -> Iterator[None]:
    """Turn a ValidationException of the block into a CalciteContextException, as Flink does in a definition."""
    try:
        yield
    except ValidationException as problem:
        raise CalciteContextException(str(problem)) from problem


def invalid(at: Position, message: str) -> ValidationException:
    """Return the error for a query that is not valid."""
    return ValidationException(f"{at}: {message}")


def not_supported(at: Position, message: str) -> TableException:
    """Return the error for a query that is not supported."""
    return TableException(f"{at}: {message}")


def suggestion(name: str, names: Iterable[str]) -> str:
    """Return a question for the name that was probably meant. Another case of the same name comes first.

    >>> suggestion("Id", ["id", "it"])
    "; did you mean 'id'?"
    """
    known = list(dict.fromkeys(names))
    same = [one for one in known if one.lower() == name.lower()]
    close = same or difflib.get_close_matches(name, known, 1, 0.6)
    return f"; did you mean '{close[0]}'?" if close else ""


def with_place(at: Position, make: Callable[[], Made]) -> Made:
    """Return the result of `make`. An error of it gets the position unless it has one."""
    try:
        return make()
    except ValidationException as problem:
        message = str(problem)
        if message.startswith("line "):
            raise
        raise type(problem)(f"{at}: {message}") from problem
