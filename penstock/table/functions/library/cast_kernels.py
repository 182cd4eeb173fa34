"""CAST and TRY_CAST at run time."""

from __future__ import annotations

import datetime
from collections.abc import Callable
from decimal import Decimal
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.common.types import Row
from penstock.table.functions.library.decimal_kernels import fit_decimal, rescale
from penstock.table.functions.library.fast_texts import fast_text
from penstock.table.functions.library.parsing import parser
from penstock.table.functions.library.text_forms import text_form
from penstock.table.functions.library.unscaled import floating
from penstock.table.functions.library.zones import instant, local
from penstock.table.functions.moment import Moment
from penstock.table.functions.typing.coercion import BYTES, TEXTS, TIMESTAMPS
from penstock.table.functions.typing.registry import BadValue, Kernel, Value, of_distinct, register
from penstock.table.logical.rex import Call, Rex
from penstock.table.types import data_types as t
from penstock.table.types.arrow_forms import array_of, arrow_type, values_of

Convert = Callable[[Any], Any]
_MOMENTS = (t.DateType, t.TimeType, *TIMESTAMPS)


def _make(safe: bool) -> Callable[[Call], Kernel]:
    def make(call: Call) -> Kernel:
        kind, aim = call.args[0].type, call.type
        fast = _fast(kind, aim)
        if fast is not None:
            return lambda rows, moment, value: fast(value)
        return _slow(kind, aim, safe)

    return make


# --- whole columns at once ---
def _fast(kind: t.DataType, aim: t.DataType) -> Kernel | None:
    """Return a kernel for a cast that Arrow supports and that cannot fail, or None."""
    form = arrow_type(aim)
    match kind, aim:
        case t.NullType(), _:
            return lambda value: pa.nulls(len(value), form)
        case t.BooleanType(), t.IntegralType() | t.FloatType() | t.DoubleType():
            return lambda value: pc.cast(value, form)
        case t.IntegralType(), t.IntegralType():
            return lambda value: pc.cast(value, form, safe=False)
        case t.IntegralType() | t.FloatType() | t.DoubleType(), t.BooleanType():
            return lambda value: pc.not_equal(value, pa.scalar(0, value.type))
        case t.DecimalType(), t.FloatType() | t.DoubleType():
            return lambda value: floating(value, form)
        case t.IntegralType() | t.FloatType() | t.DoubleType(), t.FloatType() | t.DoubleType():
            return lambda value: pc.cast(value, form, safe=False)
        case t.FloatType() | t.DoubleType(), t.IntegralType():
            return _narrow(aim)
        case t.IntegralType() | t.DecimalType(), t.DecimalType():
            return lambda value: rescale(value, aim)
        case t.IntegralType(), t.VarCharType() if aim.length >= 20:
            return lambda value: pc.cast(value, form)
        case t.CharType() | t.VarCharType(), t.VarCharType() if aim.length >= kind.length:
            return lambda value: value
        case t.VarCharType() | t.CharType(), t.VarCharType():
            return lambda value: pc.utf8_slice_codeunits(value, 0, aim.length)
        case t.CharType() | t.VarCharType(), t.VarBinaryType() if aim.length == t.LONGEST:
            return lambda value: pc.cast(value, form)
        case t.DateType(), t.TimestampType():
            return lambda value: pc.cast(value, form)
        case t.TimestampType(), t.DateType():
            return lambda value: pc.cast(pc.floor_temporal(value, unit="day"), form)
        case t.TimestampType(), t.TimestampType():
            return _cut(aim.precision)
        case t.LocalZonedTimestampType(), t.LocalZonedTimestampType():
            return _cut(aim.precision)
        case t.DayTimeIntervalType(), t.DayTimeIntervalType():
            return lambda value: value
        case t.YearMonthIntervalType(), t.YearMonthIntervalType():
            return lambda value: value
    return None


def _narrow(aim: t.IntegralType) -> Kernel:
    """Narrow floating-point numbers to whole numbers as Java does.

    NaN becomes 0. A number that is too large becomes the largest INT or BIGINT. Smaller types then keep only the low
    bits.
    """
    first: Any = np.int64 if aim.bits == 64 else np.int32
    least, most = np.iinfo(first).min, np.iinfo(first).max

    def kernel(value: Value) -> Value:
        column = value if isinstance(value, pa.Array) else pa.array([value.as_py()], value.type)
        missing = pc.is_null(column)
        numbers = np.trunc(
            np.nan_to_num(column.fill_null(0).to_numpy(zero_copy_only=False).astype(np.float64), nan=0.0)
        )
        with np.errstate(all="ignore"):
            whole = numbers.astype(first)
        whole = np.where(numbers >= float(most), most, np.where(numbers <= float(least), least, whole)).astype(first)
        narrow = pa.array(whole.astype(f"int{aim.bits}"))
        result = pc.if_else(missing, pa.scalar(None, narrow.type), narrow)
        return result if isinstance(value, pa.Array) else result[0]

    return kernel


