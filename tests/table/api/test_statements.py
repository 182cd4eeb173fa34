"""Definitions, settings and what SHOW and DESCRIBE say of them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from penstock.errors import SqlParserException, TableException, ValidationException
from penstock.table import EnvironmentSettings, Schema, StreamTableEnvironment, TableDescriptor
from penstock.table.catalogs.memory_catalog import Catalog
from penstock.testing import in_process


@pytest.fixture
def t_env() -> Iterator[StreamTableEnvironment]:
    with in_process():
        yield StreamTableEnvironment.create(environment_settings=EnvironmentSettings.in_streaming_mode())


def shown(t_env, statement):
    return [tuple(row) for row in t_env.execute_sql(statement).collect()]


def make(t_env, name="t", extra=""):
    t_env.execute_sql(f"CREATE TABLE {name} (id INT, s STRING{extra}) WITH ('connector' = 'blackhole')")


def test_a_table_can_be_made_again_from_its_definition(t_env):
    t_env.execute_sql(
        "CREATE TABLE t (id INT NOT NULL COMMENT 'the id', s STRING, up AS UPPER(s), ts TIMESTAMP(3), WATERMARK FOR ts "
        "AS ts - INTERVAL '5' SECOND, PRIMARY KEY (id) NOT ENFORCED) COMMENT 'it''s' WITH ('connector' = 'datagen')"
    )
    (text,) = shown(t_env, "SHOW CREATE TABLE t")[0]
    before = shown(t_env, "DESCRIBE t")
    t_env.execute_sql("DROP TABLE t")
    t_env.execute_sql(text)
    assert shown(t_env, "DESCRIBE t") == before


def test_like_takes_over_columns_and_options(t_env):
    make(t_env, extra=", twice AS id * 2")
    t_env.execute_sql("CREATE TABLE u (more DOUBLE) WITH ('print-identifier' = 'x') LIKE t (EXCLUDING GENERATED)")
    assert [row[0] for row in shown(t_env, "DESCRIBE u")] == ["id", "s", "more"]


@pytest.mark.parametrize(
    ("change", "columns"),
    [
        ("ADD n BIGINT FIRST", ["n", "id", "s"]),
        ("ADD (n BIGINT AFTER id, m INT)", ["id", "n", "s", "m"]),
        ("RENAME s TO text", ["id", "text"]),
        ("DROP s", ["id"]),
        ("MODIFY s INT", ["id", "s"]),
    ],
)
def test_columns_change(t_env, change, columns):
    make(t_env)
    t_env.execute_sql(f"ALTER TABLE t {change}")
    assert [row[0] for row in shown(t_env, "DESCRIBE t")] == columns


def test_options_are_set_and_reset(t_env):
    make(t_env)
    t_env.execute_sql("ALTER TABLE t SET ('property-version' = '1')")
    assert "'property-version' = '1'" in shown(t_env, "SHOW CREATE TABLE t")[0][0]
    t_env.execute_sql("ALTER TABLE t RESET ('property-version')")
    assert "property-version" not in shown(t_env, "SHOW CREATE TABLE t")[0][0]


def test_tables_are_renamed(t_env):
    make(t_env)
    t_env.execute_sql("ALTER TABLE t RENAME TO u")
    assert t_env.list_tables() == ["u"]


def test_databases_and_catalogs(t_env):
    t_env.execute_sql("CREATE DATABASE d COMMENT 'side'")
    t_env.execute_sql("USE d")
    make(t_env)
    assert shown(t_env, "SHOW TABLES LIKE 't%'") == [("t",)] and shown(t_env, "SHOW TABLES NOT LIKE 't%'") == []
    t_env.execute_sql("CREATE CATALOG c WITH ('type' = 'generic_in_memory')")
    t_env.execute_sql("USE CATALOG c")
    assert t_env.list_tables() == [] and t_env.get_current_database() == "default"
    t_env.execute_sql("USE default_catalog.default_database")
    with pytest.raises(ValidationException, match="not empty"):
        t_env.execute_sql("DROP DATABASE d")
    t_env.execute_sql("DROP DATABASE d CASCADE")
    assert t_env.list_databases() == ["default_database"]


def test_settings_are_shown_and_taken_back(t_env):
    t_env.execute_sql("SET 'table.exec.state.ttl' = '1 h'")
    assert ("table.exec.state.ttl", "1 h") in shown(t_env, "SET")
    t_env.execute_sql("RESET 'table.exec.state.ttl'")
    assert t_env.get_config().get("table.exec.state.ttl", "none") == "none"


def test_what_is_temporary_hides_the_table_of_the_catalog(t_env):
    make(t_env)
    t_env.execute_sql("CREATE TEMPORARY VIEW t AS SELECT 1 AS x")
    assert [row[0] for row in shown(t_env, "DESCRIBE t")] == ["x"]
    t_env.execute_sql("DROP TEMPORARY VIEW t")
    assert [row[0] for row in shown(t_env, "DESCRIBE t")] == ["id", "s"]


@pytest.mark.parametrize(
    ("statement", "error", "words"),
    [
        ("SELECT * FROM ordrs", ValidationException, "orders"),
        ("SELECT qti FROM orders", ValidationException, "qty"),
        ("SELECT UPER(item) FROM orders", ValidationException, "UPPER"),
        ("INSERT INTO orders SELECT 1", ValidationException, "do not fit"),
        ("INSERT INTO orders SELECT 'x', 'y'", ValidationException, "do not fit"),
        ("SELECT id FROM orders WHERE", SqlParserException, "line 1"),
        ("CREATE TABLE orders (a INT) WITH ('connector' = 'print')", ValidationException, "already"),
        ("DROP TABLE nothing", ValidationException, "nothing"),
        ("SELECT 1; SELECT 2", SqlParserException, "one statement"),
        ("SELECT qty FROM orders ORDER BY qty", TableException, ""),
    ],
)
def test_errors_say_what_is_wrong(t_env, statement, error, words):
    t_env.execute_sql("CREATE TABLE orders (qty INT, item STRING) WITH ('connector' = 'datagen')")
    with pytest.raises(error) as caught:
        t_env.execute_sql(statement)
    assert words in str(caught.value)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ("'connector' = 'datagne'", "did you mean 'datagen'"),
        ("'connector' = 'datagen', 'rows-per-secnd' = '1'", "did you mean 'rows-per-second'"),
        ("'connector' = 'datagen', 'number-of-rows' = 'x'", "a whole number"),
        ("'connector' = 'filesystem', 'format' = 'csv'", "'path' is missing"),
        ("'connector' = 'filesystem', 'path' = '/tmp/x', 'format' = 'cvs'", "csv"),
        ("'path' = 'x'", "'connector'"),
    ],
)
def test_options_are_checked(t_env, options, words):
    with pytest.raises(ValidationException) as caught:
        t_env.execute_sql(f"CREATE TABLE t (a INT) WITH ({options})")
        t_env.execute_sql("SELECT * FROM t")
    assert words in str(caught.value)


def test_a_catalog_of_the_user_can_be_registered(t_env):
    t_env.register_catalog("own", Catalog("main"))
    t_env.use_catalog("own")
    descriptor = TableDescriptor.for_connector("datagen").schema(Schema.new_builder().column("n", "INT").build())
    assert t_env.create_table("numbers", descriptor.build()) is True
    assert t_env.create_table("numbers", descriptor.build(), True) is False
    assert t_env.from_path("own.main.numbers").get_schema().get_field_names() == ["n"]
