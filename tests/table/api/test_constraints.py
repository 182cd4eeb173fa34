"""What a table demands of rows that are written into it, and how definitions are kept; the results are Flink's."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from penstock.errors import ExecutionException, ValidationException
from penstock.table import EnvironmentSettings, TableEnvironment
from penstock.testing import in_process

ROWS = "SELECT a, b FROM (VALUES (1, 'one'), (CAST(NULL AS INT), 'none'), (3, 'three')) AS v(a, b)"


@pytest.fixture
def t_env() -> Iterator[TableEnvironment]:
    with in_process():
        yield TableEnvironment.create(EnvironmentSettings.in_batch_mode())


def files(t_env: TableEnvironment, folder: Path, columns: str, options: str = "'format' = 'json'") -> None:
    t_env.execute_sql(f"CREATE TABLE s ({columns}) WITH ('connector' = 'filesystem', 'path' = '{folder}', {options})")


def rows(t_env: TableEnvironment, text: str) -> list[list[Any]]:
    return sorted((list(row) for row in t_env.execute_sql(text).collect()), key=str)


def test_null_in_a_column_that_takes_none_fails_the_job(t_env: TableEnvironment, tmp_path: Path) -> None:
    files(t_env, tmp_path, "a INT NOT NULL, b STRING")
    with pytest.raises(ExecutionException, match="column 'a' is NOT NULL"):
        t_env.execute_sql(f"INSERT INTO s {ROWS}").wait()


def test_rows_with_such_a_null_can_be_dropped(t_env: TableEnvironment, tmp_path: Path) -> None:
    files(t_env, tmp_path, "a INT NOT NULL, b STRING")
    t_env.get_config().set("table.exec.sink.not-null-enforcer", "drop")
    t_env.execute_sql(f"INSERT INTO s {ROWS}").wait()
    assert rows(t_env, "SELECT * FROM s") == [[1, "one"], [3, "three"]]


def test_the_enforcer_has_two_words(t_env: TableEnvironment) -> None:
    with pytest.raises(ValidationException, match="ERROR or DROP"):
        t_env.get_config().set("table.exec.sink.not-null-enforcer", "ignore")


def test_texts_of_any_length_do_not_fit_a_fixed_one(t_env: TableEnvironment, tmp_path: Path) -> None:
    files(t_env, tmp_path, "b CHAR(5)")
    with pytest.raises(ValidationException, match="does not fit"):
        t_env.execute_sql("INSERT INTO s SELECT CAST('x' AS STRING)")


def test_a_column_of_a_key_stays_not_null_in_a_table_like_it(t_env: TableEnvironment) -> None:
    t_env.execute_sql("CREATE TABLE o (id INT, x INT, PRIMARY KEY (id) NOT ENFORCED) WITH ('connector' = 'datagen')")
    t_env.execute_sql("CREATE TABLE l LIKE o (EXCLUDING CONSTRAINTS)")
    assert [row[:3] for row in rows(t_env, "DESCRIBE l")] == [["id", "INT", False], ["x", "INT", True]]


def test_the_definition_of_a_catalog(t_env: TableEnvironment) -> None:
    t_env.execute_sql("CREATE CATALOG cc WITH ('type' = 'generic_in_memory', 'default-database' = 'dd')")
    text = "CREATE CATALOG `cc`\nWITH (\n  'default-database' = 'dd',\n  'type' = 'generic_in_memory'\n)\n"
    assert rows(t_env, "SHOW CREATE CATALOG cc") == [[text]]


def test_wrong_and_missing_fields_of_csv_can_be_null(t_env: TableEnvironment, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("1,x,2.5\nbad,row\n3,,y\n")
    files(t_env, tmp_path, "a INT, b STRING, c DOUBLE", "'format' = 'csv', 'csv.ignore-parse-errors' = 'true'")
    assert rows(t_env, "SELECT * FROM s") == [[1, "x", 2.5], [3, "", None], [None, "row", None]]


@pytest.mark.parametrize(
    ("text", "kind", "words"),
    [
        ("CREATE TABLE x (a INT) PARTITIONED BY (b) WITH ('connector' = 'print')", "ValidationException", "not one of"),
        ("CREATE TABLE x (a INT, b AS c + 1) WITH ('connector' = 'print')", "CalciteContextException", "'c' not found"),
        ("CREATE VIEW v AS SELECT c FROM (VALUES (1)) AS t(a)", "CalciteContextException", "'c' not found"),
        ("", "SqlParserEOFException", "no statement"),
    ],
)
def test_definitions_that_make_no_sense(t_env: TableEnvironment, text: str, kind: str, words: str) -> None:
    with pytest.raises(Exception, match=words) as problem:
        t_env.execute_sql(text)
    assert type(problem.value).__name__ == kind
