"""BEGIN STATEMENT SET ... END, statement by statement, and how the client shows results that have an end."""

import pytest

from penstock.errors import TableException
from penstock.service.cli.sql.sql_client import SqlClient
from penstock.table import EnvironmentSettings, TableEnvironment
from penstock.testing import in_process


@pytest.fixture
def t_env(tmp_path):
    with in_process():
        made = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
        made.get_config().set("table.dml-sync", "true")
        for name in ("t1", "t2"):
            options = f"'connector' = 'filesystem', 'path' = '{tmp_path}/{name}', 'format' = 'csv'"
            made.execute_sql(f"CREATE TABLE {name} (a INT, b STRING) WITH ({options})")
        yield made


def rows(t_env, query):
    with t_env.execute_sql(query).collect() as found:
        return sorted(tuple(row) for row in found)


def test_inserts_run_together_at_the_end(t_env, tmp_path):
    t_env.execute_sql("BEGIN STATEMENT SET")
    assert t_env.execute_sql("INSERT INTO t1 VALUES (1, 'x')").get_job_client() is None
    t_env.execute_sql("INSERT INTO t2 VALUES (2, 'y'), (3, 'z')")
    assert not (tmp_path / "t1").exists()
    done = t_env.execute_sql("END")
    assert done.get_job_client() is not None and done.get_resolved_schema().get_column_count() == 2
    assert rows(t_env, "SELECT * FROM t1") == [(1, "x")]
    assert rows(t_env, "SELECT * FROM t2") == [(2, "y"), (3, "z")]


@pytest.mark.parametrize("other", ["SELECT 1", "CREATE VIEW v AS SELECT 1", "BEGIN STATEMENT SET", "SET 'a' = 'b'"])
def test_only_inserts_belong_into_a_set(t_env, other):
    t_env.execute_sql("BEGIN STATEMENT SET")
    with pytest.raises(TableException, match="Only 'INSERT/CREATE TABLE AS' statement is allowed"):
        t_env.execute_sql(other)
    t_env.execute_sql("INSERT INTO t1 VALUES (1, 'x')")
    t_env.execute_sql("END")
    assert rows(t_env, "SELECT * FROM t1") == [(1, "x")]


def test_a_set_ends_once_and_may_be_empty(t_env):
    t_env.execute_sql("BEGIN STATEMENT SET")
    assert t_env.execute_sql("END").get_job_client() is None
    with pytest.raises(TableException, match="should be used after 'BEGIN STATEMENT SET'"):
        t_env.execute_sql("END")


QUERY = "SELECT * FROM (VALUES (1, 'a long text of more than ten'), (22, CAST(NULL AS STRING))) AS t(id, words)"


def test_columns_of_a_batch_result_are_as_wide_as_their_texts(capsys):
    with in_process():
        client = SqlClient({"table.exec.batch.engine": "penstock"}, batch=True)
        client.run(QUERY)
        client.run("SET 'table.display.max-column-width' = '10'")
        client.run(QUERY)
    shown = capsys.readouterr().out.splitlines()
    assert shown[:4] == [
        "+----+------------------------------+",
        "| id |                        words |",
        "+----+------------------------------+",
        "|  1 | a long text of more than ten |",
    ]
    assert "| id |      words |" in shown and "|  1 | a long ... |" in shown and "| 22 |     <NULL> |" in shown
