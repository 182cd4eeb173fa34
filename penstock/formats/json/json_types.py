"""The form of values of each type in JSON.

Writers make JSON text; readers take the values that a JSON parser returns. A function is made once for a type and then
called for every value, so a value needs no checks of its type's structure.
"""

from __future__ import annotations

import base64
import datetime
import json
import math
from array import array
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from json.encoder import encode_basestring
from typing import Any

from penstock.common.basic_types import (
    BigDecimalTypeInfo,
    BooleanTypeInfo,
    DateTypeInfo,
    DoubleTypeInfo,
    FloatTypeInfo,
    InstantTypeInfo,
    IntegerTypeInfo,
    PickledBytesTypeInfo,
    TimestampTypeInfo,
    TimeTypeInfo,
)
from penstock.common.composite_types import ByteArrayTypeInfo, ListTypeInfo, MapTypeInfo, RowTypeInfo, TupleTypeInfo
from penstock.common.type_information import TypeInformation
from penstock.common.typeinfo import BasicTypeInfo
from penstock.common.types import Row, make_row, rows_from_columns
from penstock.errors import UndecodableRecord
from penstock.formats.date_texts import (
    instant_from,
    read_date,
    read_time,
    read_timestamp,
    time_text,
    timestamp_text,
)

Write = Callable[[Any], str]
Read = Callable[[Any], Any]

_ALLOWED = "allowed are basic types, dates and times, rows, lists and maps"
MISREAD = (ValueError, TypeError, KeyError, ArithmeticError, RecursionError, AttributeError)


# --- writing ---
def writer_of(declared: TypeInformation) -> Write:
    """Return the function that writes None, or a value in the form of its type.

    It raises one of MISREAD for a value that the type must bring into form, or must refuse.
    """
    write = _writer(declared)
    return lambda value: "null" if value is None else write(value)


def fitting_writer_of(declared: TypeInformation) -> Write:
    """Return the function that writes None, or any value that fits a type."""
    write = writer_of(declared)

    def write_fitted(value: Any) -> str:
        try:
            return write(value)
        except MISREAD:
            return write(declared.fit([value])[0])

    return write_fitted


def _writer(declared: TypeInformation) -> Write:
    for kind, make in _WRITERS:
        if isinstance(declared, kind):
            return make(declared)
    raise TypeError(f"{declared.notation} has no form in JSON; {_ALLOWED}")


