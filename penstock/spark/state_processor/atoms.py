"""Spark types without parts, and the conversion of Python values to each."""

from __future__ import annotations

import datetime
import operator
from collections.abc import Callable
from decimal import Decimal
from enum import Enum
from numbers import Real
from typing import Any
from uuid import UUID

from pyspark.sql import types as spark

from penstock.api.windows.windows import Window
from penstock.common.time import Instant

_EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)


def require(value: Any, *accepted: type) -> Any:
    """Return the value if it is of one of these classes, else raise TypeError."""
    if not isinstance(value, accepted):
        raise TypeError(f"{type(value).__name__} is not allowed here")
    return value


def _boolean(value: Any) -> bool:
    held: bool = require(value, bool)
    return held


def _whole(bits: int) -> Callable[[Any], int]:
    most = 1 << (bits - 1)

    def fit(value: Any) -> int:
        number = operator.index(value)
        if isinstance(value, bool) or not -most <= number < most:
            raise ValueError(f"{value!r} does not fit a number of {bits} bits")
        return number

    return fit


def _floating(value: Any) -> float:
    if isinstance(value, bool):
        raise TypeError
    return float(require(value, Real, Decimal))


def _decimal(scale: int) -> Callable[[Any], Decimal]:
    def fit(value: Any) -> Decimal:
        number = value if isinstance(value, Decimal) else Decimal(operator.index(value))
        exponent = number.normalize().as_tuple().exponent
        if isinstance(value, bool) or not number.is_finite() or number.adjusted() >= 38 - scale:
            raise ValueError(f"{value!r} has too many digits")
        if not isinstance(exponent, int) or exponent < -scale:
            raise ValueError(f"{value!r} has too many digits")
        return number

    return fit


def _string(value: Any) -> str:
    if isinstance(value, str):
        return str.__str__(value)
    if isinstance(value, Enum):
        return value.name
    if isinstance(value, datetime.time):
        return value.isoformat()
    return str(value) if isinstance(value, UUID) else repr(require(value, Window))


def _binary(value: Any) -> bytes:
    return bytes(require(value, bytes, bytearray))


def _date(value: Any) -> datetime.date:
    if isinstance(value, datetime.datetime):
        raise TypeError("a date with a time of day")
    return require(value, datetime.date)  # type: ignore[no-any-return]


def _timestamp(value: Any) -> datetime.datetime:
    if isinstance(value, Instant):
        return _EPOCH + datetime.timedelta(seconds=value.seconds, microseconds=value.nanos // 1000)
    if require(value, datetime.datetime).utcoffset() is None:
        raise ValueError("no time zone")
    return value  # type: ignore[no-any-return]


def _local_timestamp(value: Any) -> datetime.datetime:
    if require(value, datetime.datetime).utcoffset() is not None:
        raise ValueError("a time zone")
    return value  # type: ignore[no-any-return]


def _interval(value: Any) -> datetime.timedelta:
    return require(value, datetime.timedelta)  # type: ignore[no-any-return]


ATOMS: dict[str, tuple[spark.DataType, Callable[[Any], Any]]] = {
    "boolean": (spark.BooleanType(), _boolean),
    "tinyint": (spark.ByteType(), _whole(8)),
    "smallint": (spark.ShortType(), _whole(16)),
    "int": (spark.IntegerType(), _whole(32)),
    "bigint": (spark.LongType(), _whole(64)),
    "float": (spark.FloatType(), _floating),
    "double": (spark.DoubleType(), _floating),
    "decimal(38,0)": (spark.DecimalType(38, 0), _decimal(0)),
    "decimal(38,18)": (spark.DecimalType(38, 18), _decimal(18)),
    "string": (spark.StringType(), _string),
    "binary": (spark.BinaryType(), _binary),
    "date": (spark.DateType(), _date),
    "timestamp": (spark.TimestampType(), _timestamp),
    "timestamp_ntz": (spark.TimestampNTZType(), _local_timestamp),
    "interval day to second": (spark.DayTimeIntervalType(), _interval),
}
_WHOLE = {"tinyint", "smallint", "int", "bigint"}
WIDER = [
    ("bigint", _WHOLE),
    ("decimal(38,0)", _WHOLE | {"decimal(38,0)"}),
    ("double", _WHOLE | {"float", "double"}),
]
"""Types that fit values of several types. The first entry that covers all of them counts."""
