"""The plain forms of values in `to_sql_type` and `from_sql_type`: numbers, lists, dicts and tuples.

Days and microseconds count from 1970. A moment without a zone is in this machine's own zone.
"""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from typing import Any

from penstock.common.types import Row, RowKind
from penstock.table.types import data_types as t

_EPOCH = datetime.date(1970, 1, 1)
_MICROSECOND = datetime.timedelta(microseconds=1)
_ZERO = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)


def has_storage_form(declared: t.DataType) -> bool:
    """Return True if values of a type are stored in their own form."""
    match declared:
        case t.ArrayType() | t.MultisetType():
            return has_storage_form(declared.element_type)
        case t.MapType():
            return has_storage_form(declared.key_type) or has_storage_form(declared.value_type)
        case t.ZonedTimestampType() | t.TimestampType() | t.LocalZonedTimestampType() | t.DateType() | t.TimeType():
            return True
    return isinstance(declared, t.DayTimeIntervalType | t.RowType | t.UserDefinedType)


def to_storage(declared: t.DataType, value: Any) -> Any:
    """Return the form in which a value of a type is stored."""
    if value is None:
        return None
    match declared:
        case t.DateType():
            return (value - _EPOCH).days
        case t.TimeType():
            return _microseconds(value)
        case t.TimestampType() | t.LocalZonedTimestampType():
            return (value.astimezone(datetime.UTC) - _ZERO) // _MICROSECOND
        case t.ZonedTimestampType():
            moment = value if value.tzinfo else value.astimezone()
            shift = moment.utcoffset()
            return (moment - _ZERO + shift) // _MICROSECOND, int(shift.total_seconds())
        case t.DayTimeIntervalType():
            return value // _MICROSECOND
        case t.UserDefinedType():
            return to_storage(declared.sql_type(), declared.serialize(value))
        case t.ArrayType() | t.MultisetType() if has_storage_form(declared):
            return [to_storage(declared.element_type, one) for one in value]
        case t.MapType() if has_storage_form(declared):
            return {
                to_storage(declared.key_type, key): to_storage(declared.value_type, one) for key, one in value.items()
            }
        case t.RowType():
            kind = value.get_row_kind() if isinstance(value, Row) else RowKind.INSERT
            fields = zip(declared.field_types(), _fields(declared.names, value), strict=False)
            return (kind.value, *(to_storage(one, part) for one, part in fields))
    return value


def _microseconds(value: datetime.time) -> int:
    seconds = (value.hour * 60 + value.minute) * 60 + value.second
    shift = value.utcoffset() or datetime.timedelta()
    return seconds * 1_000_000 + value.microsecond - shift // _MICROSECOND


def _fields(names: list[str], value: Any) -> Sequence[Any]:
    """Return the fields of a row, which can be a Row, a sequence, a dict or an object with attributes."""
    if isinstance(value, dict):
        return [value.get(name) for name in names]
    if isinstance(value, Row):
        return [value[name] for name in names] if value.get_field_names() else list(value)
    if isinstance(value, (tuple, list)):
        return value
    if hasattr(value, "__dict__"):
        return [vars(value).get(name) for name in names]
    raise ValueError(f"a value of a ROW is a Row, a sequence, a dict or an object with attributes, not {value!r}")


def from_storage(declared: t.DataType, stored: Any) -> Any:
    """Return the value of a stored form."""
    if stored is None:
        return None
    match declared:
        case t.DateType():
            return _EPOCH + datetime.timedelta(days=stored)
        case t.TimeType():
            return (_ZERO + stored * _MICROSECOND).time()
        case t.TimestampType() | t.LocalZonedTimestampType():
            return (_ZERO + stored * _MICROSECOND).astimezone().replace(tzinfo=None)
        case t.ZonedTimestampType():
            zone = datetime.timezone(datetime.timedelta(seconds=stored[1]))
            return (_ZERO + stored[0] * _MICROSECOND).replace(tzinfo=zone)
        case t.DayTimeIntervalType():
            return stored * _MICROSECOND
        case t.UserDefinedType():
            return declared.deserialize(from_storage(declared.sql_type(), stored))
        case t.ArrayType() | t.MultisetType() if has_storage_form(declared):
            return [from_storage(declared.element_type, one) for one in stored]
        case t.MapType() if has_storage_form(declared):
            return {
                from_storage(declared.key_type, key): from_storage(declared.value_type, one)
                for key, one in stored.items()
            }
        case t.RowType() if not isinstance(stored, Row):
            values = [from_storage(*both) for both in zip(declared.field_types(), stored, strict=True)]
            return Row(**dict(zip(declared.names, values, strict=True)))
    return stored