def plain_text(value: Any) -> str:
    """Return the JSON of a value whose type is unknown."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=_plain)


def _plain(value: Any) -> Any:
    if isinstance(value, Row):
        return value.as_dict() if value.get_field_names() is not None else list(value)
    if isinstance(value, (bytes, bytearray)):
        return base64.b64encode(value).decode("ascii")
    if isinstance(value, Decimal):
        return str(value)
    if hasattr(value, "isoformat"):
        return value.isoformat()
    raise TypeError(f"{value!r} ({type(value).__name__}) has no form in JSON unless its type is declared")


def _write_boolean(value: Any) -> str:
    if value is True:
        return "true"
    if value is False:
        return "false"
    raise TypeError(f"{value!r} is not a boolean")


def _integer_writer(declared: IntegerTypeInfo) -> Write:
    highest = (1 << (8 * array(declared.typecode).itemsize - 1)) - 1
    lowest = ~highest

    def write(value: int) -> str:
        if lowest <= value <= highest:
            return int.__repr__(value)
        raise OverflowError(f"{value} is out of the range of {declared.notation}")

    return write


def _write_char(value: str) -> str:
    if len(value) != 1:
        raise ValueError(f"{value!r} is not one character")
    return encode_basestring(value)


def _basic_writer(declared: BasicTypeInfo) -> Write:
    if declared.python_class is int:
        return int.__repr__
    return _write_char if declared.name == "CHAR" else encode_basestring


def _write_date(value: datetime.date) -> str:
    if type(value) is not datetime.date:
        raise TypeError(f"{value!r} is not a date")
    return f'"{value.isoformat()}"'


def _write_double(value: float) -> str:
    if math.isfinite(value):
        return float.__repr__(value)
    return '"NaN"' if math.isnan(value) else '"Infinity"' if value > 0 else '"-Infinity"'


def _float_writer(declared: TypeInformation) -> Write:
    return lambda value: declared.text(value) if math.isfinite(value) else _write_double(value)


def _write_decimal(value: Decimal) -> str:
    return str(value) if value.is_finite() else f'"{value}"'


def _write_bytes(value: bytes) -> str:
    return f'"{base64.b64encode(value).decode("ascii")}"'


def _row_writer(declared: RowTypeInfo) -> Write:
    writers = [writer_of(part) for part in declared.field_types]
    template, own_names = _row_template(declared), declared.field_names

    def write_row(row: Any) -> str:
        kind = type(row)
        if kind is not tuple and (kind is not Row or not (own_names is None or row._names in (None, own_names))):
            raise TypeError(f"{row!r} is not a row of {declared.notation}")
        return template % tuple([write(value) for write, value in zip(writers, row, strict=True)])

    return write_row


def rows_writer_of(declared: RowTypeInfo) -> Callable[[Sequence[Sequence[Any]]], list[str]]:
    """Return the function that writes rows whose fields are given column by column, in the form of their types."""
    writers = [_column_writer(part) for part in declared.field_types]
    template = _row_template(declared)
    return lambda columns: list(
        map(template.__mod__, zip(*[write(own) for write, own in zip(writers, columns, strict=True)], strict=True))
    )


def _column_writer(declared: TypeInformation) -> Callable[[Sequence[Any]], list[str]]:
    write = int.__repr__ if isinstance(declared, IntegerTypeInfo) else _writer(declared)

    def write_column(values: Sequence[Any]) -> list[str]:
        if None in values:
            return ["null" if value is None else write(value) for value in values]
        return list(map(write, values))

    return write_column


def _row_template(declared: RowTypeInfo) -> str:
    names = (encode_basestring(name).replace("%", "%%") for name in declared.get_field_names())
    return "{" + ",".join(f"{name}:%s" for name in names) + "}"


def _tuple_writer(declared: TupleTypeInfo) -> Write:
    writers = [writer_of(part) for part in declared.field_types]

    def write_tuple(value: Any) -> str:
        if type(value) is not tuple:
            raise TypeError(f"{value!r} is not a tuple")
        return f"[{','.join([write(part) for write, part in zip(writers, value, strict=True)])}]"

    return write_tuple


def _list_writer(declared: ListTypeInfo) -> Write:
    write = writer_of(declared.elem_type)

    def write_list(value: Any) -> str:
        if type(value) is not list:
            raise TypeError(f"{value!r} is not a list")
        return f"[{','.join(map(write, value))}]"

    return write_list


def _map_writer(declared: MapTypeInfo) -> Write:
    if not isinstance(declared.key_type, (BasicTypeInfo, DateTypeInfo, TimeTypeInfo, TimestampTypeInfo)):
        raise TypeError(f"the keys of a JSON object are strings, and {declared.key_type} cannot be written as a string")
    write_key, write = _writer(declared.key_type), writer_of(declared.value_type)

    def key_text(key: Any) -> str:
        text = write_key(key)
        return text if text.startswith('"') else f'"{text}"'

    return lambda value: f"{{{','.join([f'{key_text(k)}:{write(v)}' for k, v in value.items()])}}}"


def _always(write: Write) -> Callable[[Any], Write]:
    return lambda declared: write


_WRITERS: tuple[tuple[type, Callable[[Any], Write]], ...] = (
    (BooleanTypeInfo, _always(_write_boolean)),
    (IntegerTypeInfo, _integer_writer),
    (DoubleTypeInfo, _always(_write_double)),
    (FloatTypeInfo, _float_writer),
    (BigDecimalTypeInfo, _always(_write_decimal)),
    (InstantTypeInfo, lambda declared: lambda value: f'"{declared.text(value)}"'),
    (BasicTypeInfo, _basic_writer),
    (DateTypeInfo, _always(_write_date)),
    (TimeTypeInfo, _always(lambda value: f'"{time_text(value)}Z"')),
    (TimestampTypeInfo, _always(lambda value: f'"{timestamp_text(value)}Z"')),
    (ByteArrayTypeInfo, _always(_write_bytes)),
    (RowTypeInfo, _row_writer),
    (TupleTypeInfo, _tuple_writer),
    (ListTypeInfo, _list_writer),
    (MapTypeInfo, _map_writer),
    (PickledBytesTypeInfo, _always(plain_text)),
)


# --- reading ---
@dataclass(frozen=True)
class Reading:
    """The functions that read the values of one type."""

    one: Read
    """Converts a parsed value other than None to the type, or raises one of MISREAD."""
    parsed: type | None = None
    """Class of parsed values that need no conversion."""
    typecode: str = ""
    """For whole numbers: typecode of an array that holds exactly the values in range."""

    def column(self, values: Sequence[Any]) -> Sequence[Any]:
        """Read the values of many records at once."""
        kinds = set(map(type, values))
        kinds.discard(type(None))
        if kinds <= {self.parsed} and self._in_range(values):
            return values
        return [None if value is None else self.one(value) for value in values]

    def _in_range(self, values: Sequence[Any]) -> bool:
        if not self.typecode:
            return True
        try:
            array(self.typecode, values)
        except (TypeError, OverflowError):
            return False
        return True


def reading_of(declared: TypeInformation, strict: bool = False) -> Reading:
    """Return the object that reads values of a type.

    If `strict`, rows must have all their fields; otherwise, missing fields are None.
    """
    if isinstance(declared, RowTypeInfo):
        return Reading(RowReading(declared, strict).one)
    if isinstance(declared, TupleTypeInfo):
        return Reading(_tuple_reader(declared, strict))
    if isinstance(declared, MapTypeInfo):
        return Reading(_map_reader(declared, strict))
    if isinstance(declared, ListTypeInfo) and not isinstance(declared, ByteArrayTypeInfo):
        return Reading(_list_reader(declared, strict))
    for kind, make in _READINGS:
        if isinstance(declared, kind):
            return make(declared)
    raise TypeError(f"{declared.notation} has no form in JSON; {_ALLOWED}")


def has_decimals(declared: TypeInformation) -> bool:
    """Return True if fractions must be parsed as decimals in order to lose nothing."""
    parts: list[Any] = [getattr(declared, name, None) for name in ("elem_type", "key_type", "value_type")]
    parts.extend(getattr(declared, "field_types", ()))
    return isinstance(declared, BigDecimalTypeInfo) or any(
        has_decimals(part) for part in parts if isinstance(part, TypeInformation)
    )


class RowReading:
    """Reads JSON objects as rows: one by one, or many at once, column by column.

    Rows without names may also be arrays.
    """

    def __init__(self, declared: RowTypeInfo, strict: bool = False) -> None:
        self._declared = declared
        self._names = tuple(declared.get_field_names())
        self._strict = strict
        self._readings = [reading_of(part, strict) for part in declared.field_types]
        self._fields = list(zip(self._names, [reading.one for reading in self._readings], strict=True))

    def one(self, fields: Any) -> Row:
        if type(fields) is list and self._declared.field_names is None and len(fields) == len(self._names):
            fields = dict(zip(self._names, fields, strict=True))
        if type(fields) is not dict:
            raise UndecodableRecord(f"{_short(fields)} is not a JSON object")
        return make_row(self._names, tuple([self._field(fields, name, read) for name, read in self._fields]))

    def many(self, objects: Sequence[dict[str, Any]]) -> list[Row]:
        """Read some objects as `one` does. Its errors do not name the object or the field."""
        if not self._names:
            return [self.one(fields) for fields in objects]
        return rows_from_columns((self._names, None, self.columns(objects)))

    def columns(self, objects: Sequence[dict[str, Any]]) -> list[Sequence[Any]]:
        """Return the values of the rows that `many` would make, field by field."""
        return [
            reading.column([fields[name] for fields in objects] if self._strict else [f.get(name) for f in objects])
            for name, reading in zip(self._names, self._readings, strict=True)
        ]

    def _field(self, fields: dict[str, Any], name: str, read: Read) -> Any:
        value = fields.get(name)
        if value is None:
            if self._strict and name not in fields:
                raise UndecodableRecord(f"the field '{name}' is missing")
            return None
        try:
            return read(value)
        except UndecodableRecord as error:
            raise UndecodableRecord(f"field '{name}': {error}") from None
        except MISREAD:
            declared = self._declared.field_types[self._names.index(name)]
            raise UndecodableRecord(f"field '{name}': {_short(value)} is not {declared.notation}") from None


def _short(value: Any) -> str:
    text = plain_text(value)
    return text if len(text) <= 60 else text[:57] + "..."


def _tuple_reader(declared: TupleTypeInfo, strict: bool) -> Read:
    readers = [reading_of(part, strict).one for part in declared.field_types]

    def read(values: Any) -> tuple[Any, ...]:
        if type(values) is not list:
            raise TypeError
        parts = zip(readers, values, strict=True)
        return tuple([None if value is None else one(value) for one, value in parts])

    return read


def _list_reader(declared: ListTypeInfo, strict: bool) -> Read:
    element = reading_of(declared.elem_type, strict)

    def read(values: Any) -> list[Any]:
        if type(values) is not list:
            raise TypeError
        return list(element.column(values))

    return read


def _map_reader(declared: MapTypeInfo, strict: bool) -> Read:
    read_key = _key_reader(declared.key_type)
    values = reading_of(declared.value_type, strict)

    def read(entries: Any) -> dict[Any, Any]:
        if type(entries) is not dict:
            raise TypeError
        return dict(zip(map(read_key, entries), values.column(list(entries.values())), strict=True))

    return read


def _key_reader(declared: TypeInformation) -> Read:
    """Return the reader of keys, which are always strings. Numbers are read from strings as well."""
    _map_writer(MapTypeInfo(declared, declared))
    return reading_of(declared).one


def _read_boolean(value: Any) -> bool:
    if type(value) is bool:
        return value
    return {"true": True, "false": False}[value.strip().lower()]


def _integer_reader(typecode: str) -> Read:
    def read(value: Any) -> int:
        if type(value) is str and "_" not in value:
            value = int(value)
        if type(value) is not int:
            raise TypeError
        if typecode:
            array(typecode, [value])
        return value

    return read


def _read_double(value: Any) -> float:
    if type(value) is bool or (type(value) is str and "_" in value):
        raise TypeError
    return float(value)


def _read_decimal(value: Any) -> Decimal:
    if type(value) is bool or (type(value) is str and "_" in value):
        raise TypeError
    try:
        return Decimal(value) if type(value) is not float else Decimal(repr(value))
    except InvalidOperation:
        raise ValueError from None


def _read_string(value: Any) -> str:
    """Return a string unchanged, and the JSON text of other values, as Flink does."""
    return value if type(value) is str else plain_text(value)


def _read_char(value: Any) -> str:
    if type(value) is not str or len(value) != 1:
        raise TypeError
    return value


def _basic_reading(declared: BasicTypeInfo) -> Reading:
    if declared.python_class is int:
        return Reading(_integer_reader(""), int)
    return Reading(_read_char) if declared.name == "CHAR" else Reading(_read_string, str)


_READINGS: tuple[tuple[type, Callable[[Any], Reading]], ...] = (
    (BooleanTypeInfo, lambda declared: Reading(_read_boolean, bool)),
    (IntegerTypeInfo, lambda declared: Reading(_integer_reader(declared.typecode), int, declared.typecode)),
    (DoubleTypeInfo, lambda declared: Reading(_read_double, float)),
    (FloatTypeInfo, lambda declared: Reading(lambda value: array("f", [_read_double(value)])[0])),
    (BigDecimalTypeInfo, lambda declared: Reading(_read_decimal, Decimal)),
    (InstantTypeInfo, lambda declared: Reading(instant_from)),
    (BasicTypeInfo, _basic_reading),
    (DateTypeInfo, lambda declared: Reading(read_date)),
    (TimeTypeInfo, lambda declared: Reading(read_time)),
    (TimestampTypeInfo, lambda declared: Reading(read_timestamp)),
    (ByteArrayTypeInfo, lambda declared: Reading(lambda value: base64.b64decode(value, validate=True))),
    (PickledBytesTypeInfo, lambda declared: Reading(lambda value: value)),
)
