"""The conditions for another request, as functions for AsyncRetryStrategy, under the name of PyFlink's module."""

from __future__ import annotations

from typing import Any

__all__ = ["empty_result_predicate", "exception_type_predicate", "has_exception_predicate"]


def empty_result_predicate(result: list[Any] | None) -> bool:
    """Return True if a request returned no results."""
    return not result


def has_exception_predicate(error: BaseException | None) -> bool:
    """Return True if a request raised an error."""
    return error is not None


def exception_type_predicate(error: BaseException | None, expected_error_type: type[BaseException]) -> bool:
    """Return True if a request raised an error of exactly this class."""
    return type(error) is expected_error_type