def _cut(precision: int) -> Kernel:
    """Truncate the digits of a second beyond the precision."""
    if precision >= 6:
        return lambda value: value
    unit = 10 ** (6 - precision)
    return lambda value: pc.floor_temporal(value, multiple=unit, unit="microsecond")


# --- row by row ---
def _slow(kind: t.DataType, aim: t.DataType, safe: bool) -> Kernel:
    zoned, fast = _through_zone(kind, aim), fast_text(kind, aim)

    def kernel(rows: int, moment: Moment, value: Value) -> Value:
        if zoned is not None and isinstance(value, pa.Array):
            return zoned(value, moment.zone)
        if fast is not None and isinstance(value, pa.Array):
            found = fast(value, moment.zone)
            if found is not None:
                return found
        convert = conversion(kind, aim, moment.zone)

        def every(column: Value) -> Value:
            return array_of([_convert(convert, one, kind, aim, safe) for one in values_of(column, kind)], aim)

        if isinstance(value, pa.Array):
            return of_distinct(every, [value])
        return every(pa.array([value.as_py()], value.type))[0]

    return kernel


def _through_zone(kind: t.DataType, aim: t.DataType) -> Callable[[pa.Array, str], pa.Array] | None:
    """Return a kernel between moments and local times of a zone, for whole columns, or None for other types."""
    match kind, aim:
        case t.LocalZonedTimestampType(), t.TimestampType():
            cut = _cut(aim.precision)
            return lambda value, zone: cut(local(value, zone))
        case t.TimestampType(), t.LocalZonedTimestampType():
            cut = _cut(aim.precision)
            return lambda value, zone: cut(instant(value, zone))
    return None


def _convert(convert: Convert, value: Any, kind: t.DataType, aim: t.DataType, safe: bool) -> Any:
    if value is None:
        return None
    try:
        return convert(value)
    except (ValueError, ArithmeticError) as error:
        if safe:
            return None
        raise BadValue(f"CAST: {value!r} cannot be converted to {aim.summary()}: {error}") from None


def conversion(kind: t.DataType, aim: t.DataType, zone: str = "UTC") -> Convert:
    """Return a function that converts a value of one type to another type."""
    match kind, aim:
        case _, t.CharType() | t.VarCharType():
            return _fit_length(text_form(kind, zone), aim)
        case _, t.BinaryType() | t.VarBinaryType():
            return _bytes(kind, aim)
        case t.CharType() | t.VarCharType(), _:
            return parser(aim, zone)
        case t.BooleanType() | t.IntegralType(), t.DecimalType():
            return lambda value: fit_decimal(Decimal(int(value)), aim.precision, aim.scale)
        case t.FloatType() | t.DoubleType(), t.DecimalType():
            return lambda value: fit_decimal(Decimal(repr(value)), aim.precision, aim.scale)
        case t.DecimalType(), t.DecimalType():
            return lambda value: fit_decimal(value, aim.precision, aim.scale)
        case t.DecimalType(), t.IntegralType():
            return lambda value: _wrap(int(value), aim.bits)
        case t.IntegralType(), t.IntegralType():
            return lambda value: _wrap(value, aim.bits)
        case t.FloatType() | t.DoubleType(), t.IntegralType():
            return lambda value: _wrap(int(value), aim.bits)
        case t.NumericType(), t.BooleanType():
            return bool
        case t.NumericType() | t.BooleanType(), t.FloatType() | t.DoubleType():
            return float
        case t.BooleanType(), t.IntegralType():
            return int
        case t.IntegralType(), t.DayTimeIntervalType():
            return lambda value: value * _UNITS[aim.first]
        case t.IntegralType(), t.YearMonthIntervalType():
            return lambda value: value * (12 if aim.first is t.Resolution.YEAR else 1)
    if isinstance(kind, _MOMENTS) and isinstance(aim, _MOMENTS):
        return _moments(kind, aim, zone)
    return _convert_parts(kind, aim, zone)


_UNITS = {
    t.Resolution.DAY: 86_400_000,
    t.Resolution.HOUR: 3_600_000,
    t.Resolution.MINUTE: 60_000,
    t.Resolution.SECOND: 1000,
}


