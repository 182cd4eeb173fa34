"""Texts and numbers as moments and back, and the current time."""

from __future__ import annotations

import datetime
from collections.abc import Callable
from typing import Any
from zoneinfo import ZoneInfo

import pyarrow as pa
import pyarrow.compute as pc

from penstock.errors import ValidationException
from penstock.table.functions.library.date_patterns import DEFAULT, finest, format_moment, parse_moment
from penstock.table.functions.library.fast_texts import fast_text
from penstock.table.functions.library.parsing import date, timestamp
from penstock.table.functions.moment import Moment
from penstock.table.functions.typing.coercion import TEXTS, TIMESTAMPS
from penstock.table.functions.typing.registry import (
    Infer,
    Kernel,
    Unfit,
    Value,
    column_of,
    of_distinct,
    register,
    rows_of,
)
from penstock.table.functions.typing.result_types import (
    INTEGER,
    NUMBER,
    TEXT,
    Check,
    either,
    signature,
)
from penstock.table.logical.rex import Call, Literal, Rex
from penstock.table.types import data_types as t
from penstock.table.types.arrow_forms import arrow_type

_STRING, _BIGINT = t.DataTypes.STRING(), t.BigIntType()
_UNREADABLE = -(2**63)
"""The result of UNIX_TIMESTAMP for an unreadable text."""
_TIMESTAMP: Callable[[str], datetime.datetime] = timestamp(6)


def with_zone(compute: Callable[..., Any]) -> Callable[[Call], Kernel]:
    """Return a kernel that calls a Python function for every row, with the session's zone as first argument."""

    def make(call: Call) -> Kernel:
        kinds = [arg.type for arg in call.args]

        def kernel(rows: int, moment: Moment, *values: Value) -> Value:
            there = ZoneInfo(moment.zone)

            def every(*some: Value) -> Value:
                return column_of(rows_of(lambda *one: compute(there, *one), some, kinds, False, call.function), call)

            return of_distinct(every, values)

        return kernel

    return make


# --- texts ---
def _date_format(there: ZoneInfo, value: Any, pattern: str) -> str | None:
    if isinstance(value, str):
        moment = _read(value, None)
        return None if moment is None else format_moment(moment, pattern)
    return format_moment(value if value.tzinfo is None else value.astimezone(there), pattern)


def _date_format_kernel(call: Call) -> Kernel:
    """Return the kernel of DATE_FORMAT.

    It first truncates moments to the unit of the pattern, so that many become equal.
    """
    slow, pattern = with_zone(_date_format)(call), call.args[1]
    unit = finest(pattern.value) if isinstance(pattern, Literal) and pattern.value is not None else None

    def kernel(rows: int, moment: Moment, value: Value, form: Value) -> Value:
        if unit is None or not isinstance(value, pa.Array) or not pa.types.is_timestamp(value.type):
            return slow(rows, moment, value, form)
        local = value if value.type.tz is None else pc.local_timestamp(value.cast(pa.timestamp("us", moment.zone)))
        return slow(rows, moment, pc.floor_temporal(local, unit=unit), form)

    return kernel


def _to_timestamp_kernel(call: Call) -> Kernel:
    """Return the kernel of TO_TIMESTAMP. It handles the usual form of texts in whole columns."""
    slow = with_zone(_to_timestamp)(call)
    fast = fast_text(_STRING, call.type)
    pattern = call.args[1] if len(call.args) > 1 else None
    usual = pattern is None or (isinstance(pattern, Literal) and pattern.value == DEFAULT)
    if fast is None or not usual:
        return slow

    def kernel(rows: int, moment: Moment, value: Value, *others: Value) -> Value:
        found = fast(value, moment.zone) if isinstance(value, pa.Array) else None
        return slow(rows, moment, value, *others) if found is None else found

    return kernel


def _read(text: str, pattern: str | None) -> datetime.datetime | None:
    try:
        return _TIMESTAMP(text) if pattern is None else parse_moment(text, pattern)
    except (ValueError, KeyError):
        return None if pattern is None else _read(text, None)


def _to_date(there: ZoneInfo, text: str, pattern: str | None = None) -> datetime.date | None:
    try:
        return date(text) if pattern is None else parse_moment(text, pattern).date()
    except (ValueError, KeyError):
        return None


