"""Stable hashes of keys, which agree with == and are the same in every process, and the key groups made from them."""

from __future__ import annotations

import dataclasses
import datetime
import decimal
import enum
import uuid
from collections.abc import Callable, Sequence
from typing import Any
from zlib import crc32

from penstock.common.types import Row
from penstock.errors import UnsupportedKey

UPPER_BOUND_MAX_PARALLELISM = 1 << 15
_MIX = 0x9E3779B1
_WORD = 0xFFFFFFFF


def _mix(number: int) -> int:
    folded = number ^ (number >> 32)
    return (folded * _MIX & _WORD) >> 8


def _of_number(key: Any) -> int:
    """Hash a number with Python's numeric hash, which is not salted and agrees with == across all kinds of numbers."""
    if key != key:  # noqa: PLR0124 - true for NaN alone
        raise UnsupportedKey("NaN cannot be a key: it is not equal to itself")
    return _mix(hash(key))


def _of_parts(parts: Any, seed: int) -> int:
    result = seed
    for part in parts:
        result = (result * 31 + stable_hash(part)) & _WORD
    return _mix(result)


def _of_text(key: str) -> int:
    return _mix(crc32(key.encode("utf-8", "surrogatepass")))


def _of_bytes(key: bytes) -> int:
    return _mix(crc32(key, 1))


def _of_tuple(key: tuple[Any, ...]) -> int:
    return _of_parts(key, 7)


def _of_row(key: Row) -> int:
    """Hash a row with its fields in the order of their names, because the order does not matter for equality."""
    names = key.get_field_names()
    return _of_parts(key if names is None else key.get_fields_by_names(sorted(names)), 11)


def _of_frozenset(key: frozenset[Any]) -> int:
    return _mix(sum(stable_hash(part) for part in key) & _WORD)


def _of_none(_: None) -> int:
    return 0


def _of_datetime(key: datetime.datetime) -> int:
    key = key.replace(fold=0)
    if key.utcoffset() is not None:
        key = key.astimezone(datetime.UTC)
    return _of_text(key.isoformat())


def _of_date(key: datetime.date) -> int:
    return _of_text(key.isoformat())


def _of_time(key: datetime.time) -> int:
    """Hash the time of day in UTC, because times with zones are equal if they are equal in UTC."""
    offset = key.utcoffset() or datetime.timedelta()
    clock = datetime.timedelta(hours=key.hour, minutes=key.minute, seconds=key.second, microseconds=key.microsecond)
    return _of_timedelta(clock - offset)


def _of_timedelta(key: datetime.timedelta) -> int:
    return _of_parts((key.days, key.seconds, key.microseconds), 13)


def _of_uuid(key: uuid.UUID) -> int:
    return _of_bytes(key.bytes)


_BY_TYPE: dict[type, Callable[[Any], int]] = {
    int: _of_number,
    float: _of_number,
    bool: _of_number,
    decimal.Decimal: _of_number,
    str: _of_text,
    bytes: _of_bytes,
    tuple: _of_tuple,
    Row: _of_row,
    frozenset: _of_frozenset,
    type(None): _of_none,
    datetime.datetime: _of_datetime,
    datetime.date: _of_date,
    datetime.time: _of_time,
    datetime.timedelta: _of_timedelta,
    uuid.UUID: _of_uuid,
}


def stable_hash(key: Any) -> int:
    """Return a 24-bit hash that is equal for equal keys, in every process, on every machine and Python version."""
    hasher = _BY_TYPE.get(type(key))
    if hasher is not None:
        return hasher(key)
    return _of_other(key)


# --- many keys at once ---
_PLAIN_HASH = (1 << 61) - 1
"""Modulus of Python's hashes of numbers. Any integer nearer to 0 is its own hash, except for -1."""


def hashes_of_numbers(numbers: Any) -> Any | None:
    """Return the stable hashes of a numpy array of 64-bit integers, or None if some are too large for a shortcut."""
    if len(numbers) and (numbers.max() >= _PLAIN_HASH or numbers.min() <= -_PLAIN_HASH):
        return None
    return _mix(numbers - (numbers == -1))


def hashes_of_tuples(parts: Sequence[Any]) -> Any:
    """Return the stable hashes of tuples, given numpy arrays with the hashes of their parts."""
    result: Any = 7
    for part in parts:
        result = (result * 31 + part) & _WORD
    return _mix(result)


def _of_other(key: Any) -> int:
    for base in (int, float, str, bytes, tuple):
        if isinstance(key, base):
            # An object of a subclass, such as an IntEnum or a named tuple, equals the plain value.
            return _BY_TYPE[base](str.__str__(key) if base is str else key)
    if isinstance(key, enum.Enum):
        return _of_text(f"{type(key).__qualname__}.{key.name}")
    if dataclasses.is_dataclass(key) and not isinstance(key, type):
        _check_dataclass(key)
        return _of_parts([getattr(key, f.name) for f in dataclasses.fields(key) if f.compare], 17)
    raise UnsupportedKey(
        f"{short_repr(key)} of type {type(key).__name__} cannot be a key. Allowed are numbers, strings, bytes, None, "
        "dates and times, UUIDs, enums, and tuples, rows, frozensets and frozen dataclasses of these."
    )


def _check_dataclass(key: Any) -> None:
    if not any("__eq__" in vars(base) for base in type(key).__mro__[:-1]):
        raise UnsupportedKey(
            f"{short_repr(key)} cannot be a key: dataclass {type(key).__name__} has no equality of its own, so every "
            "copy would be another key. Declare it with @dataclass(frozen=True)."
        )
    try:
        hash(key)
    except TypeError:
        raise UnsupportedKey(
            f"{short_repr(key)} cannot be a key: dataclass {type(key).__name__} is not hashable. "
            "Declare it with @dataclass(frozen=True)."
        ) from None


def short_repr(value: Any, limit: int = 200) -> str:
    """Return repr(value) for a message. It never fails and never returns a long text."""
    try:
        text = repr(value)
    except Exception:
        text = f"<{type(value).__name__} whose repr failed>"
    return text if len(text) <= limit else text[: limit - 1] + "…"


def key_group(key: Any, max_parallelism: int) -> int:
    """Return the key group of a key. Keyed state moves between subtasks by whole key groups."""
    return stable_hash(key) % max_parallelism


def subtask_for_group(group: int, max_parallelism: int, parallelism: int) -> int:
    """Return the subtask, of `parallelism` subtasks, that owns a key group. Ranges are contiguous, as in Flink."""
    return group * parallelism // max_parallelism


def group_range(subtask: int, max_parallelism: int, parallelism: int) -> range:
    """Return the key groups that a subtask owns."""
    first = -(-subtask * max_parallelism // parallelism)
    return range(first, -(-(subtask + 1) * max_parallelism // parallelism))


def default_max_parallelism(parallelism: int) -> int:
    """Return Flink's default: one and a half times the parallelism, rounded up to a power of two, at least 128."""
    wanted = parallelism + parallelism // 2
    rounded = 1 << max(0, (wanted - 1).bit_length())
    return min(max(rounded, 128), UPPER_BOUND_MAX_PARALLELISM)
