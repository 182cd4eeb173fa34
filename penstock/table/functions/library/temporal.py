"""Dates and times: parts of them, rounding, and the addition of intervals."""

from __future__ import annotations

import datetime
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.table.functions.library.zones import instant, local
from penstock.table.functions.moment import Moment
from penstock.table.functions.typing.coercion import INTERVALS, TIMESTAMPS, common_type, with_nullability
from penstock.table.functions.typing.registry import FUNCTIONS, REWRITES, Kernel, Unfit, Value, register, resolve
from penstock.table.functions.typing.result_types import (
    INTEGER,
    MOMENT,
    coerce,
    fits,
)
from penstock.table.logical.rex import Call, Literal, Rex
from penstock.table.types import data_types as t
from penstock.table.types.arrow_forms import arrow_type

Inferred = tuple[tuple[Rex, ...], t.DataType]
DAY = 86_400_000
MILLIS = {"WEEK": 7 * DAY, "DAY": DAY, "HOUR": 3_600_000, "MINUTE": 60_000, "SECOND": 1000, "MILLISECOND": 1}
MONTHS = {"YEAR": 12, "QUARTER": 3, "MONTH": 1}
_MICROS = pa.timestamp("us")


def _word(rex: Rex) -> str:
    if not isinstance(rex, Literal) or not isinstance(rex.value, str):
        raise Unfit("a unit of time")
    return rex.value.upper()


# --- EXTRACT ---
def _extract_types(args: tuple[Rex, ...]) -> Inferred:
    if len(args) != 2 or not isinstance(args[1].type, (t.DateType, t.TimeType, *TIMESTAMPS, *INTERVALS, t.NullType)):
        raise Unfit("(a unit of time, a date, time or interval)")
    unit, kind = _word(args[0]), args[1].type
    if unit not in _EXTRACTS or (isinstance(kind, t.TimeType) and unit not in MILLIS):
        raise Unfit(f"a unit that a {kind.summary()} has: {', '.join(_EXTRACTS)}")
    return args, t.BigIntType(kind.is_nullable)


def _extract(call: Call) -> Kernel:
    unit, kind = _word(call.args[0]), call.args[1].type
    if isinstance(kind, INTERVALS):
        return _from_interval(unit, kind)
    compute = _EXTRACTS[unit]

    def kernel(rows: int, moment: Moment, *args: Value) -> Value:
        value = args[-1]
        if unit != "EPOCH":
            value = local(value, moment.zone)
        if pa.types.is_date(value.type):
            value = pc.cast(value, _MICROS)
        return pc.cast(compute(value), pa.int64())

    return kernel


def _from_interval(unit: str, kind: t.DataType) -> Kernel:
    size, within = _INTERVAL_PARTS[unit]

    def kernel(rows: int, moment: Moment, *args: Value) -> Value:
        number = pc.cast(args[-1], pa.int64())
        whole = pc.divide(number, pa.scalar(size, pa.int64()))
        if within is None:
            return whole
        limit = pa.scalar(within, pa.int64())
        return pc.subtract(whole, pc.multiply(pc.divide(whole, limit), limit))

    return kernel


_INTERVAL_PARTS: dict[str, tuple[int, int | None]] = {
    "YEAR": (12, None),
    "MONTH": (1, 12),
    "DAY": (DAY, None),
    "HOUR": (3_600_000, 24),
    "MINUTE": (60_000, 60),
    "SECOND": (1000, 60),
    "MILLISECOND": (1, 1000),
}


def _year_part(compute: Callable[[Any], Any]) -> Kernel:
    """Return a kernel that computes from the year alone."""

    def kernel(value: Value) -> Value:
        if isinstance(value, pa.Scalar):
            value = pa.array([value.as_py()], value.type)
        years = pc.year(value)
        numbers = compute(years.fill_null(1970).to_numpy(zero_copy_only=False))
        return pc.if_else(pc.is_null(years), pa.scalar(None, pa.int64()), pa.array(numbers, pa.int64()))

    return kernel


