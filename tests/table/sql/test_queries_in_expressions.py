"""Queries inside of expressions: in CASE, beside other queries, as arguments of functions, in conditions of joins."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from penstock.errors import TableException
from penstock.table import EnvironmentSettings, TableEnvironment
from penstock.table.api.results import remaining
from penstock.testing import in_process

T = "(VALUES (1, 'a'), (2, 'b'), (5, CAST(NULL AS STRING))) AS t(x, y)"
U = "(VALUES (1), (2), (7)) AS u(z)"
S = "(SELECT a FROM (VALUES (1), (2)) AS s(a))"


@pytest.fixture(params=["streaming", "batch"])
def t_env(request: pytest.FixtureRequest) -> Iterator[TableEnvironment]:
    with in_process():
        yield TableEnvironment.create(getattr(EnvironmentSettings, f"in_{request.param}_mode")())


CASES = [
    (f"SELECT CASE WHEN x IN {S} THEN 'in' ELSE 'out' END FROM {T}", [("in",), ("in",), ("out",)]),
    (f"SELECT CASE WHEN x IN {S} THEN 1 ELSE 0 END IN (SELECT 1) FROM {T}", [(False,), (True,), (True,)]),
    (f"SELECT x FROM {T} WHERE CASE WHEN x IN {S} THEN 1 ELSE 0 END NOT IN (SELECT 1)", [(5,)]),
    (f"SELECT x, CASE WHEN SUM(x) IN {S} THEN 1 ELSE 0 END FROM {T} GROUP BY x", [(1, 1), (2, 1), (5, 0)]),
    (f"SELECT x FROM {T} GROUP BY x HAVING CASE WHEN SUM(x) IN {S} THEN x > 1 ELSE FALSE END", [(2,)]),
    (f"SELECT UPPER((SELECT MAX(b) FROM (VALUES ('q')) AS s(b))), x FROM {T} WHERE x = 1", [("Q", 1)]),
    (
        f"SELECT COALESCE((SELECT MAX(b) FROM (VALUES ('a')) AS s(b) WHERE b = t.y), '-') FROM {T}",
        [("-",), ("-",), ("a",)],
    ),
    (f"SELECT CONCAT((SELECT 'b'), IF(x IN {S}, '1', '2')) FROM {T}", [("b1",), ("b1",), ("b2",)]),
    (f"SELECT GREATEST((SELECT 2) + 1, x) FROM {T}", [(3,), (3,), (5,)]),
    (f"SELECT x, z FROM {T} LEFT JOIN {U} ON x = z AND x IN (SELECT 1)", [(1, 1), (2, None), (5, None)]),
    (f"SELECT x, z FROM {T} LEFT JOIN {U} ON x = z AND z IN (SELECT 1)", [(1, 1), (2, None), (5, None)]),
    (f"SELECT x, z FROM {T} RIGHT JOIN {U} ON x = z AND x IN (SELECT 1)", [(1, 1), (None, 2), (None, 7)]),
    (f"SELECT x, z FROM {T} RIGHT JOIN {U} ON x = z AND z NOT IN (SELECT 1)", [(2, 2), (None, 1), (None, 7)]),
    (
        f"SELECT x, z FROM {T} FULL JOIN {U} ON x = z AND x IN {S} AND z <> (SELECT 1)",
        [(1, None), (2, 2), (5, None), (None, 1), (None, 7)],
    ),
]  # fmt: skip


@pytest.mark.parametrize(("text", "expected"), CASES)
def test_a_query_in_an_expression(t_env: TableEnvironment, text: str, expected: list[tuple[object, ...]]) -> None:
    with t_env.execute_sql(text).collect() as rows:
        found = [tuple(row) for row in remaining(rows)]
    assert sorted(found, key=str) == sorted(expected, key=str)


@pytest.mark.parametrize(("condition", "words"), [
    ("x = z AND x + z IN (SELECT 1)", "must not be compared with columns of both sides"),
    ("x = z AND EXISTS (SELECT 1 FROM (VALUES (1)) AS s(a) WHERE a = x)", "must not refer to the tables"),
])  # fmt: skip
def test_conditions_of_outer_joins_that_are_refused(t_env: TableEnvironment, condition: str, words: str) -> None:
    with pytest.raises(TableException, match=words):
        t_env.execute_sql(f"SELECT x, z FROM {T} FULL JOIN {U} ON {condition}")
