"""Values of expressions in the JSON form of recorded.json, and how SQL text is evaluated without a table."""

from __future__ import annotations

import datetime
import math
from typing import Any

import pyarrow as pa

from penstock.table.functions import Moment, compile_rex
from penstock.table.functions.library.text_forms import float_text
from penstock.table.logical.rex import Rex
from penstock.table.sql import Binder
from penstock.table.types import data_types as t
from penstock.table.types.arrow_forms import values_of

NOW = Moment(processing_time=1_700_000_000_000)
_ONE_ROW = pa.RecordBatch.from_arrays([pa.array([0])], ["row"])


class NoTables:
    """A session that knows nothing but the functions of SQL."""

    batch = True
    has_core = True

    def relation(self, path: tuple[str, ...], options: Any = ()) -> None:
        return None

    def function(self, name: str) -> None:
        return None

    def get(self, name: str, default: str) -> str:
        return default

    def suggestions(self, kind: str) -> list[str]:
        return []


def bound(text: str) -> Rex:
    """An expression of SQL, with its types."""
    return Binder(NoTables()).expression(text, ())


def evaluated(text: str) -> tuple[str, Any]:
    """The type of an expression and its value in the form of recorded.json."""
    rex = bound(text)
    column = compile_rex(rex)(_ONE_ROW, NOW)
    return rex.type.as_sql(), plain(values_of(column, rex.type)[0], rex.type)


def plain(value: Any, kind: t.DataType) -> Any:
    if value is None or isinstance(kind, t.BooleanType | t.IntegralType | t.CharType | t.VarCharType):
        return value
    match kind:
        case t.FloatType():
            return {"float": repr(float(float_text(value).replace("Infinity", "inf")))}
        case t.DoubleType():
            return {"float": repr(value)}
        case t.DecimalType():
            return {"decimal": format(value, "f")}
        case t.BinaryType() | t.VarBinaryType():
            return {"bytes": value.hex()}
        case t.DateType():
            return {"LocalDate": value.isoformat()}
        case t.TimeType():
            return {"LocalTime": _clock(value)}
        case t.TimestampType():
            return {"LocalDateTime": f"{value.date()}T{_clock(value.time())}"}
        case t.LocalZonedTimestampType():
            moment = value.astimezone(datetime.UTC)
            return {"Instant": f"{moment.date()}T{_clock(moment.time(), seconds=True)}Z"}
        case t.DayTimeIntervalType():
            return {"Duration": _duration(value)}
        case t.YearMonthIntervalType():
            return {"Period": f"P{value}M"}
        case t.ArrayType():
            return [plain(one, kind.element_type) for one in value]
        case t.MapType():
            pairs = [[plain(key, kind.key_type), plain(one, kind.value_type)] for key, one in value.items()]
            return {"map": pairs}
        case t.RowType():
            return {"row": [plain(one, field.data_type) for one, field in zip(value, kind.fields, strict=True)]}
    return str(value)


def _clock(value: datetime.time, seconds: bool = False) -> str:
    """As Java writes it: no seconds if there are none, and fractions in groups of three digits."""
    text = f"{value:%H:%M}"
    if value.second or value.microsecond or seconds:
        text += f":{value:%S}"
    if value.microsecond:
        text += f".{value.microsecond:06d}" if value.microsecond % 1000 else f".{value.microsecond // 1000:03d}"
    return text


def _duration(value: datetime.timedelta) -> str:
    """
    >>> _duration(datetime.timedelta(hours=26))
    'PT26H'
    """
    seconds = value.total_seconds()
    sign, rest = ("-" if seconds < 0 else ""), abs(int(seconds))
    parts = [(rest // 3600, "H"), (rest // 60 % 60, "M"), (rest % 60, "S")]
    return "PT" + ("".join(f"{sign}{count}{unit}" for count, unit in parts if count) or "0S")


def same(one: Any, other: Any) -> bool:
    """Equal, doubles but for their last digits, timestamps to the microsecond, maps in any order."""
    match one, other:
        case {"float": first}, {"float": second}:
            left, right = float(first), float(second)
            return (math.isnan(left) and math.isnan(right)) or math.isclose(left, right, rel_tol=1e-14)
        case {"LocalDateTime": first}, {"LocalDateTime": second}:
            return bool(first[:26] == second[:26])
        case {"map": first}, {"map": second}:
            return sorted(map(str, first)) == sorted(map(str, second))
        case [*first], [*second]:
            return len(first) == len(second) and all(map(same, first, second))
    return type(one) is type(other) and bool(one == other)
