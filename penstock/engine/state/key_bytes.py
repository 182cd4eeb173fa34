"""Addresses as bytes, for a database that knows no objects. Equal addresses have equal bytes, others different ones.

An address is first made canonical: numbers of every type become ints if they are whole, and named tuples and windows
become tuples. It is then marshalled, which is fast and distinguishes types. Lists cannot be in an address, so they
stand for values that marshal does not support; their first item names the kind.

The bytes are valid only in this process, because classes are numbered in the order of their appearance.
"""

from __future__ import annotations

import dataclasses
import datetime
import decimal
import enum
import io
import pickle
import uuid
from collections.abc import Callable
from itertools import count
from marshal import dumps
from typing import Any

from penstock.api.windows.windows import CountWindow, GlobalWindow, TimeWindow
from penstock.common.types import Row
from penstock.engine.state.key_groups import short_repr
from penstock.errors import UnsupportedKey

_FORMAT = 2
"""The last of marshal's formats in which the bytes do not depend on which objects are shared or interned."""
_PLAIN = frozenset({str, int, bytes, type(None)})
_LONGEST_WHOLE_DECIMAL = 5000
_EPOCH = datetime.datetime(1970, 1, 1)
_EPOCH_UTC = _EPOCH.replace(tzinfo=datetime.UTC)
_numbers: dict[int, tuple[int, Any]] = {}
_counter = count()


def key_bytes(address: Any) -> bytes:
    """Return the bytes of an address.

    Objects of types that cannot be keys are equal here if their pickles are equal.
    """
    kind = type(address)
    if kind in _PLAIN:
        return dumps(address, _FORMAT)
    if kind is tuple and len(address) == 2 and type(address[0]) in _PLAIN and type(address[1]) in _PLAIN:
        return dumps(address, _FORMAT)  # a key and its namespace, unchanged
    return dumps(_BY_TYPE.get(kind, _of_other)(address), _FORMAT)


def _canonical(value: Any) -> Any:
    return value if type(value) in _PLAIN else _BY_TYPE.get(type(value), _of_other)(value)


def _of_tuple(key: tuple[Any, ...]) -> tuple[Any, ...]:
    return tuple([part if type(part) in _PLAIN else _BY_TYPE.get(type(part), _of_other)(part) for part in key])


def _of_float(key: float) -> int | float:
    return int(key) if key.is_integer() else float(key)


def _of_decimal(key: decimal.Decimal) -> Any:
    """Return the float or int that equals a decimal, or its digits without trailing zeros if there is none."""
    approximate = float(key)
    if approximate == key:
        return _of_float(approximate)
    sign, digits, exponent = key.as_tuple()
    text = "".join(map(str, digits)).rstrip("0")
    power = int(exponent) + len(digits) - len(text)
    if power >= 0 and key.adjusted() < _LONGEST_WHOLE_DECIMAL:
        return int(key)
    return ["decimal", sign, text, power]


def _of_row(key: Row) -> Any:
    """Return the row with its fields in the order of their names, because the order does not matter for equality."""
    names = key.get_field_names()
    ordered = None if names is None else sorted(names)
    return ["row", key.get_row_kind().value, ordered, *map(_canonical, key.get_fields_by_names(ordered or ()))]


def _of_frozenset(key: frozenset[Any]) -> Any:
    return ["frozenset", *sorted(map(key_bytes, key))]


def _of_datetime(key: datetime.datetime) -> Any:
    """Map equal instants to equal values. A local time that occurs twice, or never, equals only itself in its zone."""
    if key.utcoffset() is None:
        return ["datetime", *_parts(key.replace(tzinfo=None) - _EPOCH)]
    if key.utcoffset() != key.replace(fold=not key.fold).utcoffset():
        return ["unclear datetime", _number(key.tzinfo), *_parts(key.replace(tzinfo=None) - _EPOCH)]
    return ["instant", *_parts(key - _EPOCH_UTC)]


def _of_time(key: datetime.time) -> Any:
    clock = datetime.timedelta(hours=key.hour, minutes=key.minute, seconds=key.second, microseconds=key.microsecond)
    offset = key.utcoffset()
    return ["time", *_parts(clock)] if offset is None else ["time in UTC", *_parts(clock - offset)]


def _parts(span: datetime.timedelta) -> tuple[int, int, int]:
    return span.days, span.seconds, span.microseconds


_BY_TYPE: dict[type, Callable[[Any], Any]] = {
    tuple: _of_tuple,
    TimeWindow: _of_tuple,
    str: str.__str__,
    int: int.__index__,
    bool: int,
    float: _of_float,
    bytes: bytes,
    type(None): lambda _: None,
    decimal.Decimal: _of_decimal,
    Row: _of_row,
    frozenset: _of_frozenset,
    datetime.datetime: _of_datetime,
    datetime.date: lambda key: ["date", key.toordinal()],
    datetime.time: _of_time,
    datetime.timedelta: lambda key: ["timedelta", *_parts(key)],
    uuid.UUID: lambda key: ["uuid", key.bytes],
    GlobalWindow: lambda _: ["global window"],
    CountWindow: lambda key: ["count window", _canonical(key.id)],
}


def _of_other(key: Any) -> Any:
    for base, canonical in _BY_TYPE.items():
        if isinstance(key, base):
            # An object of a subclass, such as an IntEnum or a named tuple, equals the plain value.
            return canonical(key)
    if isinstance(key, enum.Enum):
        return ["enum", _number(type(key)), key.name]
    if dataclasses.is_dataclass(key) and not isinstance(key, type):
        fields = [getattr(key, field.name) for field in dataclasses.fields(key) if field.compare]
        return ["dataclass", _number(type(key)), *map(_canonical, fields)]
    return ["object", _pickle_key(key)]


def _number(thing: Any) -> int:
    """Return a number for a class or a time zone. These are compared by identity."""
    return _numbers.setdefault(id(thing), (next(_counter), thing))[0]


class _Pickler(pickle.Pickler):
    """Writes classes as numbers, so that classes defined inside functions work as well."""

    def persistent_id(self, thing: Any) -> int | None:
        return _number(thing) if isinstance(thing, type) else None


def _pickle_key(key: Any) -> bytes:
    buffer = io.BytesIO()
    pickler = _Pickler(buffer, pickle.HIGHEST_PROTOCOL)
    pickler.fast = True  # without a memo, the bytes do not depend on which parts are one object
    try:
        pickler.dump(key)
    except Exception as error:
        raise UnsupportedKey(
            f"{short_repr(key)} of type {type(key).__name__} cannot be the address of state in RocksDB: {error}"
        ) from error
    return buffer.getvalue()
