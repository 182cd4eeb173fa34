"""Casts from and to texts in whole columns, for the usual forms. They return None for other forms."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa
import pyarrow.compute as pc

from penstock.table.functions.library.parsing import BLANKS
from penstock.table.functions.typing.coercion import TEXTS
from penstock.table.types import data_types as t
from penstock.table.types.arrow_forms import arrow_type

Fast = Callable[[pa.Array, str], pa.Array | None]
"""A function of a column and the session's zone. It returns None if it cannot convert the column."""

_WHOLE = r"^-?[0-9]{1,18}$"
_FRACTION = r"^-?[0-9]{1,15}(\.[0-9]{1,15})?$"
_DATE = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}$"
_TIMESTAMP = r"^[0-9]{4}-[0-9]{2}-[0-9]{2} [0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]{1,6})?$"


def fast_text(kind: t.DataType, aim: t.DataType) -> Fast | None:
    """Return a fast kernel between texts and another type, or None."""
    if isinstance(kind, TEXTS):
        return _from_text(aim)
    if isinstance(aim, t.VarCharType) and aim.length == t.LONGEST:
        return _to_text(kind)
    return None


# --- reading ---
def _from_text(aim: t.DataType) -> Fast | None:
    match aim:
        case t.IntegralType():
            return _reading(_WHOLE, pa.int64(), lambda found: _in_range(found, aim))
        case t.FloatType() | t.DoubleType():
            form = arrow_type(aim)
            return _reading(_FRACTION, pa.float64(), lambda found: found.cast(form))
        case t.DateType():
            return _reading(_DATE, pa.date32(), lambda found: found)
        case t.TimestampType():
            return _reading(_TIMESTAMP, pa.timestamp("us"), lambda found: floor_seconds(found, aim.precision))
    return None


def _reading(regex: str, form: pa.DataType, finish: Callable[[pa.Array], pa.Array | None]) -> Fast:
    def read(column: pa.Array, zone: str) -> pa.Array | None:
        texts = pc.utf8_trim(column, characters=BLANKS)
        if not pc.all(pc.match_substring_regex(texts, regex)).as_py():
            return None
        try:
            return finish(texts.cast(form))
        except pa.ArrowInvalid:  # such as 30 February
            return None

    return read


def _in_range(numbers: pa.Array, aim: t.IntegralType) -> pa.Array | None:
    try:
        return numbers.cast(arrow_type(aim))
    except pa.ArrowInvalid:
        return None


def floor_seconds(column: pa.Array, precision: int) -> pa.Array:
    """Truncate the digits of a second beyond the precision."""
    if precision >= 6:
        return column
    return pc.floor_temporal(column, multiple=10 ** (6 - precision), unit="microsecond")


# --- writing ---
def _to_text(kind: t.DataType) -> Fast | None:
    match kind:
        case t.BooleanType():
            return lambda column, zone: pc.if_else(column, "TRUE", "FALSE")
        case t.DateType():
            return lambda column, zone: column.cast(pa.string()) if _usual_years(column) else None
        case t.TimeType():
            return lambda column, zone: pc.utf8_slice_codeunits(column.cast(pa.string()), 0, _width(8, kind.precision))
        case t.TimestampType():
            return lambda column, zone: _moment_text(column, kind.precision)
        case t.LocalZonedTimestampType():
            return lambda column, zone: _moment_text(_local(column, zone), kind.precision)
    return None


def _local(column: pa.Array, zone: str) -> pa.Array:
    return pc.local_timestamp(column.cast(pa.timestamp("us", zone)))


def _width(seconds: int, precision: int) -> int:
    return seconds + (precision + 1 if precision else 0)


def _moment_text(column: pa.Array, precision: int) -> pa.Array | None:
    if not _usual_years(column) or precision > 6:
        return None
    return pc.utf8_slice_codeunits(column.cast(pa.string()), 0, _width(19, precision))


def _usual_years(column: pa.Array) -> bool:
    """Return True if all years have four digits."""
    ends = pc.min_max(pc.year(column)).as_py()
    return ends["min"] is None or (ends["min"] >= 1 and ends["max"] <= 9999)
