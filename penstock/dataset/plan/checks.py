"""Checks of the arguments of methods that build DataSet programs."""

from __future__ import annotations

from collections.abc import Sequence
from inspect import isgeneratorfunction
from typing import Any

from penstock.dataset.functions import Function
from penstock.errors import InvalidArgument


def check_type(method: str, argument: str, value: Any, kind: type) -> None:
    """Raise an error if an argument is not of a type."""
    if not isinstance(value, kind):
        raise InvalidArgument(f"{method}: {argument} must be a {kind.__name__}, not {value!r}")


def check_count(method: str, argument: str, value: Any) -> None:
    """Raise an error if an argument is not a whole number above 0."""
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise ValueError(f"{method}: {argument} must be a whole number of at least 1, not {value!r}")


def check_positions(method: str, positions: Sequence[Any]) -> None:
    """Raise an error unless all arguments are positions of fields."""
    if not positions:
        raise ValueError(f"{method} needs at least one position")
    for position in positions:
        if not isinstance(position, int) or isinstance(position, bool) or position < 0:
            raise InvalidArgument(f"{method}: a position is a whole number of at least 0, not {position!r}")


def check_function(method: str, function: Any, name: str) -> Any:
    """Return a function object that has a method with this name, or a plain function. Raise an error otherwise."""
    if isinstance(function, type) and issubclass(function, Function):
        raise InvalidArgument(f"{method} takes an object of {function.__name__}, not the class")
    if not (callable(function) or callable(getattr(function, name, None))):
        raise InvalidArgument(f"{method} takes a function, or an object with a method {name}(), not {function!r}")
    if isinstance(function, Function) and not hasattr(function, name):
        raise InvalidArgument(f"{method} calls {name}(), which a {type(function).__name__} does not have")
    return function


def is_generator(function: Any, method: str) -> bool:
    """Return True if a function, or the method of a function object, yields its results."""
    return isgeneratorfunction(getattr(function, method, None) or function)
