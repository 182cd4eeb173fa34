"""Types without parts: numbers, strings, dates and times, pickled objects, dataclasses and enums."""

from __future__ import annotations

import datetime
import math
from array import array
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, ClassVar

from penstock.base.type_variables import T
from penstock.common.time import Instant
from penstock.common.type_information import TypeInformation

__all__ = [
    "BasicTypeInfo",
    "BigDecimalTypeInfo",
    "BooleanTypeInfo",
    "CharTypeInfo",
    "DataclassTypeInfo",
    "DateTypeInfo",
    "DoubleTypeInfo",
    "EnumTypeInfo",
    "FloatTypeInfo",
    "InstantTypeInfo",
    "IntegerTypeInfo",
    "PickledBytesTypeInfo",
    "SqlTimeTypeInfo",
    "TimeTypeInfo",
    "TimestampTypeInfo",
]


_PYFLINK_NAMES = {
    "STRING": "String",
    "BYTE": "Byte",
    "BOOLEAN": "Boolean",
    "SHORT": "Short",
    "INT": "Integer",
    "LONG": "Long",
    "FLOAT": "Float",
    "DOUBLE": "Double",
    "CHAR": "Char",
    "BIG_INT": "BigInteger",
    "BIG_DEC": "BigDecimal",
    "INSTANT": "Instant",
    "SQL_DATE": "DateTypeInfo",
    "SQL_TIME": "TimeTypeInfo",
    "SQL_TIMESTAMP": "TimestampTypeInfo",
}


@dataclass(frozen=True, repr=False)
class _NamedType(TypeInformation[T]):
    """A type whose values are the instances of one Python class."""

    name: str
    python_class: type

    def _fit_all(self, column: Sequence[Any]) -> Sequence[Any]:
        expected = self.python_class
        kinds = list(map(type, column))
        if kinds.count(expected) == len(kinds) or all(issubclass(kind, expected) for kind in set(kinds)):
            return column
        raise TypeError

    @property
    def notation(self) -> str:
        return self.name

    def __repr__(self) -> str:
        return _PYFLINK_NAMES.get(self.name, self.name)


@dataclass(frozen=True, repr=False)
class BasicTypeInfo(_NamedType[T]):
    """Strings and numbers."""


@dataclass(frozen=True, repr=False)
class BooleanTypeInfo(BasicTypeInfo[bool]):
    """A truth value."""

    def _text(self, value: Any) -> str:
        return "true" if value else "false"


@dataclass(frozen=True, repr=False)
class CharTypeInfo(BasicTypeInfo[str]):
    """A string of exactly one character."""

    def _fit_all(self, column: Sequence[Any]) -> Sequence[Any]:
        if list(map(len, column)).count(1) != len(column):
            raise ValueError
        return super()._fit_all(column)


@dataclass(frozen=True, repr=False)
class IntegerTypeInfo(BasicTypeInfo[int]):
    """A whole number of 8, 16, 32 or 64 bits. Filling an array checks type and range of a column in one call of C."""

    typecode: str

    def _fit_all(self, column: Sequence[Any]) -> Sequence[Any]:
        array(self.typecode, column)
        return column

    def _text(self, value: Any) -> str:
        return str(int(value))


@dataclass(frozen=True, repr=False)
class DoubleTypeInfo(BasicTypeInfo[float]):
    """A float. Objects that convert to a float and are not text (int, Decimal, a NumPy number) are converted."""

    def _fit_all(self, column: Sequence[Any]) -> Sequence[Any]:
        kinds = list(map(type, column))
        return column if kinds.count(float) == len(kinds) else array("d", column).tolist()

    def _text(self, value: Any) -> str:
        return _java_float(float(value), repr(float(value)))


@dataclass(frozen=True, repr=False)
class FloatTypeInfo(BasicTypeInfo):
    """A float rounded to 32 bits; a number too large for them becomes infinite."""

    def _fit_all(self, column: Sequence[Any]) -> Sequence[Any]:
        rounded = array("f", column).tolist()
        kinds = list(map(type, column))
        unchanged = kinds.count(float) == len(kinds) and rounded == list(column)
        return column if unchanged else rounded

    def _text(self, value: Any) -> str:
        number = array("f", [value])[0]
        shortest = next((text for text in _roundings(number) if array("f", [float(text)])[0] == number), repr(number))
        return _java_float(number, shortest)


def _roundings(number: float) -> list[str]:
    return [f"{number:.{digits}g}" for digits in range(1, 10)]


