"""Names that Flink 2.3 finds too: fields of rows by their bare names, and columns such as `user`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from penstock.errors import SqlParserException, ValidationException
from penstock.table import EnvironmentSettings, TableEnvironment
from penstock.testing import in_process

ROW = (
    "SELECT 1 AS a, CAST(ROW(2, ROW(3, 4)) AS ROW<p INT, q ROW<z INT, a INT>>) AS r, "
    "CAST(ROW(5, 6) AS ROW<p2 INT, w INT>) AS s, CAST(ROW(7) AS ROW<w INT>) AS u"
)


@pytest.fixture
def t_env() -> Iterator[TableEnvironment]:
    with in_process():
        t_env = TableEnvironment.create(EnvironmentSettings.in_batch_mode())
        t_env.execute_sql(f"CREATE VIEW n AS {ROW}")
        yield t_env


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("SELECT p FROM n", [2]),
        ("SELECT z FROM n", [3]),
        ("SELECT a FROM n", [1]),
        ("SELECT q.z FROM n", [3]),
        ("SELECT n.p FROM n", [2]),
        ("SELECT x.p FROM n AS x WHERE p = 2", [2]),
        ("SELECT p2, COUNT(*) FROM n GROUP BY p2", [5, 1]),
        ("SELECT p + z FROM n ORDER BY p2", [5]),
        ("SELECT (SELECT MAX(b) FROM (VALUES (8)) AS v(b) WHERE b > p) FROM n", [8]),
    ],
)
def test_a_field_is_a_column_where_no_other_has_its_name(t_env: TableEnvironment, text: str, expected: Any) -> None:
    assert [list(row) for row in t_env.execute_sql(text).collect()] == [expected]


def test_a_name_of_two_fields_is_ambiguous(t_env: TableEnvironment) -> None:
    with pytest.raises(ValidationException, match="Column 'w' is ambiguous"):
        t_env.execute_sql("SELECT w FROM n")


def test_a_name_of_no_field_is_not_found(t_env: TableEnvironment) -> None:
    with pytest.raises(ValidationException, match="Column 'y' not found"):
        t_env.execute_sql("SELECT y FROM n")


VARIABLES = ["user", "session_user", "current_role", "current_path", "system_user", "current_user"]


@pytest.mark.parametrize("name", VARIABLES)
def test_a_variable_without_a_function_is_a_column(t_env: TableEnvironment, name: str) -> None:
    text = f"SELECT {name} + 1, COUNT(*) FROM (SELECT 5 AS `{name}`) AS t WHERE {name} = 5 GROUP BY {name}"
    assert [list(row) for row in t_env.execute_sql(text).collect()] == [[6, 1]]


@pytest.mark.parametrize(
    "text", ["SELECT x AS user FROM (VALUES (1)) AS t(x)", "CREATE TABLE t (user INT) WITH ('connector' = 'datagen')"]
)
def test_its_word_stays_reserved_where_a_name_is_given(t_env: TableEnvironment, text: str) -> None:
    with pytest.raises(SqlParserException, match="reserved word"):
        t_env.execute_sql(text)


def test_the_column_must_be_there(t_env: TableEnvironment) -> None:
    with pytest.raises(ValidationException, match="Column 'USER' not found in any table; did you mean 'user'"):
        t_env.execute_sql("SELECT USER FROM (SELECT 5 AS `user`) AS t")
