"""The programs in BATCH mode, over the rows that their tables hold at the end of the stream."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from typing import Any

from penstock.table import EnvironmentSettings, TableEnvironment
from tests.table.programs.programs import CHANGES, EVENTS, ON_TIME, OTHERS, PROGRAMS, UPSERTS, Source
from tests.table.programs.test_programs import DIFFERENT, expected

BY_ID = {CHANGES.name, OTHERS.name, UPSERTS.name}
"""Tables with a primary key, which is their first column."""
OF_STREAMS = ("temporal-join", "materialize", "temporal-sort", "over-rows")
"""Programs about versions, sinks and the order of arrival, which BATCH mode does not have."""
PARTLY_LATE = {"window-hop", "window-cumulate", "window-session", "window-table"}
"""Programs in which a row is late for some of its windows only. BATCH mode drops no row, and refuses sessions."""
NAMES = [name for name in PROGRAMS if not name.startswith(OF_STREAMS) and name not in PARTLY_LATE]


def rows_at_end(source: Source) -> list[list[Any]]:
    """The rows of a table after all of its changes; without those that a stream drops as late."""
    source = replace(source, after=ON_TIME.after) if source.name == EVENTS.name else source
    changes = [*source.before, *source.after]
    if source.name not in BY_ID:
        return [list(change) for change in changes]
    rows: dict[Any, tuple[Any, ...]] = {}
    for kind, *row in changes:
        rows.pop(row[0], None)
        if kind[0] == "+":
            rows[row[0]] = ("+I", *row)
    return [list(row) for row in rows.values()]


def expected_rows(name: str) -> Counter[tuple[str, ...]]:
    """What Flink's sink holds at the end of the stream."""
    return Counter(DIFFERENT[name]) if name in DIFFERENT else expected(PROGRAMS[name], "after")


def result(name: str, engine: str) -> Counter[tuple[str, ...]]:
    """What the query of a program gives in BATCH mode."""
    program = PROGRAMS[name]
    t_env = TableEnvironment.create(EnvironmentSettings.in_batch_mode())
    t_env.get_config().set("table.exec.batch.engine", engine)
    for option, value in program.options.items():
        t_env.get_config().set(option, value)
    for source in program.sources:
        rows = json.dumps(rows_at_end(source)).replace("'", "''")
        t_env.execute_sql(
            f"CREATE TABLE {source.name} ({source.columns}) WITH ('connector' = 'script', 'rows' = '{rows}')"
        )
    with t_env.execute_sql(program.sql).collect() as found:
        return Counter(tuple("null" if value is None else str(value) for value in row) for row in found)
