"""`Types`, the source of type information, and `infer_type`, which finds it for a value."""

from __future__ import annotations

import dataclasses
import datetime
from collections.abc import Callable, Iterable
from decimal import Decimal
from enum import Enum
from typing import Any, TypeVar, overload

from penstock.base.arguments import check_arguments
from penstock.base.type_variables import A, B, C, D, K, T, V
from penstock.common.basic_types import (
    BasicTypeInfo,
    BigDecimalTypeInfo,
    BooleanTypeInfo,
    CharTypeInfo,
    DataclassTypeInfo,
    DateTypeInfo,
    DoubleTypeInfo,
    EnumTypeInfo,
    FloatTypeInfo,
    InstantTypeInfo,
    IntegerTypeInfo,
    PickledBytesTypeInfo,
    SqlTimeTypeInfo,
    TimestampTypeInfo,
    TimeTypeInfo,
)
from penstock.common.composite_types import (
    BasicArrayTypeInfo,
    ByteArrayTypeInfo,
    ListTypeInfo,
    MapTypeInfo,
    ObjectArrayTypeInfo,
    PrimitiveArrayTypeInfo,
    RowTypeInfo,
    TupleTypeInfo,
)
from penstock.common.time import Instant
from penstock.common.type_information import DeclaredType, TypeInformation, declared_type
from penstock.common.types import Row

__all__ = [
    "BasicArrayTypeInfo",
    "BasicTypeInfo",
    "DataclassTypeInfo",
    "DateTypeInfo",
    "EnumTypeInfo",
    "InstantTypeInfo",
    "ListTypeInfo",
    "MapTypeInfo",
    "ObjectArrayTypeInfo",
    "PickledBytesTypeInfo",
    "PrimitiveArrayTypeInfo",
    "RowTypeInfo",
    "SqlTimeTypeInfo",
    "TimeTypeInfo",
    "TimestampTypeInfo",
    "TupleTypeInfo",
    "TypeInformation",
    "Types",
    "infer_type",
]

E = TypeVar("E", bound=Enum)

_STRING = BasicTypeInfo("STRING", str)
_BYTE = IntegerTypeInfo("BYTE", int, "b")
_SHORT = IntegerTypeInfo("SHORT", int, "h")
_INT = IntegerTypeInfo("INT", int, "i")
_LONG = IntegerTypeInfo("LONG", int, "q")
_BOOLEAN = BooleanTypeInfo("BOOLEAN", bool)
_FLOAT = FloatTypeInfo("FLOAT", float)
_DOUBLE = DoubleTypeInfo("DOUBLE", float)
_CHAR = CharTypeInfo("CHAR", str)
_BIG_INT = BasicTypeInfo("BIG_INT", int)
_BIG_DEC = BigDecimalTypeInfo("BIG_DEC", Decimal)
_INSTANT = InstantTypeInfo("INSTANT", Instant)
_PICKLED = PickledBytesTypeInfo()


