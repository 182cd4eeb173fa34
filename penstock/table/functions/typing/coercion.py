"""The common type of several types, and the implicit casts that are allowed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from penstock.table.types import data_types as t

DIGITS: dict[type[t.DataType], int] = {t.TinyIntType: 3, t.SmallIntType: 5, t.IntType: 10, t.BigIntType: 19}
"""Number of digits that a DECIMAL needs for each type of whole numbers."""
INTEGERS: tuple[type[t.DataType], ...] = tuple(DIGITS)
TEXTS = (t.CharType, t.VarCharType)
BYTES = (t.BinaryType, t.VarBinaryType)
TIMESTAMPS = (t.TimestampType, t.LocalZonedTimestampType)
APPROXIMATE = (t.FloatType, t.DoubleType)
INTERVALS = (t.DayTimeIntervalType, t.YearMonthIntervalType)
Kind = TypeVar("Kind", bound=t.DataType)


def nullable(kinds: Sequence[t.DataType]) -> bool:
    """Return True if one of the types has NULL."""
    return any(kind.is_nullable for kind in kinds)


def with_nullability(kind: Kind, is_nullable: bool) -> Kind:
    """Return a type with or without NULL."""
    return kind.nullable() if is_nullable else kind.not_null()


def as_decimal(kind: t.DataType) -> t.DecimalType:
    """Return the DECIMAL that holds every value of an exact type of numbers."""
    if isinstance(kind, t.DecimalType):
        return kind
    return t.DecimalType(DIGITS[type(kind)], 0, kind.is_nullable)


def decimal_of(precision: int, scale: int, has_null: bool = True) -> t.DecimalType:
    """Return a DECIMAL. If it would be too long, it keeps fewer digits after the point, but at least 6."""
    if precision <= 38:
        return t.DecimalType(precision, scale, has_null)
    whole = precision - scale
    return t.DecimalType(38, max(38 - whole, min(scale, 6)), has_null)


def common_type(kinds: Sequence[t.DataType]) -> t.DataType | None:
    """Return the common type of several types, as in CASE, COALESCE, UNION and VALUES, or None.

    >>> common_type([t.IntType(False), t.DecimalType(2, 1, False)]).as_sql()
    'DECIMAL(11, 1) NOT NULL'
    """
    known = [kind for kind in kinds if not isinstance(kind, t.NullType)]
    if not known:
        return t.NullType() if kinds else None
    found: t.DataType | None = known[0]
    for kind in known[1:]:
        if found is None:
            return None
        found = _common(found, kind)
    return None if found is None else with_nullability(found, nullable(kinds))


def _common(one: t.DataType, other: t.DataType) -> t.DataType | None:
    if one.not_null() == other.not_null():
        return one
    for fits, merge in _MERGES:
        if fits(one) and fits(other):
            return merge(one, other)
    return None


def _numbers(one: t.DataType, other: t.DataType) -> t.DataType:
    kinds = (one, other)
    if all(isinstance(kind, APPROXIMATE) for kind in kinds):
        return one
    if any(isinstance(kind, APPROXIMATE) for kind in kinds):
        mixed = any(isinstance(kind, t.DecimalType | t.DoubleType) for kind in kinds)
        return t.DoubleType() if mixed else t.FloatType()
    if any(isinstance(kind, t.DecimalType) for kind in kinds):
        first, second = as_decimal(one), as_decimal(other)
        scale = max(first.scale, second.scale)
        return decimal_of(max(first.precision - first.scale, second.precision - second.scale) + scale, scale)
    return max(kinds, key=lambda kind: INTEGERS.index(type(kind)))


def _texts(one: t.DataType, other: t.DataType) -> t.DataType:
    lengths = [kind.length for kind in (one, other) if isinstance(kind, TEXTS)]
    if isinstance(one, t.CharType) and isinstance(other, t.CharType) and lengths[0] == lengths[1]:
        return one
    return t.VarCharType(max(lengths))


def _bytes(one: t.DataType, other: t.DataType) -> t.DataType:
    lengths = [kind.length for kind in (one, other) if isinstance(kind, BYTES)]
    if isinstance(one, t.BinaryType) and isinstance(other, t.BinaryType) and lengths[0] == lengths[1]:
        return one
    return t.VarBinaryType(max(lengths))


def _moments(one: t.DataType, other: t.DataType) -> t.DataType | None:
    kinds = (one, other)
    precision = max(getattr(kind, "precision", 0) for kind in kinds)
    if any(isinstance(kind, t.TimeType) for kind in kinds):
        return t.TimeType(precision) if all(isinstance(kind, t.TimeType) for kind in kinds) else None
    if any(isinstance(kind, t.DateType) for kind in kinds):
        return None
    if any(isinstance(kind, t.LocalZonedTimestampType) for kind in kinds):
        return t.LocalZonedTimestampType(precision)
    return t.TimestampType(precision)


def _day_time(one: t.DataType, other: t.DataType) -> t.DataType:
    return _interval(t.DayTimeIntervalType, one, other)


def _year_month(one: t.DataType, other: t.DataType) -> t.DataType:
    return _interval(t.YearMonthIntervalType, one, other)


def _interval(make: Callable[..., t.DataType], one: t.DataType, other: t.DataType) -> t.DataType:
    order = list(t.Resolution)
    units = [getattr(kind, end) for kind in (one, other) for end in ("first", "last")]
    return make(min(units, key=order.index), max(units, key=order.index))


def _arrays(one: t.DataType, other: t.DataType) -> t.DataType | None:
    assert isinstance(one, t.ArrayType)
    assert isinstance(other, t.ArrayType)
    element = common_type([one.element_type, other.element_type])
    return None if element is None else t.ArrayType(element)


def _multisets(one: t.DataType, other: t.DataType) -> t.DataType | None:
    assert isinstance(one, t.MultisetType)
    assert isinstance(other, t.MultisetType)
    element = common_type([one.element_type, other.element_type])
    return None if element is None else t.MultisetType(element)


def _maps(one: t.DataType, other: t.DataType) -> t.DataType | None:
    assert isinstance(one, t.MapType)
    assert isinstance(other, t.MapType)
    key, value = common_type([one.key_type, other.key_type]), common_type([one.value_type, other.value_type])
    return None if key is None or value is None else t.MapType(key, value)


def _rows(one: t.DataType, other: t.DataType) -> t.DataType | None:
    assert isinstance(one, t.RowType)
    assert isinstance(other, t.RowType)
    if len(one) != len(other):
        return None
    pairs = zip(one.fields, other.fields, strict=True)
    kinds = [(left.name, common_type([left.data_type, right.data_type])) for left, right in pairs]
    return None if any(kind is None for _, kind in kinds) else t.RowType(kinds)


def _a(*classes: type[t.DataType]) -> Callable[[t.DataType], bool]:
    return lambda kind: isinstance(kind, classes)


_MERGES: tuple[tuple[Callable[[t.DataType], bool], Callable[[t.DataType, t.DataType], t.DataType | None]], ...] = (
    (_a(t.NumericType), _numbers),
    (_a(*TEXTS), _texts),
    (_a(*BYTES), _bytes),
    (_a(t.DateType, t.TimeType, *TIMESTAMPS), _moments),
    (_a(t.DayTimeIntervalType), _day_time),
    (_a(t.YearMonthIntervalType), _year_month),
    (_a(t.ArrayType), _arrays),
    (_a(t.MultisetType), _multisets),
    (_a(t.MapType), _maps),
    (_a(t.RowType), _rows),
)


_WIDER = (t.TinyIntType, t.SmallIntType, t.IntType, t.BigIntType, t.DecimalType, t.FloatType, t.DoubleType)


def implicitly(kind: t.DataType, aim: t.DataType) -> bool:
    """Return True if a value becomes the aim without a CAST, because the aim holds every value of the kind."""
    if isinstance(kind, t.NullType) or kind.not_null() == aim.not_null():
        return True
    if isinstance(kind, t.NumericType) and isinstance(aim, t.NumericType):
        return _WIDER.index(type(kind)) <= _WIDER.index(type(aim))
    if isinstance(kind, TEXTS):
        return isinstance(aim, TEXTS)
    if isinstance(kind, BYTES):
        return isinstance(aim, BYTES)
    if isinstance(kind, t.DateType | t.TimestampType | t.LocalZonedTimestampType):
        return isinstance(aim, TIMESTAMPS)
    return common_type([kind, aim]) is not None
