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


@pytest.mark.parametrize("epoch", [1, None])
def test_each_version_has_its_rank(epoch: int | None) -> None:
    with in_process(epoch_records=epoch):
        t_env = StreamTableEnvironment.create(environment_settings=EnvironmentSettings.in_streaming_mode())
        env: Any = t_env._env
        for name, rows in (("orders", ORDERS), ("every", RATES)):
            stream = env.from_collection(at(rows), type_info=TIMED)
            t_env.create_temporary_view(name, t_env.from_data_stream(stream, schema()))
        t_env.execute_sql(
            "CREATE TEMPORARY VIEW rates AS SELECT k, v, ts, place FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY k "
            "ORDER BY ts DESC) AS place FROM `every`) WHERE place = 1"
        )
        query = "SELECT o.v, r.v, r.place FROM orders o LEFT JOIN rates FOR SYSTEM_TIME AS OF o.ts AS r ON o.k = r.k"
        with t_env.sql_query(query).execute().collect() as rows:
            assert sorted(tuple(row) for row in rows) == [(order, rate, rate and 1) for order, rate in FOUND]


DELETED = [("+U", "euro", 1, 7), ("-D", "euro", None, 10), ("+U", "euro", 2, 22), ("-D", "euro", 2, 25)]
KINDS = {"+I": RowKind.INSERT, "+U": RowKind.UPDATE_AFTER, "-D": RowKind.DELETE}


@pytest.mark.parametrize("upserts", [True, False])
@pytest.mark.parametrize("epoch", [1, 3, None])
def test_a_version_is_valid_until_it_is_deleted(upserts: bool, epoch: int | None) -> None:
    """The result is Flink's. The first deletion has only the key and its time."""
    log = DELETED if upserts else [("+I" if kind == "+U" else kind, *row) for kind, *row in DELETED]
    with in_process(epoch_records=epoch):
        t_env = StreamTableEnvironment.create(environment_settings=EnvironmentSettings.in_streaming_mode())
        env: Any = t_env._env
        orders = env.from_collection(at([("euro", time, time) for time in (8, 11, 23, 26)]), type_info=TIMED)
        t_env.create_temporary_view("orders", t_env.from_data_stream(orders, schema()))
        changes = env.from_collection([at([tuple(row)], KINDS[kind])[0] for kind, *row in log], type_info=TIMED)
        mode = ChangelogMode.upsert() if upserts else ChangelogMode.all()
        t_env.create_temporary_view("rates", t_env.from_changelog_stream(changes, schema(key=True), mode))
        query = "SELECT o.v, r.v FROM orders o LEFT JOIN rates FOR SYSTEM_TIME AS OF o.ts AS r ON o.k = r.k"
        with t_env.sql_query(query).execute().collect() as rows:
            assert sorted(tuple(row) for row in rows) == [(8, 1), (11, None), (23, 2), (26, None)]
