"""The connectors 'print' and 'blackhole'."""

from __future__ import annotations

import datetime
from typing import Any

from penstock.common.typeinfo import Types
from penstock.common.types import Row
from penstock.datastream.data_stream import DataStream
from penstock.table.connectors.contract import Connector, Declared
from penstock.table.types import data_types as t
from penstock.table.types.stream_types import type_information


class Print(Connector):
    """Prints rows as lines on the driver: `prefix> +I[1, a]`."""

    name = "print"

    def takes_changes(self, table: Declared) -> bool:
        return True

    def sink(self, stream: DataStream, table: Declared, changelog: bool) -> None:
        options = table.options
        prefix = options.text("print-identifier")
        options.flag("standard-error")
        options.whole("sink.parallelism")
        options.refuse_unknown()
        line = _Line([column.type for column in table.columns])
        stream.map(line, Types.STRING()).print(prefix).name(f"print {table.name}")


class _Line:
    """Formats a row with its kind as a line."""

    def __init__(self, types: list[Any]) -> None:
        self._types = types

    def __call__(self, row: Row) -> str:
        values = [java_text(value, kind) for value, kind in zip(row, self._types, strict=True)]
        return f"{row.get_row_kind()}[{', '.join(values)}]"


def java_text(value: Any, declared: t.DataType) -> str:
    """Return the text that Java's classes give a value: a moment without its zero parts, bytes as numbers."""
    if value is None:
        return "null"
    match declared:
        case t.TimestampType():
            return f"{value.date().isoformat()}T{_time_of_day(value.time())}"
        case t.LocalZonedTimestampType():
            moment = value.astimezone(datetime.UTC)
            return f"{moment.date().isoformat()}T{moment.strftime('%H:%M:%S')}{_fraction(moment.time())}Z"
        case t.TimeType():
            return _time_of_day(value)
        case t.ArrayType():
            return f"[{', '.join(java_text(one, declared.element_type) for one in value)}]"
        case t.MultisetType() | t.MapType():
            kinds = (
                (declared.element_type, t.IntType())
                if isinstance(declared, t.MultisetType)
                else (declared.key_type, declared.value_type)
            )
            entries = (f"{java_text(key, kinds[0])}={java_text(one, kinds[1])}" for key, one in value.items())
            return f"{{{', '.join(entries)}}}"
        case t.RowType():
            return f"+I[{', '.join(map(java_text, value, declared.field_types()))}]"
    return type_information(declared).text(value)


def _time_of_day(value: datetime.time) -> str:
    fraction = _fraction(value)
    return value.strftime("%H:%M:%S" if value.second or fraction else "%H:%M") + fraction


def _fraction(value: datetime.time) -> str:
    """Return three digits, or six, or none."""
    digits = f"{value.microsecond:06d}"
    digits = digits[:3] if digits.endswith("000") else digits
    return "" if digits == "000" else f".{digits}"


class Blackhole(Connector):
    """Accepts all rows and drops them."""

    name = "blackhole"
    wants_rows = False

    def takes_changes(self, table: Declared) -> bool:
        return True

    def is_upsert_sink(self, table: Declared, changelog: bool) -> bool:
        return bool(table.key) and changelog

    def sink(self, stream: DataStream, table: Declared, changelog: bool) -> None:
        table.options.text("property-version")
        table.options.refuse_unknown()
        stream.discard().name(f"blackhole {table.name}")
