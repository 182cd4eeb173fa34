"""The table of functions: their arguments, result types and kernels."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from penstock.errors import ArithmeticException, TableException, ValidationException
from penstock.table.functions.moment import Moment
from penstock.table.logical.rex import Call, Rex
from penstock.table.types.arrow_forms import array_of, values_of
from penstock.table.types.data_types import DataType

Value = Any
"""A column, or a scalar of Arrow for a column of one value."""
Kernel = Callable[..., Value]
"""A function from Values to a column. At least one argument is a column, if there are any arguments."""
Infer = Callable[[tuple[Rex, ...]], tuple[tuple[Rex, ...], DataType]]
"""A function from arguments to arguments with implicit casts and the type of the result. It raises Unfit for others."""


class Unfit(ValidationException):
    """The error of type inference for wrong arguments. The message says which arguments are allowed."""


class BadValue(TableException):
    """The error of a kernel for a value without a result."""


class DivisionByZero(BadValue, ArithmeticException):
    """The error for a division of whole numbers or decimals by zero."""


@dataclass(frozen=True)
class Function:
    """A scalar function."""

    name: str
    infer: Infer
    make: Callable[[Call], Kernel]
    """A function that makes the kernel of a typed call."""
    raises: bool = False
    """True if it fails for some values. Then it is not evaluated for rows that do not need it."""
    deterministic: bool = True
    """True if it can be computed once, before the query runs."""
    moment: bool = False
    """True if the kernel takes the number of rows and the Moment as first arguments."""


FUNCTIONS: dict[str, Function] = {}
REWRITES: dict[str, Callable[[tuple[Rex, ...]], Rex]] = {}
"""Functions that are another way to write an expression, such as BETWEEN."""


def register(
    name: str,
    infer: Infer,
    make: Callable[[Call], Kernel],
    *,
    raises: bool = False,
    deterministic: bool = True,
    moment: bool = False,
) -> None:
    """Register a function. `name` may have several names, separated by bars: "CHAR_LENGTH|CHARACTER_LENGTH"."""
    for one in name.split("|") if name != "||" else [name]:
        FUNCTIONS[one] = Function(one, infer, make, raises, deterministic, moment)


def resolve(name: str, args: Sequence[Rex]) -> Rex:
    """Return the typed call of a function, with implicit casts of its arguments."""
    name = name.upper()
    rewrite, found = REWRITES.get(name), FUNCTIONS.get(name)
    if rewrite is None and found is None:
        raise ValidationException(f"there is no function {name}{suggestion(name, names())}")
    try:
        if rewrite is not None:
            return rewrite(tuple(args))
        assert found is not None
        fitted, kind = found.infer(tuple(args))
    except (Unfit, TypeError) as unfit:
        given = ", ".join(arg.type.as_sql() for arg in args)
        raise ValidationException(f"{name} cannot be applied to ({given}): it takes {unfit}") from None
    return Call(kind, name, fitted)


def names() -> list[str]:
    """Return the names of all functions that are not operators."""
    return sorted(name for name in {*FUNCTIONS, *REWRITES} if name.replace("_", "").isalnum())


def suggestion(name: str, known: Iterable[str]) -> str:
    """Return a question for a similar name, such as "; did you mean ABS?", or an empty text."""
    close = difflib.get_close_matches(name.upper(), list(known), 1, 0.6)
    return f"; did you mean {close[0]}?" if close else ""


# --- makers of kernels ---
def arrow(compute: Kernel) -> Callable[[Call], Kernel]:
    """Return a maker of kernels from a function over columns that gives the right type by itself."""
    return lambda call: compute


def rowwise(compute: Callable[..., Any], nulls: bool = False) -> Callable[[Call], Kernel]:
    """Return a maker of kernels that call a Python function for every row.

    A NULL argument makes the result NULL, unless the function takes NULLs. Words of the syntax, which are NULLs of type
    NULL with a value, are not columns. They are passed as texts.
    """

    def make(call: Call) -> Kernel:
        kinds = [arg.type for arg in call.args]

        def every(*args: Value) -> Value:
            return column_of(rows_of(compute, args, kinds, nulls, call.function), call)

        return every if call.function in RANDOM else lambda *args: of_distinct(every, args)

    return make


RANDOM = {"RAND", "RAND_INTEGER", "UUID"}
FEW = 64
"""Minimum number of rows for which a search for equal values is worthwhile."""


def of_distinct(every: Callable[..., Value], args: Sequence[Value]) -> Value:
    """Call a slow kernel once for each different value, if only one argument varies and many rows share a value."""
    columns = [place for place, arg in enumerate(args) if isinstance(arg, pa.Array)]
    if len(columns) != 1 or len(args[columns[0]]) < FEW or pa.types.is_nested(args[columns[0]].type):
        return every(*args)
    place = columns[0]
    encoded = args[place].dictionary_encode("encode")
    if 2 * len(encoded.dictionary) > len(encoded):
        return every(*args)
    return every(*args[:place], encoded.dictionary, *args[place + 1 :]).take(encoded.indices)


def column_of(values: Sequence[Any], call: Call) -> pa.Array:
    """Return the results of a call as a column."""
    try:
        return array_of(values, call.type)
    except (pa.ArrowException, OverflowError, TypeError, ValueError) as error:
        raise BadValue(f"{call.function} returned a value that does not fit {call.type.summary()}: {error}") from error


def rows_of(
    compute: Callable[..., Any], args: Sequence[Value], kinds: Sequence[DataType], nulls: bool, name: str
) -> list[Any]:
    """Return the results of a Python function for all rows."""
    if not args:
        return []
    rows = max((len(arg) for arg in args if isinstance(arg, pa.Array)), default=1)
    columns = [python_values(arg, kind, rows) for arg, kind in zip(args, kinds, strict=True)]
    results: list[Any] = []
    for values in zip(*columns, strict=True):
        if not nulls and any(value is None for value in values):
            results.append(None)
            continue
        try:
            results.append(compute(*values))
        except (ArithmeticError, ValueError, TypeError, LookupError) as error:
            raise BadValue(f"{name}({', '.join(map(repr, values))}) failed: {error}") from error
    return results


def python_values(value: Value, kind: DataType, rows: int) -> list[Any]:
    """Return a column as Python values. A scalar is repeated for every row."""
    if isinstance(value, str):  # a word of the syntax
        return [value] * rows
    if isinstance(value, pa.Scalar):
        return values_of(pa.array([value.as_py()], value.type), kind) * rows
    return values_of(value, kind)


__all__ = [
    "FUNCTIONS",
    "REWRITES",
    "BadValue",
    "Function",
    "Infer",
    "Kernel",
    "Moment",
    "Unfit",
    "Value",
    "arrow",
    "column_of",
    "names",
    "python_values",
    "register",
    "resolve",
    "rows_of",
    "rowwise",
    "suggestion",
]
