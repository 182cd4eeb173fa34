"""Keys and values as JSON and back, without executing anything that comes from outside, as pickle would.

JSON's own types stand for themselves: null, booleans, numbers that are finite, strings, and arrays for lists. Every
other value is an object with its type's name: {"t": "tuple", "v": [1, 2]}.
"""

from __future__ import annotations

import dataclasses
import datetime
import math
from base64 import b64decode, b64encode
from collections.abc import Callable
from decimal import Decimal
from enum import Enum
from typing import Any
from uuid import UUID

from penstock.common.time import Instant
from penstock.common.types import Row, RowKind
from penstock.engine.state.key_groups import short_repr
from penstock.errors import QueryError, UnsupportedKey

Encoder = Callable[[Any], Any]
_SENT = "numbers, strings, bytes, None, lists, tuples, sets, dicts, rows, dates and times, decimals and UUIDs"


def key_to_json(key: Any) -> Any:
    """Encode a key. It must arrive unchanged, because a changed key would be another key."""
    if type(key) not in _ENCODERS:
        raise UnsupportedKey(
            f"{short_repr(key)} of type {type(key).__name__} cannot be sent as a key: {_SENT} can. In the process of "
            "the program, JobClient.query takes any key"
        )
    return _ENCODERS[type(key)](key, key_to_json)


def value_to_json(value: Any) -> Any:
    """Encode a value. Named tuples and dataclasses become rows, enums their names, and other subclasses their base."""
    encoder = _ENCODERS.get(type(value))
    if encoder is not None:
        return encoder(value, value_to_json)
    return value_to_json(_simpler(value))


def _simpler(value: Any) -> Any:
    if isinstance(value, Enum):
        return value.name
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return _row(value._fields, tuple(value))
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        names = tuple(field.name for field in dataclasses.fields(value))
        return _row(names, tuple(getattr(value, name) for name in names))
    bases: tuple[Any, ...] = (int, float, str, bytes, tuple, list, dict, set, frozenset)
    for base in bases:
        if isinstance(value, base):
            return str.__str__(value) if base is str else base(value)
    raise QueryError(
        f"a value of type {type(value).__name__} cannot be sent to a client: {_SENT}, dataclass instances and enums "
        "can; keep one of these in queryable state, or ask with JobClient.query in the process of the program"
    )


def from_json(sent: Any) -> Any:
    """Decode a key or a value. Raise QueryError for JSON that no encoder produces."""
    if isinstance(sent, list):
        return [from_json(part) for part in sent]
    if not isinstance(sent, dict):
        return sent
    try:
        return _DECODERS[sent["t"]](sent["v"])
    except (KeyError, TypeError, ValueError, ArithmeticError, AttributeError) as error:
        raise QueryError(f"{short_repr(sent)} is not a value that a client or a server can send") from error


# --- to JSON ---
def _tag_with(tag: str, form: Encoder) -> Callable[[Any, Encoder], Any]:
    return lambda value, _: {"t": tag, "v": form(value)}


def _sequence(tag: str) -> Callable[[Any, Encoder], Any]:
    return lambda value, encode: {"t": tag, "v": [encode(part) for part in value]}


def _itself(value: Any, _: Encoder) -> Any:
    return value


def _float(value: float, _: Encoder) -> Any:
    return value if math.isfinite(value) else {"t": "float", "v": repr(value)}


def _list(value: list[Any], encode: Encoder) -> Any:
    return [encode(part) for part in value]


def _dict(value: dict[Any, Any], encode: Encoder) -> Any:
    return {"t": "dict", "v": [[encode(key), encode(part)] for key, part in value.items()]}


def _encode_row(row: Row, encode: Encoder) -> Any:
    return {"t": "row", "v": [row.get_field_names(), row.get_row_kind().value, [encode(part) for part in row]]}


_ENCODERS: dict[type, Callable[[Any, Encoder], Any]] = {
    type(None): _itself,
    bool: _itself,
    int: _itself,
    str: _itself,
    float: _float,
    list: _list,
    dict: _dict,
    Row: _encode_row,
    tuple: _sequence("tuple"),
    set: _sequence("set"),
    frozenset: _sequence("frozenset"),
    bytes: _tag_with("bytes", lambda value: b64encode(value).decode()),
    bytearray: _tag_with("bytes", lambda value: b64encode(value).decode()),
    Decimal: _tag_with("decimal", str),
    UUID: _tag_with("uuid", str),
    datetime.datetime: _tag_with("datetime", lambda value: value.isoformat()),
    datetime.date: _tag_with("date", lambda value: value.isoformat()),
    datetime.time: _tag_with("time", lambda value: value.isoformat()),
    datetime.timedelta: _tag_with("timedelta", lambda value: [value.days, value.seconds, value.microseconds]),
    Instant: _tag_with("instant", lambda value: [value.seconds, value.nanos]),
}


# --- from JSON ---
def _decode_row(sent: list[Any]) -> Row:
    names, kind, parts = sent
    row = Row.of_kind(RowKind(kind), *map(from_json, parts))
    if names is not None:
        row.set_field_names(names)
    return row


def _row(names: tuple[str, ...], parts: tuple[Any, ...]) -> Row:
    row = Row(*parts)
    row.set_field_names(names)
    return row


_DECODERS: dict[str, Callable[[Any], Any]] = {
    "float": float,
    "tuple": lambda sent: tuple(map(from_json, sent)),
    "set": lambda sent: set(map(from_json, sent)),
    "frozenset": lambda sent: frozenset(map(from_json, sent)),
    "dict": lambda sent: {from_json(key): from_json(value) for key, value in sent},
    "row": _decode_row,
    "bytes": lambda sent: b64decode(sent, validate=True),
    "decimal": Decimal,
    "uuid": UUID,
    "datetime": datetime.datetime.fromisoformat,
    "date": datetime.date.fromisoformat,
    "time": datetime.time.fromisoformat,
    "timedelta": lambda sent: datetime.timedelta(*sent),
    "instant": lambda sent: Instant(*sent),
}
