"""The table of functions: what a function takes, what it gives, and how it is computed."""

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
"""A column, or a scalar of Arrow that stands for a column of one value."""
Kernel = Callable[..., Value]
"""Takes the arguments of a call as Values, at least one of them a column (if it has any), and gives a column."""
Infer = Callable[[tuple[Rex, ...]], tuple[tuple[Rex, ...], DataType]]
"""Takes the arguments of a call, and gives them with implicit casts, and the type of the result; or raises Unfit."""


class Unfit(ValidationException):
    """Raised by inference: the function does not take such arguments. The message says what it takes."""


class BadValue(TableException):
    """Raised by a kernel: a value for which the function has no result."""


class DivisionByZero(BadValue, ArithmeticException):
    """Of whole numbers or decimals."""


@dataclass(frozen=True)
class Function:
    """A scalar function."""

    name: str
    infer: Infer
    make: Callable[[Call], Kernel]
    """Makes the kernel for a call, whose types are known."""
    raises: bool = False
    """Whether there are values for which it fails: then it is not evaluated for rows that do not need it."""
    deterministic: bool = True
    """Whether it can be computed once, before the query runs."""
    moment: bool = False
    """Whether the kernel takes the number of rows and the Moment as first arguments."""


FUNCTIONS: dict[str, Function] = {}
REWRITES: dict[str, Callable[[tuple[Rex, ...]], Rex]] = {}
"""Functions that are only another way to write something else, such as BETWEEN."""


def register(
    name: str,
    infer: Infer,
    make: Callable[[Call], Kernel],
    *,
    raises: bool = False,
    deterministic: bool = True,
    moment: bool = False,
) -> None:
    """Adds a function, or several names of one, separated by blanks-free bars: "CHAR_LENGTH|CHARACTER_LENGTH"."""
    for one in name.split("|") if name != "||" else [name]:
        FUNCTIONS[one] = Function(one, infer, make, raises, deterministic, moment)


def resolve(name: str, args: Sequence[Rex]) -> Rex:
    """The typed call of a function, with implicit casts where its arguments need them."""
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
    """All functions that have a name, and are not operators."""
    return sorted(name for name in {*FUNCTIONS, *REWRITES} if name.replace("_", "").isalnum())


def suggestion(name: str, known: Iterable[str]) -> str:
    """ "; did you mean …?" if something is called nearly so."""
    close = difflib.get_close_matches(name.upper(), list(known), 1, 0.6)
    return f"; did you mean {close[0]}?" if close else ""


# --- how kernels are made ---
def arrow(compute: Kernel) -> Callable[[Call], Kernel]:
    """A kernel that is a function over columns and gives the right type by itself."""
    return lambda call: compute


def rowwise(compute: Callable[..., Any], nulls: bool = False) -> Callable[[Call], Kernel]:
    """A kernel that calls a Python function for every row.

    A NULL among the arguments makes the result NULL, unless the function takes NULLs. Words of the syntax, which are
    NULLs of type NULL with a value, are not columns and not looked at: they are handed over as texts.
    """

    def make(call: Call) -> Kernel:
        kinds = [arg.type for arg in call.args]

        def every(*args: Value) -> Value:
            return column_of(rows_of(compute, args, kinds, nulls, call.function), call)

        return every if call.function in RANDOM else lambda *args: of_distinct(every, args)

    return make


RANDOM = {"RAND", "RAND_INTEGER", "UUID"}
FEW = 64
"""Fewer rows are not worth looking for equal ones."""


def of_distinct(every: Callable[..., Value], args: Sequence[Value]) -> Value:
    """Call a slow kernel once for each different value, where only one argument varies and many rows share a value."""
    columns = [place for place, arg in enumerate(args) if isinstance(arg, pa.Array)]
    if len(columns) != 1 or len(args[columns[0]]) < FEW or pa.types.is_nested(args[columns[0]].type):
        return every(*args)
    place = columns[0]
    encoded = args[place].dictionary_encode("encode")
    if 2 * len(encoded.dictionary) > len(encoded):
        return every(*args)
    return every(*args[:place], encoded.dictionary, *args[place + 1 :]).take(encoded.indices)


def column_of(values: Sequence[Any], call: Call) -> pa.Array:
    """The results of a call as a column."""
    try:
        return array_of(values, call.type)
    except (pa.ArrowException, OverflowError, TypeError, ValueError) as error:
        raise BadValue(f"{call.function} has a result that is no {call.type.summary()}: {error}") from error


def rows_of(
    compute: Callable[..., Any], args: Sequence[Value], kinds: Sequence[DataType], nulls: bool, name: str
) -> list[Any]:
    """What a Python function gives for every row."""
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
    """A column, or a scalar as often as there are rows, as Python values."""
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