def _wrap(value: int, bits: int) -> int:
    return (value + (1 << bits - 1)) % (1 << bits) - (1 << bits - 1)


def _fit_length(form: Callable[[Any], str], aim: t.CharType | t.VarCharType) -> Convert:
    length = aim.length
    if isinstance(aim, t.CharType):
        return lambda value: form(value)[:length].ljust(length)
    return form if length == t.LONGEST else lambda value: form(value)[:length]


def _bytes(kind: t.DataType, aim: t.BinaryType | t.VarBinaryType) -> Convert:
    length, padded = aim.length, isinstance(aim, t.BinaryType)
    read: Convert = (lambda value: value.encode()) if isinstance(kind, TEXTS) else bytes
    if padded:
        return lambda value: read(value)[:length].ljust(length, b"\0")
    return lambda value: read(value)[:length]


def _moments(kind: t.DataType, aim: t.DataType, zone: str) -> Convert:
    """Return a conversion between types of dates and times. It goes through the local time in `zone`."""
    there = ZoneInfo(zone)

    def local(value: Any) -> datetime.datetime:
        if isinstance(kind, t.LocalZonedTimestampType):
            moment: datetime.datetime = value.astimezone(there).replace(tzinfo=None)
            return moment
        if isinstance(kind, t.TimeType):
            return datetime.datetime.combine(datetime.date(1970, 1, 1), value)
        if isinstance(kind, t.DateType):
            return datetime.datetime.combine(value, datetime.time())
        found: datetime.datetime = value
        return found

    return lambda value: _as_moment(local(value), aim, there)


def _as_moment(value: datetime.datetime, aim: t.DataType, there: ZoneInfo) -> Any:
    if isinstance(aim, t.DateType):
        return value.date()
    unit = 10 ** max(6 - getattr(aim, "precision", 6), 0)
    value = value.replace(microsecond=value.microsecond // unit * unit)
    if isinstance(aim, t.TimeType):
        return value.time()
    return value.replace(tzinfo=there).astimezone(datetime.UTC) if isinstance(aim, t.LocalZonedTimestampType) else value


def _convert_parts(kind: t.DataType, aim: t.DataType, zone: str) -> Convert:
    match kind, aim:
        case t.ArrayType(), t.ArrayType():
            element = _around_null(kind.element_type, aim.element_type, zone)
            return lambda value: [element(one) for one in value]
        case t.MultisetType(), t.MultisetType():
            element = _around_null(kind.element_type, aim.element_type, zone)
            return lambda value: {element(one): count for one, count in value.items()}
        case t.MapType(), t.MapType():
            key = _around_null(kind.key_type, aim.key_type, zone)
            part = _around_null(kind.value_type, aim.value_type, zone)
            return lambda value: {key(one): part(other) for one, other in value.items()}
        case t.RowType(), t.RowType():
            pairs = zip(kind.field_types(), aim.field_types(), strict=True)
            parts = [_around_null(one, other, zone) for one, other in pairs]
            return lambda value: Row(*(part(one) for part, one in zip(parts, value, strict=True)))
    return lambda value: value


def _around_null(kind: t.DataType, aim: t.DataType, zone: str) -> Convert:
    convert: Convert = (lambda value: value) if kind.not_null() == aim.not_null() else conversion(kind, aim, zone)
    return lambda value: None if value is None else convert(value)


def _same_type(args: tuple[Rex, ...]) -> tuple[tuple[Rex, ...], t.DataType]:
    return args, args[0].type


def can_fail(rex: Call) -> bool:
    """Return True if a CAST may refuse a value. Only texts can be unreadable."""
    return _reads_text(rex.args[0].type, rex.type)


def _reads_text(kind: t.DataType, aim: t.DataType) -> bool:
    match kind, aim:
        case t.ArrayType() | t.MultisetType(), t.ArrayType() | t.MultisetType():
            return _reads_text(kind.element_type, aim.element_type)
        case t.MapType(), t.MapType():
            return _reads_text(kind.key_type, aim.key_type) or _reads_text(kind.value_type, aim.value_type)
        case t.RowType(), t.RowType():
            return any(_reads_text(*pair) for pair in zip(kind.field_types(), aim.field_types(), strict=True))
    return isinstance(kind, TEXTS) and not isinstance(aim, (*TEXTS, *BYTES))


def register_all() -> None:
    """Register the functions of this module."""
    register("CAST", _same_type, _make(False), raises=True, moment=True)
    register("TRY_CAST", _same_type, _make(True), moment=True)
