"""The connectors 'print' and 'blackhole'."""

from __future__ import annotations

from typing import Any

from penstock.common.typeinfo import Types
from penstock.common.types import Row
from penstock.datastream.data_stream import DataStream
from penstock.table.connectors.contract import Connector, Declared
from penstock.table.printing import text_of


class Print(Connector):
    """Rows as lines on the driver: `prefix> +I[1, a]`."""

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
    """A row with its kind as a line."""

    def __init__(self, types: list[Any]) -> None:
        self._types = types

    def __call__(self, row: Row) -> str:
        pairs = zip(row, self._types, strict=True)
        values = ["null" if value is None else text_of(value, kind) for value, kind in pairs]
        return f"{row.get_row_kind()}[{', '.join(values)}]"


class Blackhole(Connector):
    """Takes everything and keeps nothing."""

    name = "blackhole"
    wants_rows = False

    def takes_changes(self, table: Declared) -> bool:
        return True

    def sink(self, stream: DataStream, table: Declared, changelog: bool) -> None:
        table.options.text("property-version")
        table.options.refuse_unknown()
        stream.discard().name(f"blackhole {table.name}")
