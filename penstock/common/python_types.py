"""Type information for Python types, such as LIST(LONG) for list[int]."""

from __future__ import annotations

import dataclasses
import datetime
import types
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from enum import Enum
from typing import Any, Union, get_args, get_origin

from penstock.common.time import Instant
from penstock.common.type_information import TypeInformation
from penstock.common.typeinfo import Types

__all__ = ["type_of_class"]

_SIMPLE: dict[Any, Callable[[], TypeInformation]] = {
    str: Types.STRING,
    int: Types.LONG,
    float: Types.DOUBLE,
    bool: Types.BOOLEAN,
    bytes: lambda: Types.PRIMITIVE_ARRAY(Types.BYTE()),
    Decimal: Types.BIG_DEC,
    Instant: Types.INSTANT,
    datetime.date: Types.SQL_DATE,
    datetime.time: Types.SQL_TIME,
    datetime.datetime: Types.SQL_TIMESTAMP,
    object: Types.PICKLED_BYTE_ARRAY,
    Any: Types.PICKLED_BYTE_ARRAY,
}


def type_of_class(kind: Any) -> TypeInformation | None:
    """Return the type information of a Python type, or None if it has none or several."""
    if isinstance(kind, TypeInformation):
        return kind
    origin = get_origin(kind)
    if origin is not None:
        return _composite(origin, get_args(kind))
    if not isinstance(kind, type) and kind is not Any:
        return None
    if kind in _SIMPLE:
        return _SIMPLE[kind]()
    if isinstance(kind, type) and issubclass(kind, Enum):
        return Types.ENUM(kind)
    return Types.DATACLASS(kind) if dataclasses.is_dataclass(kind) else None


def _composite(origin: Any, args: tuple[Any, ...]) -> TypeInformation | None:
    if origin in (Union, types.UnionType):
        # Every type allows None.
        kinds = [arg for arg in args if arg is not type(None)]
        return type_of_class(kinds[0]) if len(kinds) == 1 else None
    if not args:  # typing.List
        return None
    parts = [found for arg in args if (found := type_of_class(arg)) is not None]
    if len(parts) != len(args):
        return None
    if origin is tuple:
        return Types.TUPLE(parts)
    if origin in (list, Sequence):
        return Types.LIST(parts[0])
    return Types.MAP(*parts) if origin in (dict, Mapping) else None
