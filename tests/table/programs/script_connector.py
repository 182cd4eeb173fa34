"""The connector 'script', for tests: a table whose changes are in its options, and one whose changes are kept."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from penstock.common import Row, RowKind
from penstock.datastream import DataStream, StreamExecutionEnvironment
from penstock.table.connectors import Connector, Declared
from penstock.table.connectors.table_formats import row_type
from penstock.testing import pause, scripted
from tests.recovery.programs import StoreSink

KINDS = {"+I": RowKind.INSERT, "-U": RowKind.UPDATE_BEFORE, "+U": RowKind.UPDATE_AFTER, "-D": RowKind.DELETE}
PAUSE = "pause"


class Script(Connector):
    """Plays rows, which begin with their kind. What is written goes into the store that 'store' names."""

    name = "script"

    def changes(self, options: Mapping[str, str]) -> tuple[bool, bool]:
        modes = options.get("modes", "I").split(",")
        return len(modes) > 1, len(modes) > 1 and "UB" not in modes

    def source(self, env: StreamExecutionEnvironment, table: Declared) -> DataStream:
        kinds = row_type(table.columns)
        make = Row(*[column.name for column in table.columns])
        script = [
            step if step == PAUSE else self._row(make, *step) for step in json.loads(table.options.require("rows"))
        ]
        steps = [pause() if step == PAUSE else step for step in script]
        return scripted(env, *steps, type_info=kinds).uid(f"script {table.name}")

    @staticmethod
    def _row(make: Any, kind: str, *values: Any) -> Row:
        row: Row = make(*values)
        row.set_row_kind(KINDS[kind])
        return row

    def takes_changes(self, table: Declared) -> bool:
        return True

    def is_upsert_sink(self, table: Declared, changelog: bool) -> bool:
        return bool(table.key)

    def sink(self, stream: DataStream, table: Declared, changelog: bool) -> None:
        plain = stream.map(lambda row: (str(row.get_row_kind()), *row)).uid(f"plain {table.name}")
        plain.sink_to(StoreSink(table.options.require("store"))).uid(f"sink {table.name}")
