"""The conversion of expressions of Table programs to typed ones over the columns of a relation."""

from __future__ import annotations

import datetime
import difflib
from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import Any

from penstock.errors import ValidationException
from penstock.table.expression.expression import Expression, expression_text
from penstock.table.functions.typing.cast_types import castable, explicit_cast
from penstock.table.functions.typing.coercion import TEXTS, common_type
from penstock.table.functions.typing.registry import resolve
from penstock.table.functions.typing.result_types import coerce
from penstock.table.logical.nodes import Columns
from penstock.table.logical.rex import Call, InputRef, Literal, Rex, Subquery
from penstock.table.types import data_types as t

Special = Callable[[Expression], Rex | None]
"""A function of the caller that returns the typed form of a part, or None."""


def bind(value: Any, columns: Columns, special: Special | None = None) -> Rex:
    """Return the typed form of an expression over columns. `special` is tried first for every part."""
    if not isinstance(value, Expression):
        return literal(value)
    known = special(value) if special is not None else None
    if known is not None:
        return known
    return _bind(value, columns, special)


def _bind(value: Expression, columns: Columns, special: Special | None) -> Rex:
    match value.node:
        case ("column", name):
            return column(name, columns)
        case ("literal", constant, kind):
            return literal(constant, kind)
        case ("alias" | "argument", inner, _):
            return bind(inner, columns, special)
        case ("cast", inner, kind, safe):
            return explicit_cast(bind(inner, columns, special), kind, safe)
        case ("call", "GET", (inner, key)):
            return field(bind(inner, columns, special), key.node[1])
        case ("call", function, args):
            return call_function(function, [bind(arg, columns, special) for arg in args])
        case ("rex", rex):
            assert isinstance(rex, Rex)
            return rex
        case ("in", inner, table):
            return Subquery(t.BooleanType(), "IN", table.relation, (bind(inner, columns, special),))
        case ("udf", wrapper, args):
            return user_call(wrapper, [bind(arg, columns, special) for arg in args])
    raise ValidationException(f"{expression_text(value)} cannot stand inside a scalar expression")


def call_function(function: str, args: Sequence[Rex]) -> Rex:
    """Return a call as Table programs mean it: + after a text concatenates."""
    if function == "+" and isinstance(args[0].type, TEXTS):
        return resolve("CONCAT", [coerce(arg, t.DataTypes.STRING()) for arg in args])
    if function in {"AND", "OR"} and len(args) > 2:
        return resolve(function, [call_function(function, args[:-1]), args[-1]])
    return resolve(function, args)


def column(name: str, columns: Columns) -> Rex:
    """Return a column by its name."""
    found = [index for index, one in enumerate(columns) if one.name == name]
    if len(found) == 1:
        return InputRef(columns[found[0]].type, found[0])
    names = [one.name for one in columns]
    if found:
        raise ValidationException(f"there are {len(found)} columns {name}: rename one of them")
    close = difflib.get_close_matches(name, names, 1, 0.6)
    hint = f"; did you mean {close[0]}?" if close else ""
    raise ValidationException(f"there is no column {name}{hint} The columns are: {', '.join(names)}")


def field(row: Rex, key: str | int) -> Rex:
    """Return a field of a row, by name or position."""
    if not isinstance(row.type, t.RowType):
        raise ValidationException(f"a value of {row.type.summary()} has no field {key!r}: only rows have fields")
    names = row.type.field_names()
    index = key if isinstance(key, int) else names.index(key) if key in names else -1
    if not 0 <= index < len(names):
        raise ValidationException(f"the row has no field {key!r}. Its fields are: {', '.join(names)}")
    return resolve("FIELD", [row, Literal(t.IntType(False), index)])


def user_call(wrapper: Any, args: Sequence[Rex]) -> Call:
    """Return a call of a user's function, with its arguments cast to the declared types."""
    if wrapper.kind not in {"scalar", "table"}:
        raise ValidationException(f"{wrapper.name} is an {wrapper.kind} function and cannot be called for single rows")
    return Call(wrapper.result_type, wrapper.name, user_arguments(wrapper, args), wrapper)


def user_arguments(wrapper: Any, args: Sequence[Rex]) -> tuple[Rex, ...]:
    """Return arguments cast to the declared types of a user's function."""
    declared = wrapper.input_types
    if declared is None:
        return tuple(args)
    if len(declared) != len(args):
        raise ValidationException(f"the function {wrapper.name} takes {len(declared)} arguments, not {len(args)}")
    fitted = []
    for index, (arg, kind) in enumerate(zip(args, declared, strict=True)):
        if common_type([arg.type, kind]) is None or not castable(arg.type, kind):
            raise ValidationException(
                f"argument {index + 1} of the function {wrapper.name} is declared as {kind.summary()}, and cannot "
                f"be {arg.type.summary()}"
            )
        fitted.append(coerce(arg, kind))
    return tuple(fitted)


# --- values ---
def literal(value: Any, kind: t.DataType | None = None) -> Literal:
    """Return a Python value as a literal with its type."""
    if kind is None:
        return Literal(type_of(value), _frozen(value))
    if value is None:
        return Literal(kind.nullable(), None)
    return Literal(kind, _frozen(value))


def _frozen(value: Any) -> Any:
    if isinstance(value, list | tuple):
        return tuple(_frozen(one) for one in value)
    if isinstance(value, dict):
        return tuple((_frozen(key), _frozen(one)) for key, one in value.items())
    return bytes(value) if isinstance(value, bytearray) else value


def type_of(value: Any) -> t.DataType:
    """Return the type of a Python value as a literal.

    >>> type_of(5).as_sql(), type_of("abc").as_sql()
    ('INT NOT NULL', 'CHAR(3) NOT NULL')
    """
    match value:
        case None:
            return t.NullType()
        case bool():
            return t.BooleanType(False)
        case int():
            return t.IntType(False) if -(2**31) <= value < 2**31 else t.BigIntType(False)
        case float():
            return t.DoubleType(False)
        case Decimal():
            return _decimal_type(value)
        case str():
            return t.CharType(len(value), False)
        case bytes() | bytearray():
            return t.BinaryType(len(value), False)
        case datetime.datetime():
            precision = _digits(value.microsecond)
            zoned = value.tzinfo is not None
            return t.LocalZonedTimestampType(precision, False) if zoned else t.TimestampType(precision, False)
        case datetime.date():
            return t.DateType(False)
        case datetime.time():
            return t.TimeType(0, False)
        case datetime.timedelta():
            return t.DayTimeIntervalType(nullable=False)
        case list() | tuple():
            element = common_type([type_of(one) for one in value])
            if element is not None:
                return t.ArrayType(element, False)
        case dict():
            key, part = common_type([type_of(one) for one in value]), common_type(list(map(type_of, value.values())))
            if key is not None and part is not None:
                return t.MapType(key, part, False)
    raise ValidationException(f"{value!r} cannot be a literal: give its type with lit(value, DataTypes...)")


def _decimal_type(value: Decimal) -> t.DataType:
    _, digits, exponent = value.as_tuple()
    if not isinstance(exponent, int):
        raise ValidationException(f"{value} cannot be a DECIMAL")
    scale = max(-exponent, 0)
    return t.DecimalType(max(len(digits) + max(exponent, 0), scale, 1), scale, False)


def _digits(microsecond: int) -> int:
    if not microsecond:
        return 0
    return 6 if microsecond % 1000 else 3
