"""User-defined functions in the form that environments and tables take."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any

from penstock.common.types import Row
from penstock.errors import UnsupportedOperation, ValidationException
from penstock.table.catalogs.memory_catalog import CatalogFunction
from penstock.table.expression.expression import Expression
from penstock.table.expression.expression_functions import col
from penstock.table.expression.function_declarations import (
    AggregateFunction,
    FunctionContext,
    ImperativeAggregateFunction,
    UserDefinedFunction,
    UserDefinedFunctionWrapper,
    wrapper_of,
)


def as_function(function: Any, name: str) -> UserDefinedFunctionWrapper:
    """Return a function under the name by which it is registered."""
    wrapper = wrapper_of(function)
    if wrapper is None:
        raise ValidationException(
            f"the function {name} has no declared types: create it with udf, udtf, udaf or udtaf, with a result_type"
        )
    named = copy.copy(wrapper)
    named.name = name
    return named


def function_entry(name: str, target: str, language: str, resources: tuple[str, ...] = ()) -> CatalogFunction:
    """Return the entry of a function of a catalog.

    A Python object is imported at once. A class of Java is an entry alone, as Flink does not load it here, either: it
    can be listed, described and dropped, and a query that calls it is refused.
    """
    if language.upper() != "PYTHON":
        warnings.warn(f"function {name}: {_foreign(target, language)}; a query that calls it fails", stacklevel=3)
        return CatalogFunction(target, language.upper(), None, resources)
    function = as_function(_import_object(target), name.rpartition(".")[2])
    return CatalogFunction(target, "PYTHON", function, resources)


def function_of(entry: CatalogFunction, name: str) -> Any:
    """Return the function of an entry, which is imported if the entry has only its name."""
    if entry.language.upper() != "PYTHON":
        raise UnsupportedOperation(
            f"function {name}: {_foreign(entry.class_name, entry.language)}; write it in Python, LANGUAGE PYTHON"
        )
    if entry.function is None:
        return as_function(_import_object(entry.class_name), name.rpartition(".")[2])
    return entry.function


def _foreign(target: str, language: str) -> str:
    return f"'{target}' is in {language.upper()}, and {language.upper()} cannot run here"


def _import_object(target: str) -> Any:
    """Import a Python object by its name, module.name."""
    module, dot, name = target.rpartition(".")
    try:
        return getattr(import_module(module), name) if dot else None
    except (ImportError, AttributeError) as error:
        raise ValidationException(f"the function {target} cannot be imported: {error}") from error


def of_row(function: UserDefinedFunctionWrapper, names: Sequence[str]) -> Expression:
    """Return a call with the whole row as the only argument."""
    whole = copy.copy(function)
    whole.input_types = None
    adapted = _AggregateOfRow if isinstance(function.function, ImperativeAggregateFunction) else _OfRow
    whole.function = adapted(function, tuple(names))
    call = whole(*map(col, names))
    return call.alias(*function.alias_names) if function.alias_names else call


class _OfRow(UserDefinedFunction):
    """A function that passes its arguments to another one as one row; to a vectorised function, as a DataFrame."""

    def __init__(self, wrapper: UserDefinedFunctionWrapper, names: tuple[str, ...]) -> None:
        self._wrapper = wrapper
        self._names = names
        self._make = Row(*names)

    def open(self, function_context: FunctionContext) -> None:
        self._wrapper.open(function_context)

    def close(self) -> None:
        self._wrapper.close()

    def eval(self, *values: Any) -> Any:
        if self._wrapper.vectorised:
            return self._wrapper.callable()(_frame_maker(self._names)(*values))
        return self._wrapper.callable()(self._make(*values))


def _frame_maker(names: Sequence[str]) -> Callable[..., Any]:
    """Return a function that makes a DataFrame of columns, and of a ROW a column for each field."""

    def make(*columns: Any) -> Any:
        import pandas

        named = [
            column if isinstance(column, pandas.DataFrame) else column.rename(name)
            for name, column in zip(names, columns, strict=True)
        ]
        return pandas.concat(named, axis=1)

    return make


class _AggregateOfRow(AggregateFunction[Any, Any]):
    """An aggregate function that passes its arguments to another one as one row."""

    def __init__(self, wrapper: UserDefinedFunctionWrapper, names: tuple[str, ...]) -> None:
        self._inner = wrapper.function
        self._make = _frame_maker(names) if wrapper.vectorised == "pandas" else Row(*names)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(self._inner, name)

    def open(self, function_context: FunctionContext) -> None:
        self._inner.open(function_context)

    def close(self) -> None:
        self._inner.close()

    def create_accumulator(self) -> Any:
        return self._inner.create_accumulator()

    def accumulate(self, accumulator: Any, *args: Any) -> None:
        self._inner.accumulate(accumulator, self._make(*args))

    def retract(self, accumulator: Any, *args: Any) -> None:
        self._inner.retract(accumulator, self._make(*args))

    def merge(self, accumulator: Any, accumulators: Any) -> None:
        self._inner.merge(accumulator, accumulators)

    def get_value(self, accumulator: Any) -> Any:
        return self._inner.get_value(accumulator)

    def emit_value(self, accumulator: Any) -> Any:
        return self._inner.emit_value(accumulator)

    def get_result_type(self) -> Any:
        return self._inner.get_result_type()

    def get_accumulator_type(self) -> Any:
        return self._inner.get_accumulator_type()