def _java_float(number: float, shortest: str) -> str:
    """Return Java's spelling of a number whose shortest exact digits are known."""
    if math.isnan(number):
        return "NaN"
    if math.isinf(number):
        return "Infinity" if number > 0 else "-Infinity"
    if number == 0:
        return "-0.0" if math.copysign(1.0, number) < 0 else "0.0"
    sign, digits, exponent = Decimal(shortest).normalize().as_tuple()
    text = "".join(map(str, digits))
    point = len(text) + int(exponent)  # number of digits before the decimal point
    if 1e-3 <= abs(number) < 1e7:
        text = text.zfill(len(text) + 1 - point) if point <= 0 else text.ljust(point, "0")
        point = max(point, 1)
        suffix = ""
    else:
        suffix = f"E{point - 1}"
        point = 1
    return f"{'-' if sign else ''}{text[:point]}.{text[point:] or '0'}{suffix}"


@dataclass(frozen=True, repr=False)
class BigDecimalTypeInfo(BasicTypeInfo[Decimal]):
    """A Decimal; ints are converted, floats are refused because they are seldom the number that was meant."""

    def _fit_all(self, column: Sequence[Any]) -> Sequence[Any]:
        if int in set(map(type, column)):
            column = [Decimal(value) if type(value) is int else value for value in column]
        return super()._fit_all(column)


@dataclass(frozen=True, repr=False)
class InstantTypeInfo(BasicTypeInfo[Instant]):
    """A point in time, as an Instant with nanoseconds."""

    def _text(self, value: Instant) -> str:
        moment = datetime.datetime(1970, 1, 1) + datetime.timedelta(seconds=value.seconds)
        return f"{moment.isoformat()}{_fraction_by_thousands(value.nanos)}Z"


def _fraction_by_thousands(nanos: int) -> str:
    if nanos == 0:
        return ""
    digits = f"{nanos:09d}"
    while digits.endswith("000"):
        digits = digits[:-3]
    return "." + digits


@dataclass(frozen=True, repr=False)
class SqlTimeTypeInfo(_NamedType[T]):
    """Dates and times; the static methods make them."""

    @staticmethod
    def DATE() -> DateTypeInfo:  # noqa: N802
        return DateTypeInfo("SQL_DATE", datetime.date)

    @staticmethod
    def TIME() -> TimeTypeInfo:  # noqa: N802
        return TimeTypeInfo("SQL_TIME", datetime.time)

    @staticmethod
    def TIMESTAMP() -> TimestampTypeInfo:  # noqa: N802
        return TimestampTypeInfo("SQL_TIMESTAMP", datetime.datetime)


@dataclass(frozen=True, repr=False)
class DateTypeInfo(SqlTimeTypeInfo[datetime.date]):
    """A date; a datetime loses its time of day."""

    def _fit_all(self, column: Sequence[Any]) -> Sequence[Any]:
        if datetime.datetime in set(map(type, column)):
            column = [value.date() if isinstance(value, datetime.datetime) else value for value in column]
        return super()._fit_all(column)


@dataclass(frozen=True, repr=False)
class TimeTypeInfo(SqlTimeTypeInfo[datetime.time]):
    """A time of day."""

    def _text(self, value: datetime.time) -> str:
        return value.strftime("%H:%M:%S")


@dataclass(frozen=True, repr=False)
class TimestampTypeInfo(SqlTimeTypeInfo[datetime.datetime]):
    """A date and a time of day, without a zone."""

    def _text(self, value: datetime.datetime) -> str:
        fraction = f"{value.microsecond:06d}".rstrip("0") or "0"
        return f"{value.replace(microsecond=0, tzinfo=None).isoformat(' ')}.{fraction}"


@dataclass(frozen=True, repr=False)
class PickledBytesTypeInfo(TypeInformation[Any]):
    """Any object that can be pickled. It is not checked, and printed as Python prints it."""

    name: ClassVar[str] = "PICKLED_BYTE_ARRAY"

    def fit_column(self, column: Sequence[Any]) -> Sequence[Any]:
        return column

    def text(self, value: Any) -> str:
        return str(value)

    @property
    def notation(self) -> str:
        return self.name

    def __repr__(self) -> str:
        return "PickledByteArrayTypeInfo"


@dataclass(frozen=True, repr=False)
class DataclassTypeInfo(_NamedType[T]):
    """The instances of one dataclass."""


@dataclass(frozen=True, repr=False)
class EnumTypeInfo(_NamedType[T]):
    """The members of one enum, printed by name."""

    def _text(self, value: Any) -> str:
        return str(value.name)
