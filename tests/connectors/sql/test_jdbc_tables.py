"""Tables in databases: read, written, upserted, looked up."""

from __future__ import annotations

import pytest

from penstock.errors import TableException
from penstock.table import EnvironmentSettings, StreamTableEnvironment
from penstock.testing import in_process


@pytest.fixture
def t_env():
    with in_process():
        t_env = StreamTableEnvironment.create(environment_settings=EnvironmentSettings.in_streaming_mode())
        t_env.get_config().set("parallelism.default", "1")
        yield t_env


def declared(store, table, key=""):
    options = {"connector": "jdbc", "url": store.options.get_db_url(), "table-name": table}
    if store.options.get_user_name():
        options |= {"username": store.options.get_user_name(), "password": store.options.get_password()}
    given = ", ".join(f"'{name}' = '{value}'" for name, value in options.items())
    return f"CREATE TABLE {table} (k INT, v STRING{key}) WITH ({given})"


KEY = ", PRIMARY KEY (k) NOT ENFORCED"


def test_rows_are_written_and_read(store, t_env):
    store.run("CREATE TABLE plain (k INTEGER, v TEXT)")
    t_env.execute_sql(declared(store, "plain"))
    t_env.execute_sql("INSERT INTO plain VALUES (1, 'a'), (2, CAST(NULL AS STRING))").wait()
    assert sorted(store.rows("SELECT k, v FROM plain")) == [(1, "a"), (2, None)]
    store.run("CREATE TABLE keyed (k INTEGER PRIMARY KEY, v TEXT)", "INSERT INTO keyed VALUES (1, 'x'), (2, 'y')")
    t_env.execute_sql(declared(store, "keyed", KEY))
    found = t_env.sql_query("SELECT k, UPPER(v) AS u FROM keyed").to_pandas()
    assert sorted(found.itertuples(index=False, name=None)) == [(1, "X"), (2, "Y")]


def test_changes_go_into_a_table_with_a_key_alone(store, t_env):
    store.run("CREATE TABLE keyed (k INTEGER PRIMARY KEY, v TEXT)", "CREATE TABLE plain (k INTEGER, v TEXT)")
    t_env.execute_sql(declared(store, "keyed", KEY))
    t_env.execute_sql(declared(store, "plain"))
    t_env.execute_sql("CREATE TEMPORARY VIEW w AS SELECT * FROM (VALUES (1, 2), (1, 3), (2, 4)) AS t(k, n)")
    query = "SELECT k, CAST(SUM(n) AS STRING) FROM w GROUP BY k"
    t_env.execute_sql(f"INSERT INTO keyed {query}").wait()
    assert sorted(store.rows("SELECT k, v FROM keyed")) == [(1, "5"), (2, "4")]
    with pytest.raises(TableException, match="plain"):
        t_env.execute_sql(f"INSERT INTO plain {query}")


def test_rows_are_looked_up(store, t_env):
    store.run("CREATE TABLE names (k INTEGER PRIMARY KEY, v TEXT)", "INSERT INTO names VALUES (1, 'one'), (2, 'two')")
    t_env.execute_sql(declared(store, "names", KEY))
    t_env.execute_sql("CREATE TEMPORARY VIEW w AS SELECT k, PROCTIME() AS p FROM (VALUES (1), (3), (1)) AS t(k)")
    query = "SELECT w.k, n.v FROM w LEFT JOIN names FOR SYSTEM_TIME AS OF w.p AS n ON w.k = n.k"
    found = [tuple(row) for row in t_env.sql_query(query).execute().collect()]
    assert found == [(1, "one"), (3, None), (1, "one")]
