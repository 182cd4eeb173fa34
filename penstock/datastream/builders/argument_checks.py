"""Checks of the arguments of builders."""

from __future__ import annotations

from typing import Any

from penstock.api.functions.element_functions import ResultTypeQueryable
from penstock.base.arguments import invalid_argument, is_function
from penstock.common.python_types import type_of_class
from penstock.common.typeinfo import TypeInformation
from penstock.engine.operators.sources.source_operator import ReadLimits


def result_type_of(function: Any) -> TypeInformation | None:
    """Return the type of the results of a function that declares it; None for other functions."""
    if not isinstance(function, ResultTypeQueryable):
        return None
    produced = function.get_produced_type()
    declared = type_of_class(produced)
    if declared is None:
        raise TypeError(
            f"get_produced_type of {type(function).__name__} must return a TypeInformation such as Types.INT(), "
            f"not {produced!r}"
        )
    return declared


def check_function(func: Any, kind: type, method: str, argument: str) -> None:
    """Raise unless an argument is of the function class that a stream needs, or a plain callable."""
    if not (isinstance(func, kind) or is_function(func)):
        raise invalid_argument(method, argument, func, f"a {kind.__name__} or a function", (kind,))


def check_instance(value: Any, kind: type, method: str, argument: str) -> None:
    """Raise unless an argument is of the class that a stream needs."""
    if not isinstance(value, kind):
        raise invalid_argument(method, argument, value, f"a {kind.__name__}", (kind,))


def read_limits(per_second: float | None, per_epoch: int | None) -> ReadLimits:
    """Return the limits of a source, or raise if one of them is too low."""
    if per_second is not None and not per_second > 0:
        raise ValueError(f"rate_limit is a number of records per second above 0, not {per_second!r}")
    if per_epoch is not None and per_epoch < 1:
        raise ValueError(f"max_records_per_epoch is at least 1, not {per_epoch!r}")
    return ReadLimits(per_second, per_epoch)
