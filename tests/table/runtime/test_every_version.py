"""Versions of a row that come in one epoch: a join with the version of a time finds each of them."""

from __future__ import annotations

import datetime
from typing import Any

import pytest

from penstock.common import Row, RowKind, Types
from penstock.table import ChangelogMode, EnvironmentSettings, Schema, StreamTableEnvironment
from penstock.testing import in_process

START = datetime.datetime(2024, 1, 1)
TIMED = Types.ROW_NAMED(["k", "v", "ts"], [Types.STRING(), Types.INT(), Types.SQL_TIMESTAMP()])
RATES = [("euro", 1, 0), ("yen", 5, 1), ("euro", 2, 10), ("euro", 3, 20), ("yen", 6, 21)]
ORDERS = [
    ("euro", 100, 5),
    ("euro", 101, 10),
    ("euro", 102, 19),
    ("euro", 103, 30),
    ("yen", 104, 20),
    ("dollar", 105, 9),
]
FOUND = [(100, 1), (101, 2), (102, 2), (103, 3), (104, 5), (105, None)]


def at(rows: list[tuple[str, int, int]], kind: RowKind = RowKind.INSERT) -> list[Row]:
    return [Row.of_kind(kind, k, v, START + datetime.timedelta(seconds=time)) for k, v, time in rows]


def schema(key: bool = False) -> Schema:
    made = Schema.new_builder().column("k", "STRING NOT NULL" if key else "STRING").column("v", "INT")
    made = made.column("ts", "TIMESTAMP(3)").watermark("ts", "ts - INTERVAL '1' SECOND")
    return (made.primary_key("k") if key else made).build()


@pytest.mark.parametrize("upserts", [False, True])
@pytest.mark.parametrize("epoch", [1, 2, None])
def test_no_version_is_lost(upserts: bool, epoch: int | None) -> None:
    with in_process(epoch_records=epoch):
        t_env = StreamTableEnvironment.create(environment_settings=EnvironmentSettings.in_streaming_mode())
        env: Any = t_env._env
        orders = env.from_collection(at(ORDERS), type_info=TIMED)
        t_env.create_temporary_view("orders", t_env.from_data_stream(orders, schema()))
        if upserts:
            changes = env.from_collection(at(RATES, RowKind.UPDATE_AFTER), type_info=TIMED)
            rates = t_env.from_changelog_stream(changes, schema(key=True), ChangelogMode.upsert())
            t_env.create_temporary_view("rates", rates)
        else:
            t_env.create_temporary_view(
                "every", t_env.from_data_stream(env.from_collection(at(RATES), TIMED), schema())
            )
            t_env.execute_sql(
                "CREATE TEMPORARY VIEW rates AS SELECT k, v, ts FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY k "
                "ORDER BY ts DESC) AS r FROM `every`) WHERE r = 1"
            )
        query = "SELECT o.v, r.v FROM orders o LEFT JOIN rates FOR SYSTEM_TIME AS OF o.ts AS r ON o.k = r.k"
        with t_env.sql_query(query).execute().collect() as rows:
            assert sorted(tuple(row) for row in rows) == FOUND