def _to_timestamp(there: ZoneInfo, text: str, pattern: str | None = None) -> datetime.datetime | None:
    found = _read(text, pattern)
    return None if found is None else _millis(found.replace(tzinfo=None))


def _millis(value: datetime.datetime) -> datetime.datetime:
    return value.replace(microsecond=value.microsecond // 1000 * 1000)


def _ltz_of_text(there: ZoneInfo, text: str, pattern: str | None = None, zone: str | None = None) -> Any:
    found = _read(text, pattern)
    if found is None:
        raise ValueError(f"{text!r} is not a timestamp")
    home = ZoneInfo(zone) if zone else datetime.UTC
    return _millis(found.replace(tzinfo=home)).astimezone(datetime.UTC)


_EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)


def _ltz_of_number(there: ZoneInfo, number: Any, precision: int = 3) -> datetime.datetime:
    micros = int(number * 10 ** (6 - precision)) if precision <= 6 else int(number // 10 ** (precision - 6))
    return _EPOCH + datetime.timedelta(microseconds=micros)


def _ltz_kernel(call: Call) -> Kernel:
    """Return the kernel of TO_TIMESTAMP_LTZ. It handles whole numbers in whole columns, and texts row by row."""
    slow = with_zone(_ltz)(call)
    if not isinstance(call.args[0].type, t.IntegralType):
        return slow

    def kernel(rows: int, moment: Moment, *values: Value) -> Value:
        precision = 3 if len(values) == 1 else values[1].as_py() if isinstance(values[1], pa.Scalar) else None
        if not isinstance(values[0], pa.Array) or precision is None or not 0 <= precision <= 6:
            return slow(rows, moment, *values)
        micros = pc.multiply(values[0].cast(pa.int64()), 10 ** (6 - precision))
        return micros.cast(arrow_type(call.type))

    return kernel


def _ltz(there: ZoneInfo, value: Any, *others: Any) -> Any:
    return _ltz_of_text(there, value, *others) if isinstance(value, str) else _ltz_of_number(there, value, *others)


def _from_unixtime(there: ZoneInfo, seconds: int, pattern: str = DEFAULT) -> str:
    return format_moment((_EPOCH + datetime.timedelta(seconds=seconds)).astimezone(there), pattern)


def _unix_timestamp(there: ZoneInfo, text: str, pattern: str = DEFAULT) -> int:
    try:
        found = parse_moment(text, pattern)
    except (ValueError, KeyError):
        return _UNREADABLE
    aware = found.replace(tzinfo=there) if found.tzinfo is None else found
    return int((aware - _EPOCH).total_seconds())


def _convert_tz(there: ZoneInfo, text: str, old: str, new: str) -> str | None:
    found = _read(text, DEFAULT)
    if found is None:
        return None
    return format_moment(found.replace(tzinfo=_zone(old)).astimezone(_zone(new)), DEFAULT)


def _zone(name: str) -> datetime.tzinfo:
    """Return a time zone by its name, or UTC if it is unknown."""
    try:
        return ZoneInfo(name)
    except (KeyError, ValueError, OSError):
        return datetime.UTC


# --- now ---
def _now(kind: t.DataType) -> Callable[[Call], Kernel]:
    form = arrow_type(kind)

    def kernel(rows: int, moment: Moment, *values: Value) -> Value:
        now = _EPOCH + datetime.timedelta(milliseconds=moment.processing_time)
        there = now.astimezone(ZoneInfo(moment.zone))
        value: Any = {
            t.DateType: there.date(),
            t.TimeType: there.time().replace(microsecond=0),
            t.TimestampType: there.replace(tzinfo=None),
            t.BigIntType: moment.processing_time // 1000,
        }.get(type(kind), now)
        return pa.repeat(pa.scalar(value, form), rows)

    return lambda call: kernel


def _current_watermark(call: Call) -> Kernel:
    form = arrow_type(call.type)

    def kernel(rows: int, moment: Moment, value: Value) -> Value:
        mark = None if moment.watermark is None else _EPOCH + datetime.timedelta(milliseconds=moment.watermark)
        if mark is not None and form.tz is None:
            mark = mark.replace(tzinfo=None)
        return pa.repeat(pa.scalar(mark, form), rows)

    return kernel


def _watermark_type(args: tuple[Rex, ...]) -> tuple[tuple[Rex, ...], t.DataType]:
    if len(args) != 1 or not isinstance(args[0].type, TIMESTAMPS):
        raise Unfit("a column of event time")
    zone = isinstance(args[0].type, t.LocalZonedTimestampType)
    return args, t.LocalZonedTimestampType(3) if zone else t.TimestampType(3)


def _ltz_types(args: tuple[Rex, ...]) -> tuple[tuple[Rex, ...], t.DataType]:
    number = signature(NUMBER, INTEGER, result=t.LocalZonedTimestampType(3), optional=1, nulls=True)
    text = signature(TEXT, TEXT, TEXT, result=t.LocalZonedTimestampType(3), optional=2, nulls=True)
    args, kind = either(number, text)(args)
    given = args[1].value if len(args) == 2 and isinstance(args[1], Literal) else None
    if isinstance(args[0].type, TEXTS) or given is None:
        return args, kind
    if given not in range(10):
        raise Unfit("a precision from 0 to 9")
    return args, t.LocalZonedTimestampType(max(given, 3))


def _nothing(result: t.DataType) -> Infer:
    return signature(result=result, nulls=False)


def _refuse_evaluation(call: Call) -> Kernel:
    raise ValidationException(
        f"{call.function}() is allowed only in a WATERMARK declaration, where it selects the watermarks of the source"
    )


def _database(rows: int, moment: Moment) -> Value:
    return pa.repeat(pa.scalar(moment.database, pa.string()), rows)


_FORMATTED: Check = ("TIMESTAMP or text", lambda kind: isinstance(kind, (*TIMESTAMPS, *TEXTS)))


def register_all() -> None:
    """Register the functions of this module."""
    register("DATE_FORMAT", signature(_FORMATTED, TEXT, result=_STRING, nulls=True), _date_format_kernel, moment=True)
    register(
        "TO_DATE", signature(TEXT, TEXT, result=t.DateType(), optional=1, nulls=True), with_zone(_to_date), moment=True
    )
    moment = signature(TEXT, TEXT, result=t.TimestampType(3), optional=1, nulls=True)
    register("TO_TIMESTAMP", moment, _to_timestamp_kernel, moment=True)
    register("TO_TIMESTAMP_LTZ", _ltz_types, _ltz_kernel, moment=True, raises=True)
    text = signature(INTEGER, TEXT, result=_STRING, optional=1, nulls=True)
    register("FROM_UNIXTIME", text, with_zone(_from_unixtime), moment=True, deterministic=False)
    register("CONVERT_TZ", signature(TEXT, TEXT, TEXT, result=_STRING, nulls=True), with_zone(_convert_tz), moment=True)
    unix = either(_nothing(_BIGINT), signature(TEXT, TEXT, result=_BIGINT, optional=1))
    register("UNIX_TIMESTAMP", unix, _unix, moment=True, deterministic=False)
    now = {"moment": True, "deterministic": False}
    register("CURRENT_DATE", _nothing(t.DateType()), _now(t.DateType()), **now)
    register("CURRENT_TIME|LOCALTIME", _nothing(t.TimeType(0)), _now(t.TimeType(0)), **now)
    register("LOCALTIMESTAMP", _nothing(t.TimestampType(3)), _now(t.TimestampType(3)), **now)
    zone = t.LocalZonedTimestampType(3)
    register("CURRENT_TIMESTAMP|NOW|CURRENT_ROW_TIMESTAMP|PROCTIME", _nothing(zone), _now(zone), **now)
    register("CURRENT_WATERMARK", _watermark_type, _current_watermark, **now)
    register("SOURCE_WATERMARK", _nothing(zone), _refuse_evaluation, **now)
    register("CURRENT_DATABASE", _nothing(_STRING), lambda call: _database, **now)


def _unix(call: Call) -> Kernel:
    return with_zone(_unix_timestamp)(call) if call.args else _now(_BIGINT)(call)
