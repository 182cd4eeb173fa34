"""Checks that Python values fit the types that a schema declares for them."""

from __future__ import annotations

import datetime
from array import array
from collections.abc import Callable, Iterable, Sequence
from decimal import Decimal
from numbers import Integral, Real
from typing import Any

from penstock.common.types import Row
from penstock.errors import ValidationException
from penstock.table.expression.expression import Expression
from penstock.table.types import data_types as t


class WrongType(ValidationException, TypeError):
    """A value has a type that its column cannot hold."""


class WrongValue(ValidationException, ValueError):
    """A value has the right type, and is out of the range of its column."""


_CLASSES: dict[type[t.DataType], tuple[type, ...]] = {
    t.BooleanType: (bool,),
    t.TinyIntType: (Integral,),
    t.SmallIntType: (Integral,),
    t.IntType: (Integral,),
    t.BigIntType: (Integral,),
    t.FloatType: (Real, Decimal),
    t.DoubleType: (Real, Decimal),
    t.DecimalType: (Decimal, Integral),
    t.CharType: (str,),
    t.VarCharType: (str,),
    t.BinaryType: (bytes, bytearray, memoryview),
    t.VarBinaryType: (bytes, bytearray, memoryview),
    t.DateType: (datetime.date,),
    t.TimeType: (datetime.time,),
    t.TimestampType: (datetime.datetime,),
    t.DayTimeIntervalType: (datetime.timedelta,),
    t.YearMonthIntervalType: (Integral,),
    t.ArrayType: (list, tuple, array, set, frozenset),
    t.MapType: (dict,),
    t.MultisetType: (dict, list, tuple),
}


_SIZED = (t.CharType, t.VarCharType, t.BinaryType, t.VarBinaryType)


def verify_rows(rows: Iterable[Sequence[Any]], declared: t.RowType) -> None:
    """Raise WrongType or WrongValue for the first value that does not fit its column."""
    fields = [(f"field {field.name}", field.data_type) for field in declared.fields]
    for row in rows:
        for value, (place, kind) in zip(row, fields, strict=True):
            verify(value, kind, place)


def verify(value: Any, kind: t.DataType, place: str) -> None:
    """Check one value and its parts. Errors name its `place`."""
    if isinstance(value, Expression) or isinstance(kind, t.NullType):
        return
    if value is None:
        if not kind._nullable:
            raise WrongValue(f"{place}: {kind.as_sql()} cannot hold None")
        return
    if isinstance(kind, t.UserDefinedType):
        _verify_object(value, kind, place)
        return
    classes = _CLASSES.get(type(kind), ())
    if classes and (not isinstance(value, classes) or (isinstance(value, bool) and classes != (bool,))):
        raise WrongType(f"{place}: {kind.summary()} cannot hold {value!r} ({type(value).__name__})")
    _verify_range(value, kind, place)
    _verify_parts(value, kind, place)


def _verify_object(value: Any, kind: t.UserDefinedType, place: str) -> None:
    """Check that a value is an object of a user-defined type, and that its stored value fits."""
    if type(getattr(value, "__UDT__", None)) is not type(kind):
        raise WrongValue(
            f"{place}: {value!r} ({type(value).__name__}) is not an object of {type(kind).__name__}: the "
            "attribute __UDT__ of its class must be this type"
        )
    verify(kind.serialize(value), kind.sql_type(), f"stored value of {place}")


def _verify_range(value: Any, kind: t.DataType, place: str) -> None:
    if isinstance(kind, t.IntegralType) and not -(1 << kind.bits - 1) <= value < 1 << kind.bits - 1:
        raise WrongValue(f"{place}: {value} is out of the range of {kind.summary()}")
    if isinstance(kind, _SIZED) and len(value) > kind.length:
        raise WrongValue(f"{place}: {value!r} is longer than {kind.summary()} allows")


def _verify_parts(value: Any, kind: t.DataType, place: str) -> None:
    match kind:
        case t.ArrayType():
            for one in value:
                verify(one, kind.element_type, f"element of the array in {place}")
        case t.MapType():
            for key, one in value.items():
                verify(key, kind.key_type, f"key of the map in {place}")
                verify(one, kind.value_type, f"value of the map in {place}")
        case t.RowType():
            for one, field in zip(_fields(value, kind, place), kind.fields, strict=True):
                verify(one, field.data_type, f"field {field.name} in {place}")


def _fields(value: Any, kind: t.RowType, place: str) -> Sequence[Any]:
    """Return the values of a row in the order of its fields."""
    names = kind.field_names()
    if isinstance(value, dict):
        return [value.get(name) for name in names]
    if isinstance(value, Row) and (own := value.get_field_names()) and set(own) == set(names):
        return [value[name] for name in names]
    if isinstance(value, (Row, tuple, list)):
        if len(value) != len(names):
            raise WrongValue(f"{place}: {value!r} has {len(value)} values, not {len(names)} as {kind.summary()}")
        return list(value)
    if hasattr(value, "__dict__"):
        return [getattr(value, name, None) for name in names]
    raise WrongType(f"{place}: {kind.summary()} cannot hold {value!r} ({type(value).__name__})")


def _create_type_verifier(data_type: t.DataType, name: str = "value") -> Callable[[Any], None]:
    """Return a function that checks a value; a name of PyFlink's module `types`, which libraries import."""
    return lambda value: verify(value, data_type, name)