_EXTRACTS: dict[str, Kernel] = {
    "YEAR": pc.year,
    "QUARTER": pc.quarter,
    "MONTH": pc.month,
    "WEEK": pc.iso_week,
    "DAY": pc.day,
    "DOW": lambda value: pc.add(pc.day_of_week(value, count_from_zero=True, week_start=7), 1),
    "DOY": pc.day_of_year,
    "HOUR": pc.hour,
    "MINUTE": pc.minute,
    "SECOND": pc.second,
    "MILLISECOND": pc.millisecond,
    "MICROSECOND": lambda value: pc.add(pc.multiply(pc.millisecond(value), 1000), pc.microsecond(value)),
    "EPOCH": lambda value: pc.cast(
        pc.floor_temporal(pc.cast(value, _MICROS), unit="second").cast(pa.timestamp("s")), pa.int64()
    ),
    "ISODOW": lambda value: pc.add(pc.day_of_week(value, count_from_zero=True, week_start=1), 1),
    "ISOYEAR": pc.iso_year,
    "DECADE": _year_part(lambda years: years // 10),
    "CENTURY": _year_part(lambda years: (years + 99) // 100),
    "MILLENNIUM": _year_part(lambda years: (years + 999) // 1000),
}

_SHORT = {
    "YEAR": "YEAR",
    "QUARTER": "QUARTER",
    "MONTH": "MONTH",
    "WEEK": "WEEK",
    "DAYOFYEAR": "DOY",
    "DAYOFMONTH": "DAY",
    "DAYOFWEEK": "DOW",
    "HOUR": "HOUR",
    "MINUTE": "MINUTE",
    "SECOND": "SECOND",
}


def _extraction(unit: str) -> Callable[[tuple[Rex, ...]], Rex]:
    return lambda args: resolve("EXTRACT", [Literal(t.NullType(), unit), *args])


# --- FLOOR and CEIL ---
_ROUND_UNITS = {"YEAR", "QUARTER", "MONTH", "WEEK", "DAY", "HOUR", "MINUTE", "SECOND", "MILLISECOND"}
_LONG_UNITS = {"DECADE": 10, "CENTURY": 100, "MILLENNIUM": 1000}


def _rounding_types(args: tuple[Rex, ...]) -> Inferred:
    if len(args) != 2 or not fits(args[0], MOMENT):
        raise Unfit("(a date or time, a unit of time)")
    if _word(args[1]) not in _ROUND_UNITS | set(_LONG_UNITS):
        raise Unfit(f"a unit to round to: {', '.join(sorted(_ROUND_UNITS | set(_LONG_UNITS)))}")
    return args, args[0].type


def _rounding(up: bool) -> Callable[[Call], Kernel]:
    def make(call: Call) -> Kernel:
        unit, form = _word(call.args[1]), arrow_type(call.type)

        def kernel(rows: int, moment: Moment, value: Value, *others: Value) -> Value:
            zoned = isinstance(call.type, t.LocalZonedTimestampType)
            plain = local(value, moment.zone) if zoned else value
            if pa.types.is_date(plain.type):
                plain = pc.cast(plain, _MICROS)
            if unit in _LONG_UNITS:
                found = _long_unit(plain, _LONG_UNITS[unit], up)
            else:
                found = pc.floor_temporal(plain, unit=unit.lower(), week_starts_monday=False)
                found = _next(plain, found, unit) if up else found
            return instant(found, moment.zone) if zoned else pc.cast(found, form)

        return kernel

    return make


def _next(value: Value, floor: Value, unit: str) -> Value:
    """Return the start of the next unit, or the moment itself if it is the start of a unit.

    As in Flink, the first day of a year, month or week belongs to the unit before it, at any time of day.
    """
    if unit in {"YEAR", "MONTH", "WEEK"}:
        value = pc.floor_temporal(value, unit="day")
    size = pa.scalar(MONTHS.get(unit) or MILLIS[unit], pa.int64())
    return pc.if_else(pc.equal(value, floor), floor, shift_moments(floor, size, unit in MONTHS, 1, "UTC"))


def _long_unit(value: Value, size: int, up: bool) -> Value:
    """Round to decades, which begin with year 0, or to centuries or millennia, which begin with year 1."""
    shift = 0 if size == 10 else 1

    def edge(one: datetime.datetime | None) -> datetime.datetime | None:
        if one is None:
            return None
        start = datetime.datetime((one.year - shift) // size * size + shift, 1, 1)
        return start.replace(year=start.year + size) if up and one != start else start

    return pa.array([edge(one) for one in value.to_pylist()], _MICROS)


# --- intervals ---
def _millis(value: Value) -> Value:
    return pc.cast(value, pa.int64())


def _interval_sum(name: str) -> Callable[[tuple[Rex, ...]], Inferred]:
    def infer(args: tuple[Rex, ...]) -> Inferred:
        if len(args) != 2:
            raise Unfit("two values")
        kinds = [arg.type for arg in args]
        spans = [isinstance(kind, INTERVALS) for kind in kinds]
        has_null = any(kind.is_nullable for kind in kinds)
        if all(spans):
            found = common_type(kinds)
            if found is None:
                raise Unfit("intervals of months, or intervals of days to seconds")
            return args, found
        if spans[1] and isinstance(kinds[0], (t.DateType, t.TimeType, *TIMESTAMPS)):
            return args, with_nullability(kinds[0], has_null)
        raise Unfit("(a date or time, an interval)")

    return infer


def _plus(sign: int) -> Callable[[Call], Kernel]:
    """Return the kernel that adds an interval to a moment or an interval, or subtracts it."""

    def make(call: Call) -> Kernel:
        kind, span = (arg.type for arg in call.args)
        if isinstance(kind, INTERVALS):
            return lambda rows, moment, one, other: (pc.add if sign > 0 else pc.subtract)(one, other)
        months = isinstance(span, t.YearMonthIntervalType)
        cut = _cut(kind)

        def kernel(rows: int, moment: Moment, value: Value, interval: Value) -> Value:
            return cut(shift_moments(value, _millis(interval), months, sign, moment.zone))

        return kernel

    return make


def _cut(kind: t.DataType) -> Callable[[Value], Value]:
    """Truncate digits of a second beyond the precision, which an interval may have added."""
    if not isinstance(kind, TIMESTAMPS) or kind.precision >= 3:
        return lambda value: value
    micros = 10 ** (6 - kind.precision)
    return lambda value: pc.floor_temporal(value, multiple=micros, unit="microsecond")


def shift_moments(value: Value, span: Value, months: bool, sign: int, zone: str) -> Value:
    """Return moments plus or minus milliseconds or months. The 31st becomes the last day of a shorter month."""
    form = value.type
    if pa.types.is_timestamp(form) and not months:
        return (pc.add if sign > 0 else pc.subtract)(
            value, pc.cast(pc.cast(span, pa.duration("ms")), pa.duration("us"))
        )
    if isinstance(value, pa.Scalar):
        value = pa.repeat(value, len(span)) if isinstance(span, pa.Array) else pa.array([value.as_py()], form)
    if isinstance(span, pa.Scalar):
        span = pa.repeat(span, len(value))
    missing = pc.or_(pc.is_null(value), pc.is_null(span))
    zoned = pa.types.is_timestamp(form) and form.tz is not None and months
    moments = as_numpy(local(value, zone) if zoned else value)
    spans = span.fill_null(0).to_numpy(zero_copy_only=False) * sign
    found = later_months(moments, spans) if months else moments + spans.astype("timedelta64[ms]")
    return pc.if_else(missing, pa.scalar(None, form), _from_numpy(found, form, zone if zoned else None))


def as_numpy(value: Value) -> Any:
    """Return moments in microseconds for NumPy. Missing moments have any value."""
    if pa.types.is_time(value.type):
        return value.cast(pa.int64()).fill_null(0).to_numpy(zero_copy_only=False).astype("datetime64[us]")
    form = _MICROS if not (pa.types.is_timestamp(value.type) and value.type.tz) else value.type
    numbers = value.cast(form).cast(pa.int64()).fill_null(0).to_numpy(zero_copy_only=False)
    return numbers.astype("datetime64[us]")


def _from_numpy(found: Any, form: pa.DataType, zone: str | None) -> Value:
    micros = found.astype("datetime64[us]").astype(np.int64)
    if pa.types.is_time(form):
        return pa.array(micros % (DAY * 1000), pa.int64()).cast(form)
    if pa.types.is_date(form):
        return pa.array(micros // (DAY * 1000), pa.int32()).cast(form)
    plain = pa.array(micros, pa.int64()).cast(_MICROS)
    return plain if form.tz is None else instant(plain, zone or "UTC")


def later_months(moments: Any, months: Any) -> Any:
    """Return moments plus months. The 31st becomes the last day of a shorter month."""
    start = moments.astype("datetime64[M]")
    days = (moments.astype("datetime64[D]") - start.astype("datetime64[D]")).astype(np.int64)
    clock = moments - moments.astype("datetime64[D]")
    month = start + months.astype("timedelta64[M]")
    length = ((month + 1).astype("datetime64[D]") - month.astype("datetime64[D]")).astype(np.int64)
    return month.astype("datetime64[D]") + np.minimum(days, length - 1).astype("timedelta64[D]") + clock


def _times(args: tuple[Rex, ...]) -> Rex:
    """Return the product of an interval and a number."""
    first, second = args
    interval, number = (first, second) if isinstance(first.type, INTERVALS) else (second, first)
    if not isinstance(number.type, t.NumericType):
        raise Unfit("(an interval, a number)")
    has_null = interval.type.is_nullable or number.type.is_nullable
    return Call(with_nullability(interval.type, has_null), "INTERVAL *", (interval, coerce(number, t.DoubleType())))


def _times_kernel(call: Call) -> Kernel:
    form = arrow_type(call.type)
    return lambda one, number: pc.cast(
        pc.cast(pc.trunc(pc.multiply(pc.cast(_millis(one), pa.float64()), number)), pa.int64()), form
    )


def _negate(call: Call) -> Kernel:
    form = arrow_type(call.type)
    return lambda value: pc.cast(pc.negate(_millis(value)), form)


# --- TIMESTAMPADD ---
def _add(args: tuple[Rex, ...]) -> Rex:
    if len(args) != 3:
        raise Unfit("(a unit of time, a number, a date or time)")
    unit, count, moment = _word(args[0]), args[1], args[2]
    if unit not in MILLIS and unit not in MONTHS:
        raise Unfit(f"a unit of time: {', '.join([*MONTHS, *MILLIS])}")
    if not fits(count, INTEGER) or not fits(moment, MOMENT):
        raise Unfit("(a unit of time, a whole number, a date or time)")
    kind = moment.type
    if isinstance(kind, t.DateType) and unit in {"HOUR", "MINUTE", "SECOND", "MILLISECOND"}:
        moment = coerce(moment, t.TimestampType(6))
    has_null = count.type.is_nullable or kind.is_nullable
    words = (Literal(t.NullType(), unit), coerce(count, t.BigIntType()), moment)
    return Call(with_nullability(moment.type, has_null), "TIMESTAMPADD", words)


def _add_kernel(call: Call) -> Kernel:
    unit = _word(call.args[0])
    months = unit in MONTHS
    size = pa.scalar(MONTHS[unit] if months else MILLIS[unit], pa.int64())

    def kernel(rows: int, moment: Moment, word: str, count: Value, value: Value) -> Value:
        return shift_moments(value, pc.multiply(count, size), months, 1, moment.zone)

    return kernel


def _overlaps(args: tuple[Rex, ...]) -> Rex:
    """Return whether two spans overlap. A span is two moments, or a moment and an interval."""
    if len(args) != 4:
        raise Unfit("(start, end or interval), (start, end or interval)")
    spans = []
    for start, end in (args[:2], args[2:]):
        stop = resolve("+", [start, end]) if isinstance(end.type, INTERVALS) else end
        earlier = resolve("<=", [start, stop])
        spans.append((resolve("CASE", [earlier, start, stop]), resolve("CASE", [earlier, stop, start])))
    (one, one_end), (other, other_end) = spans
    return resolve("AND", [resolve(">=", [one_end, other]), resolve(">=", [other_end, one])])


def register_all() -> None:
    """Register the functions of this module."""
    register("EXTRACT", _extract_types, _extract, moment=True)
    REWRITES.update({name: _extraction(unit) for name, unit in _SHORT.items()})
    register("FLOOR TO", _rounding_types, _rounding(False), moment=True)
    register("CEIL TO", _rounding_types, _rounding(True), moment=True)
    register("MOMENT +", _interval_sum("+"), _plus(1), moment=True)
    register("MOMENT -", _interval_sum("-"), _plus(-1), moment=True)
    register("INTERVAL *", lambda args: (args, args[0].type), _times_kernel)
    register("INTERVAL NEGATE", lambda args: (args, args[0].type), _negate)
    register("TIMESTAMPADD", lambda args: (args, args[2].type), _add_kernel, moment=True)
    REWRITES.update(
        {
            "+": _sum,
            "-": _minus,
            "*": lambda args: _times(args) if _has_interval(args) else _usual("*", args),
            "NEGATE": lambda args: _minus_interval(args) if _has_interval(args) else _usual("NEGATE", args),
            "FLOOR": lambda args: resolve("FLOOR TO", args) if len(args) == 2 else _usual("FLOOR", args),
            "CEIL": lambda args: resolve("CEIL TO", args) if len(args) == 2 else _usual("CEIL", args),
            "TIMESTAMPADD": _add,
            "OVERLAPS": _overlaps,
        }
    )
    REWRITES["CEILING"] = REWRITES["CEIL"]


def _usual(name: str, args: tuple[Rex, ...]) -> Rex:
    """Return the call of the numeric function with this name."""
    fitted, kind = FUNCTIONS[name].infer(args)
    return Call(kind, name, fitted)


def _has_interval(args: tuple[Rex, ...]) -> bool:
    return any(isinstance(arg.type, INTERVALS) for arg in args)


def _sum(args: tuple[Rex, ...]) -> Rex:
    if not _has_interval(args):
        return _usual("+", args)
    first, second = args
    if isinstance(first.type, INTERVALS) and not isinstance(second.type, INTERVALS):
        first, second = second, first
    return resolve("MOMENT +", [first, second])


def _minus(args: tuple[Rex, ...]) -> Rex:
    return resolve("MOMENT -", args) if _has_interval(args) else _usual("-", args)


def _minus_interval(args: tuple[Rex, ...]) -> Rex:
    return Call(args[0].type, "INTERVAL NEGATE", args)
