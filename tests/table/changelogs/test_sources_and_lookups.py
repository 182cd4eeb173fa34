"""Sources that repeat changes, lookups that change their mind, and rows that are late for state that is gone."""

from __future__ import annotations

import datetime
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from penstock.common import Row, RowKind, Types
from penstock.errors import TableException
from penstock.table import EnvironmentSettings, Schema, StreamTableEnvironment
from penstock.table.expression.function_declarations import udf
from penstock.table.types.data_types import DataTypes
from penstock.testing import in_process

KINDS = {"+I": RowKind.INSERT, "-U": RowKind.UPDATE_BEFORE, "+U": RowKind.UPDATE_AFTER, "-D": RowKind.DELETE}
Log = list[tuple[Any, ...]]


@pytest.fixture(params=[1, 2, None])
def t_env(request: pytest.FixtureRequest) -> Iterator[StreamTableEnvironment]:
    with in_process(epoch_records=request.param):
        made = StreamTableEnvironment.create(environment_settings=EnvironmentSettings.in_streaming_mode())
        made.get_config().set("parallelism.default", "1")
        yield made


def changes(t_env: StreamTableEnvironment, log: Log, key: bool = True) -> None:
    rows = [Row.of_kind(KINDS[kind], *row) for kind, *row in log]
    stream = t_env._env.from_collection(rows, Types.ROW_NAMED(["k", "n"], [Types.STRING(), Types.INT()]))
    schema = Schema.new_builder().column("k", DataTypes.STRING().not_null()).column("n", DataTypes.INT())
    schema = schema.column_by_expression("p", "PROCTIME()")
    built = (schema.primary_key("k") if key else schema).build()
    t_env.create_temporary_view("t", t_env.from_changelog_stream(stream, built))


def collected(t_env: StreamTableEnvironment, query: str) -> Log:
    with t_env.execute_sql(query).collect() as rows:
        return [(str(row.get_row_kind()), *row) for row in rows]


def left(log: Log) -> Log:
    found: Log = []
    for kind, *row in log:
        if kind[0] == "+":
            found.append(tuple(row))
        else:
            found.remove(tuple(row))
    return sorted(found, key=repr)


REPEATED = [
    ("+I", "a", 1), ("+I", "a", 1), ("-U", "a", 1), ("+U", "a", 2), ("-U", "a", 1), ("+U", "a", 2), ("+I", "b", 5),
    ("-D", "b", 5), ("-D", "b", 5), ("+I", "c", 3),
]  # fmt: skip


def test_a_source_that_repeats_changes_is_normalised(t_env: StreamTableEnvironment) -> None:
    t_env.get_config().set("table.exec.source.cdc-events-duplicate", "true")
    changes(t_env, REPEATED)
    assert left(collected(t_env, "SELECT k, n FROM t")) == [("a", 2), ("c", 3)]
    assert left(collected(t_env, "SELECT SUM(n) AS s, COUNT(*) AS c FROM t")) == [(5, 2)]


def test_a_source_that_repeats_changes_needs_a_key(t_env: StreamTableEnvironment) -> None:
    t_env.get_config().set("table.exec.source.cdc-events-duplicate", "true")
    changes(t_env, REPEATED, key=False)
    with pytest.raises(TableException, match="requires that changelog sources define a PRIMARY KEY"):
        t_env.execute_sql("SELECT k, n FROM t")


class Renames:
    """A function that changes the table that is looked up in when the row comes that it waits for."""

    def __init__(self, path: str) -> None:
        self.path = path

    def __call__(self, n: int) -> int:
        if n == 2:
            with sqlite3.connect(self.path) as database:
                database.execute("UPDATE names SET v = 'new'")
        return n


@pytest.mark.parametrize("join", ["JOIN", "LEFT JOIN"])
def test_a_lookup_takes_back_what_it_sent(t_env: StreamTableEnvironment, tmp_path: Path, join: str) -> None:
    """The table changes between the row and its retraction."""
    path = str(tmp_path / "names.db")
    with sqlite3.connect(path) as database:
        database.execute("CREATE TABLE names (k TEXT PRIMARY KEY, v TEXT)")
        database.execute("INSERT INTO names VALUES ('a', 'old'), ('b', 'old')")
    t_env.execute_sql(
        "CREATE TABLE names (k STRING, v STRING, PRIMARY KEY (k) NOT ENFORCED) WITH ('connector' = 'jdbc', "
        f"'url' = 'jdbc:sqlite:{path}', 'table-name' = 'names')"
    )
    t_env._env.settings.max_records = 1
    t_env.create_temporary_function("seen", udf(Renames(path), result_type=DataTypes.INT()))
    t_env.get_config().set("table.optimizer.non-deterministic-update.strategy", "TRY_RESOLVE")
    log = [("+I", "a", 1), ("+I", "b", 1), ("+I", "c", 2), ("-U", "a", 1), ("+U", "a", 3), ("-D", "b", 1)]
    changes(t_env, log)
    query = (
        "SELECT l.k, l.n, r.v FROM (SELECT t.k, seen(t.n) AS n, p FROM t) AS l "
        f"{join} names FOR SYSTEM_TIME AS OF l.p AS r ON l.k = r.k"
    )
    expected = [("a", 3, "new")] + ([] if join == "JOIN" else [("c", 2, None)])
    assert left(collected(t_env, query)) == expected


def test_a_row_that_is_late_for_state_that_is_gone_comes_out(t_env: StreamTableEnvironment) -> None:
    """The frame is 10 s. The state of a is cleared at 1 + 15 s; then 2 s is not late any more, while 3 s is for b."""
    start = datetime.datetime(2024, 1, 1)
    given = [("a", 1), ("b", 12), ("b", 14), ("b", 30), ("a", 2), ("b", 13), ("a", 31)]
    rows = [Row(k, start + datetime.timedelta(seconds=second), second) for k, second in given]
    kinds = Types.ROW_NAMED(["k", "ts", "n"], [Types.STRING(), Types.SQL_TIMESTAMP(), Types.INT()])
    schema = Schema.new_builder().column("k", DataTypes.STRING()).column("ts", DataTypes.TIMESTAMP(3))
    built = schema.column("n", DataTypes.INT()).watermark("ts", "ts").build()
    t_env.get_config().set("pipeline.auto-watermark-interval", "0 ms")
    t_env.create_temporary_view("e", t_env.from_data_stream(t_env._env.from_collection(rows, kinds), built))
    found = collected(
        t_env,
        "SELECT k, n, SUM(n) OVER (PARTITION BY k ORDER BY ts RANGE BETWEEN INTERVAL '10' SECOND PRECEDING "
        "AND CURRENT ROW) AS s FROM e",
    )
    assert sorted(row[1:] for row in found) == [
        ("a", 1, 1),
        ("a", 2, 2),
        ("a", 31, 31),
        ("b", 12, 12),
        ("b", 14, 26),
        ("b", 30, 30),
    ]
