"""Checks of the arguments of builders."""

from __future__ import annotations

from typing import Any

from penstock.api.functions.element_functions import Function, ResultTypeQueryable
from penstock.base.arguments import invalid_argument, is_function
from penstock.common.python_types import type_of_class
from penstock.common.typeinfo import TypeInformation
from penstock.datastream.builders.annotations import Results, annotated_type, check_annotation
from penstock.engine.operators.functions.map_and_filter import FlatMapOperator, MapOperator
from penstock.engine.operators.functions.rolling import ReduceOperator
from penstock.engine.operators.operator import Operator
from penstock.engine.operators.sources.source_operator import ReadLimits

_NO_FUNCTION = Results(None)


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


def results_of(operator: Operator) -> Results:
    """Return the function whose results an operator emits."""
    function = getattr(operator, "function", None)
    if isinstance(operator, (MapOperator, FlatMapOperator, ReduceOperator)):
        return Results(function, isinstance(operator, FlatMapOperator))
    return Results(function) if isinstance(function, Function) else _NO_FUNCTION


def result_types(
    name: str, operator: Operator, declared: TypeInformation[Any] | None, results: Results
) -> tuple[TypeInformation[Any] | None, TypeInformation[Any] | None]:
    """Return the declared type of an operator's results, and without one the type that annotations state.

    Raise if a declared type contradicts an annotation. Values are checked against a declared type alone.
    """
    if declared is None and (declared := result_type_of(results.function)) is not None:
        operator.output_type = declared
    check_annotation(name, results, declared)
    return declared, annotated_type(results) if declared is None else None


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
