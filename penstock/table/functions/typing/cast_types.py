"""CAST and TRY_CAST: the allowed pairs of types, and the calls."""

from __future__ import annotations

from penstock.errors import CodeGenException
from penstock.table.functions.typing.coercion import BYTES, INTERVALS, TEXTS, TIMESTAMPS, with_nullability
from penstock.table.logical.rex import Call, InputRef, Literal, Rex
from penstock.table.types import data_types as t

_NUMBERS = (t.NumericType,)
_ALLOWED: tuple[tuple[tuple[type[t.DataType], ...], tuple[type[t.DataType], ...]], ...] = (
    (TEXTS, (*TEXTS, *BYTES, t.BooleanType, *_NUMBERS, t.DateType, t.TimeType, *TIMESTAMPS)),
    (BYTES, (*TEXTS, *BYTES)),
    ((t.BooleanType,), (t.BooleanType, *TEXTS, *_NUMBERS)),
    (_NUMBERS, (t.BooleanType, *TEXTS, *_NUMBERS)),
    ((t.DateType,), (t.DateType, *TEXTS, *TIMESTAMPS)),
    ((t.TimeType,), (t.TimeType, *TEXTS, *TIMESTAMPS)),
    (TIMESTAMPS, (*TEXTS, t.DateType, t.TimeType, *TIMESTAMPS)),
    (INTERVALS, TEXTS),
    ((t.IntegralType,), INTERVALS),
    ((t.DayTimeIntervalType,), (t.DayTimeIntervalType,)),
    ((t.YearMonthIntervalType,), (t.YearMonthIntervalType,)),
    ((t.ArrayType, t.MapType, t.RowType, t.MultisetType), TEXTS),
)


def cast(rex: Rex, aim: t.DataType, safe: bool = False) -> Rex:
    """Return a value as another type. CAST fails if the value cannot be converted, and TRY_CAST gives NULL."""
    if not castable(rex.type, aim):
        raise CodeGenException(f"a value of {rex.type.as_sql()} cannot be cast to {aim.summary()}")
    aim = with_nullability(aim, True if safe else rex.type.is_nullable)
    if isinstance(rex, Literal) and rex.value is None:
        return Literal(aim.nullable(), None)
    if rex.type == aim:
        return rex
    return Call(aim, "TRY_CAST" if safe else "CAST", (rex,))


def explicit_cast(rex: Rex, aim: t.DataType, safe: bool = False) -> Rex:
    """Return a cast that is written in a query.

    Even a cast to the same type makes an event-time attribute a plain moment.
    """
    made = cast(rex, aim, safe)
    if made is rex and isinstance(rex, InputRef) and isinstance(rex.type, TIMESTAMPS):
        return Call(rex.type, "CAST", (rex,))
    return made


def castable(kind: t.DataType, aim: t.DataType) -> bool:
    """Return True if a CAST from one type to the other is allowed."""
    if isinstance(kind, t.NullType):
        return True
    if any(isinstance(kind, sources) and isinstance(aim, aims) for sources, aims in _ALLOWED):
        return True
    return _parts_castable(kind, aim)


def _parts_castable(kind: t.DataType, aim: t.DataType) -> bool:
    match kind, aim:
        case t.ArrayType(), t.ArrayType():
            return castable(kind.element_type, aim.element_type)
        case t.MultisetType(), t.MultisetType():
            return castable(kind.element_type, aim.element_type)
        case t.MapType(), t.MapType():
            return castable(kind.key_type, aim.key_type) and castable(kind.value_type, aim.value_type)
        case t.RowType(), t.RowType():
            pairs = zip(kind.field_types(), aim.field_types(), strict=False)
            return len(kind) == len(aim) and all(castable(one, other) for one, other in pairs)
    return False
