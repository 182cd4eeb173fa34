"""Functions with a collector, as Flink's Java and Scala programs write them: `flat_map(value, out)`.

A method that may return any number of results can take one more parameter, on which it calls `collect`. The method is
wrapped where its class is defined. After that, callers use it with the usual parameters, and it returns its results.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import wraps
from types import FunctionType
from typing import Any, Generic

from penstock.base.type_variables import IN

_POSITIONAL = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
OUTPUTS = ("Outputs", "TaggedOutputs")
"""The annotations of methods that return any number of results."""


class Collector(Generic[IN]):
    """Takes the results of a function one after the other."""

    def __init__(self) -> None:
        self._results: list[Any] = []

    def collect(self, record: IN) -> None:
        """Emit a record."""
        self._results.append(record)

    def close(self) -> None:
        """Do nothing: there is nothing to release."""


def accept_collectors(kind: type) -> None:
    """Wrap the methods of a function class that take a collector."""
    for name, method in list(vars(kind).items()):
        if isinstance(method, FunctionType):
            usual = _usual_parameters(kind, name)
            if usual is not None and required_parameters(method) == usual + 1:
                setattr(kind, name, with_collector(method, usual))


def with_collector(function: Callable[..., Any], usual: int) -> Callable[..., Any]:
    """Wrap a function that takes a collector after its usual parameters. A caller may still pass a collector."""

    @wraps(function)
    def call(*arguments: Any) -> Any:
        if len(arguments) > usual:
            return function(*arguments)
        collector = Collector()
        returned = function(*arguments, collector)
        return collector._results if returned is None else [*collector._results, *returned]

    return call


def required_parameters(function: Callable[..., Any]) -> int | None:
    """Return the number of positional arguments that a function needs, or None if it is unknown."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except (ValueError, TypeError):
        return None
    if any(parameter.kind is parameter.VAR_POSITIONAL for parameter in parameters):
        return None
    return sum(parameter.kind in _POSITIONAL and parameter.default is parameter.empty for parameter in parameters)


def _usual_parameters(kind: type, name: str) -> int | None:
    """Return the number of parameters in Penstock's own declaration of a method, or None if it emits no results."""
    for base in kind.__mro__[1:]:
        declared = vars(base).get(name)
        if isinstance(declared, FunctionType) and _return_type(declared) in OUTPUTS:
            return required_parameters(declared)
    return None


def _return_type(method: FunctionType) -> str:
    """Return the annotation of the result, without what is in brackets."""
    return str(method.__annotations__.get("return")).partition("[")[0]