@check_arguments
class Types:
    """Type information by name.

    >>> Types.TUPLE([Types.STRING(), Types.INT()])
    TupleTypeInfo(String, Integer)
    """

    # ruff: noqa: N802

    @staticmethod
    def STRING() -> TypeInformation[str]:
        """Return the type of a string."""
        return _STRING

    @staticmethod
    def BYTE() -> TypeInformation[int]:
        """Return the type of an int of 8 bits."""
        return _BYTE

    @staticmethod
    def SHORT() -> TypeInformation[int]:
        """Return the type of an int of 16 bits."""
        return _SHORT

    @staticmethod
    def INT() -> TypeInformation[int]:
        """Return the type of an int of 32 bits."""
        return _INT

    @staticmethod
    def LONG() -> TypeInformation[int]:
        """Return the type of an int of 64 bits."""
        return _LONG

    @staticmethod
    def BOOLEAN() -> TypeInformation[bool]:
        """Return the type of a bool."""
        return _BOOLEAN

    @staticmethod
    def FLOAT() -> TypeInformation[float]:
        """Return the type of a float of 32 bits. Values are rounded to it."""
        return _FLOAT

    @staticmethod
    def DOUBLE() -> TypeInformation[float]:
        """Return the type of a float of 64 bits, Python's own. Ints become floats."""
        return _DOUBLE

    @staticmethod
    def CHAR() -> TypeInformation[str]:
        """Return the type of a string of one character."""
        return _CHAR

    @staticmethod
    def BIG_INT() -> TypeInformation[int]:
        """Return the type of an int of any size."""
        return _BIG_INT

    @staticmethod
    def BIG_DEC() -> TypeInformation[Decimal]:
        """Return the type of a decimal.Decimal."""
        return _BIG_DEC

    @staticmethod
    def INSTANT() -> TypeInformation[Instant]:
        """Return the type of a `penstock.common.Instant`."""
        return _INSTANT

    @staticmethod
    def SQL_DATE() -> TypeInformation[datetime.date]:
        """Return the type of a datetime.date."""
        return SqlTimeTypeInfo.DATE()

    @staticmethod
    def SQL_TIME() -> TypeInformation[datetime.time]:
        """Return the type of a datetime.time."""
        return SqlTimeTypeInfo.TIME()

    @staticmethod
    def SQL_TIMESTAMP() -> TypeInformation[datetime.datetime]:
        """Return the type of a datetime.datetime."""
        return SqlTimeTypeInfo.TIMESTAMP()

    @staticmethod
    def PICKLED_BYTE_ARRAY() -> TypeInformation[Any]:
        """Return the type of any Python object that can be pickled. Nothing is checked."""
        return _PICKLED

    @staticmethod
    def DATACLASS(data_class: type[T]) -> TypeInformation[T]:
        """Return the type of the instances of a dataclass."""
        if not (isinstance(data_class, type) and dataclasses.is_dataclass(data_class)):
            raise TypeError(f"{data_class!r} is not a dataclass")
        return DataclassTypeInfo(f"DATACLASS({data_class.__qualname__})", data_class)

    @staticmethod
    def ENUM(enum_class: type[E]) -> TypeInformation[E]:
        """Return the type of the members of an enum."""
        if not (isinstance(enum_class, type) and issubclass(enum_class, Enum)):
            raise TypeError(f"{enum_class!r} is not an enum")
        return EnumTypeInfo(f"ENUM({enum_class.__qualname__})", enum_class)

    @staticmethod
    def ROW(field_types: Iterable[DeclaredType[Any]]) -> RowTypeInfo:
        """Return the type of a Row with fields of these types.

        They are called f0, f1, … unless a row has its own names.
        """
        return RowTypeInfo(tuple(map(declared_type, field_types)))

    @staticmethod
    def ROW_NAMED(field_names: Iterable[str], field_types: Iterable[DeclaredType[Any]]) -> RowTypeInfo:
        """Return the type of a Row with fields of these names and types."""
        return RowTypeInfo(tuple(map(declared_type, field_types)), tuple(field_names))

    @overload
    @staticmethod
    def TUPLE(field_types: tuple[DeclaredType[A], DeclaredType[B]]) -> TupleTypeInfo[tuple[A, B]]: ...

    @overload
    @staticmethod
    def TUPLE(
        field_types: tuple[DeclaredType[A], DeclaredType[B], DeclaredType[C]],
    ) -> TupleTypeInfo[tuple[A, B, C]]: ...

    @overload
    @staticmethod
    def TUPLE(
        field_types: tuple[DeclaredType[A], DeclaredType[B], DeclaredType[C], DeclaredType[D]],
    ) -> TupleTypeInfo[tuple[A, B, C, D]]: ...

    @overload
    @staticmethod
    def TUPLE(field_types: Iterable[DeclaredType[Any]]) -> TupleTypeInfo[tuple[Any, ...]]: ...

    @staticmethod
    def TUPLE(field_types: Iterable[TypeInformation[Any]]) -> TupleTypeInfo[Any]:
        """Return the type of a tuple with fields of these types."""
        return TupleTypeInfo(tuple(field_types))

    @staticmethod
    def LIST(element_type_info: DeclaredType[T]) -> TypeInformation[list[T]]:
        """Return the type of a list with elements of this type."""
        return ListTypeInfo(declared_type(element_type_info))

    @staticmethod
    def MAP(key_type_info: DeclaredType[K], value_type_info: DeclaredType[V]) -> TypeInformation[dict[K, V]]:
        """Return the type of a dict with keys and values of these types."""
        return MapTypeInfo(declared_type(key_type_info), declared_type(value_type_info))

    @staticmethod
    def PRIMITIVE_ARRAY(element_type: DeclaredType[Any]) -> TypeInformation[Any]:
        """Return the type of a list of numbers or booleans, or of a bytes object for BYTE."""
        return (
            ByteArrayTypeInfo(element_type)
            if element_type == _BYTE
            else PrimitiveArrayTypeInfo(declared_type(element_type))
        )

    @staticmethod
    def BASIC_ARRAY(element_type: DeclaredType[Any]) -> TypeInformation[Any]:
        """Return the type of a list of strings or numbers."""
        return BasicArrayTypeInfo(declared_type(element_type))

    @staticmethod
    def OBJECT_ARRAY(element_type: DeclaredType[Any]) -> TypeInformation[Any]:
        """Return the type of a list of objects."""
        return ObjectArrayTypeInfo(declared_type(element_type))


def infer_type(value: Any) -> TypeInformation:
    """Return the type that fits this value without loss, or PICKLED_BYTE_ARRAY if there is no closer type."""
    infer = _INFERENCE.get(type(value))
    if infer is not None:
        return infer(value)
    if isinstance(value, Enum):
        return Types.ENUM(type(value))
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return Types.DATACLASS(type(value))
    return _PICKLED


def _infer_int(value: int) -> TypeInformation:
    return _LONG if -(2**63) <= value < 2**63 else _BIG_INT


def _infer_row(value: Row) -> TypeInformation:
    names = value.get_field_names()
    return RowTypeInfo(tuple(map(infer_type, value)), None if names is None else tuple(names))


def _infer_list(value: list[Any]) -> TypeInformation:
    element = _common(value)
    return _PICKLED if element is None else ListTypeInfo(element)


def _infer_map(value: dict[Any, Any]) -> TypeInformation:
    keys, values = _common(value), _common(value.values())
    return _PICKLED if keys is None or values is None else MapTypeInfo(keys, values)


def _common(values: Iterable[Any]) -> TypeInformation | None:
    """Return the common type of all these values, or None if they differ or there are none."""
    types = {infer_type(value) for value in values if value is not None}
    return types.pop() if len(types) == 1 else None


_INFERENCE: dict[type, Callable[[Any], TypeInformation]] = {
    str: lambda value: _STRING,
    bool: lambda value: _BOOLEAN,
    int: _infer_int,
    float: lambda value: _DOUBLE,
    bytes: lambda value: ByteArrayTypeInfo(_BYTE),
    Decimal: lambda value: _BIG_DEC,
    Instant: lambda value: _INSTANT,
    datetime.date: lambda value: Types.SQL_DATE(),
    datetime.time: lambda value: Types.SQL_TIME(),
    datetime.datetime: lambda value: Types.SQL_TIMESTAMP(),
    tuple: lambda value: TupleTypeInfo(tuple(map(infer_type, value))),
    Row: _infer_row,
    list: _infer_list,
    dict: _infer_map,
}
