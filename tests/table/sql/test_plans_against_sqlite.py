"""Plans mean what the SQL says: random queries, interpreted row by row, give what SQLite gives.

Above all this is about queries inside of queries, which the binder turns into joins.
"""

import sqlite3
from collections import Counter

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from penstock.table.sql import Binder
from tests.table.sql.interpreter import Tables, rows_of
from tests.table.sql.sessions import Tables as Session
from tests.table.sql.validity import check_plan

COLUMNS = {"a": ("id", "k", "x"), "b": ("id", "k", "y")}
NUMBERS = st.one_of(st.none(), st.integers(-2, 4))
TABLE = st.lists(st.tuples(st.integers(0, 4), NUMBERS, NUMBERS), max_size=6)


def session() -> Session:
    return Session(True, a="id INT NOT NULL; k INT; x INT", b="id INT NOT NULL; k INT; y INT")


def answers(text: str, data: Tables) -> Counter[tuple[object, ...]]:
    database = sqlite3.connect(":memory:")
    for name, columns in COLUMNS.items():
        database.execute(f"CREATE TABLE {name} ({', '.join(f'{column} INTEGER' for column in columns)})")
        database.executemany(f"INSERT INTO {name} VALUES (?, ?, ?)", data[name])
    return Counter(tuple(row) for row in database.execute(text))


def check(text: str, data: Tables) -> None:
    plan = Binder(session()).query(text)
    check_plan(plan)
    assert Counter(rows_of(plan, data)) == answers(text, data), text


# --- a grammar of queries with queries inside ---
CONDITIONS = [
    "i.k = o.k",
    "i.k = o.k",
    "i.id = o.id",
    "i.y = o.x",
    "i.y < o.x",
    "i.id <> o.id",
    "i.k = o.k AND i.y > 0",
]
CONDITIONS += ["i.k + 1 = o.x", "i.y > 1", "i.k IS NOT DISTINCT FROM o.k"]
AGGREGATES = [
    "COUNT(*)",
    "COUNT(i.y)",
    "MAX(i.y)",
    "SUM(i.y)",
    "MIN(i.y) + 1",
    "COUNT(*) + o.x",
    "COALESCE(MAX(i.y), o.x)",
]


@st.composite
def inner_where(draw: st.DrawFn, deeper: bool = True) -> str:
    where = draw(st.sampled_from(CONDITIONS))
    if deeper and draw(st.integers(0, 4)) == 0:
        where += " AND " + draw(st.sampled_from(["EXISTS", "NOT EXISTS"]))
        where += (
            " (SELECT 1 FROM a j WHERE "
            + draw(st.sampled_from(["j.k = i.k", "j.x > i.y", "j.id = i.id AND j.x = o.x"]))
            + ")"
        )
    return where


@st.composite
def predicate(draw: st.DrawFn) -> str:
    where = draw(inner_where())
    forms = [
        f"EXISTS (SELECT 1 FROM b i WHERE {where})",
        f"NOT EXISTS (SELECT 1 FROM b i WHERE {where})",
        f"o.x IN (SELECT i.y FROM b i WHERE {where})",
        f"o.x NOT IN (SELECT i.y FROM b i WHERE {where})",
        f"(o.x, o.k) IN (SELECT i.y, i.k FROM b i WHERE {where})",
        "o.x IN (SELECT y FROM b)",
        "o.x NOT IN (SELECT y FROM b)",
        f"o.x >= (SELECT MAX(i.y) FROM b i WHERE {where})",
        f"o.x > (SELECT COUNT(*) FROM b i WHERE {where})",
        f"o.k = (SELECT MIN(i.k) FROM b i WHERE {where} HAVING COUNT(*) > 1)",
        f"EXISTS (SELECT i.k FROM b i WHERE {where} GROUP BY i.k HAVING COUNT(*) > 1)",
        f"o.x IN (SELECT MAX(i.y) FROM b i WHERE {where} GROUP BY i.k)",
        f"EXISTS (SELECT 1 FROM b i JOIN a j ON i.id = j.id WHERE {where})",
        f"EXISTS (SELECT 1 FROM b i LEFT JOIN a j ON i.id = j.id WHERE {where} AND j.x IS NULL)",
    ]
    return draw(st.sampled_from(forms))


@st.composite
def scalar(draw: st.DrawFn) -> str:
    where, value = draw(inner_where()), draw(st.sampled_from(AGGREGATES))
    forms = [
        f"(SELECT {value} FROM b i WHERE {where})",
        f"(SELECT {value} FROM b i WHERE {where})",
        "(SELECT MAX(y) FROM b)",
        f"(SELECT i.y FROM b i WHERE {where} ORDER BY i.y DESC, i.k, i.id LIMIT 1)",
        f"EXISTS (SELECT 1 FROM b i WHERE {where})",
        f"o.x IN (SELECT i.y FROM b i WHERE {where})",
        f"CASE WHEN o.x > 1 THEN (SELECT {value} FROM b i WHERE {where}) ELSE -1 END",
    ]
    return draw(st.sampled_from(forms))


@st.composite
def query(draw: st.DrawFn) -> str:
    shape = draw(st.integers(0, 4))
    if shape == 0:
        return f"SELECT o.id, o.k, {draw(scalar())} AS v FROM a o"
    if shape == 1:
        return f"SELECT o.id, o.k FROM a o WHERE {draw(predicate())} OR o.x = 1"
    if shape == 2:
        having = "GROUP BY o.k HAVING COUNT(*) > (SELECT MIN(y) FROM b)"
        return f"SELECT o.k, COUNT(*) AS n FROM a o WHERE {draw(predicate())} {having}"
    if shape == 3:
        table = "(SELECT k, MAX(x) AS x, MIN(id) AS id FROM a GROUP BY k) o"
        return f"SELECT o.k, o.x, {draw(scalar())} AS v FROM {table} WHERE {draw(predicate())}"
    return f"SELECT o.id, o.k, o.x FROM a o WHERE {draw(predicate())} AND {draw(predicate())}"


@settings(max_examples=120, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(query(), TABLE, TABLE)
def test_queries_inside_of_queries(text: str, a: list[tuple[int, ...]], b: list[tuple[int, ...]]) -> None:
    check(text, {"a": a, "b": b})


PLAIN = [
    "SELECT k, x FROM a UNION SELECT k, y FROM b EXCEPT SELECT id, k FROM a",
    "SELECT k FROM a INTERSECT SELECT k FROM b",
    "SELECT id, k FROM a UNION ALL SELECT id, k FROM b UNION ALL SELECT 1, 2",
    "SELECT a.id, b.y FROM a LEFT JOIN b ON a.k = b.k AND b.y > 0",
    "SELECT a.id, b.y FROM a JOIN b USING (id) WHERE a.x > b.y OR a.k = 1",
    "SELECT id, k FROM a ORDER BY x DESC, id, k LIMIT 2",
    "SELECT k, SUM(x) AS s, COUNT(DISTINCT id) AS n FROM a GROUP BY k HAVING COUNT(*) > 1 ORDER BY SUM(x) LIMIT 3",
    "SELECT k + 1 AS g, MAX(x) - MIN(x) AS d FROM a GROUP BY k + 1",
    "SELECT DISTINCT k FROM a ORDER BY k LIMIT 3",
    "SELECT * FROM (SELECT id, k, x, ROW_NUMBER() OVER (PARTITION BY k ORDER BY id, x) AS rn FROM a) WHERE rn <= 1",
    "SELECT k, SUM(COUNT(*)) OVER (ORDER BY k) AS s FROM a GROUP BY k",
    "WITH t AS (SELECT k, COUNT(*) AS n FROM a GROUP BY k) SELECT t.k, u.n FROM t JOIN t AS u ON t.n = u.n",
    "SELECT * FROM (VALUES (1, 2), (3, 4)) AS v",
    "SELECT id FROM a WHERE k BETWEEN 0 AND 2 AND x NOT IN (1, 2) AND NOT (k = x)",
    "SELECT CASE k WHEN 1 THEN 'one' WHEN 2 THEN 'two' END AS w FROM a",
    "SELECT a.id, b.id FROM a, b WHERE a.id = b.id AND a.x IS NULL",
]


@pytest.mark.parametrize("text", PLAIN)
@settings(max_examples=4, deadline=None)
@given(a=TABLE, b=TABLE)
def test_plain_queries(text: str, a: list[tuple[int, ...]], b: list[tuple[int, ...]]) -> None:
    check(text, {"a": a, "b": b})


def check_same(text: str, plain: str, data: Tables) -> None:
    """SQLite has no LATERAL, so that it gets the same question in other words."""
    plan = Binder(session()).query(text)
    check_plan(plan)
    assert Counter(rows_of(plan, data)) == answers(plain, data), text


@settings(max_examples=40, deadline=None)
@given(inner_where(), st.sampled_from(AGGREGATES), TABLE, TABLE)
def test_a_lateral_aggregate_is_a_value(
    where: str, value: str, a: list[tuple[int, ...]], b: list[tuple[int, ...]]
) -> None:
    """An inner join has no row for an aggregate over nothing, as in Flink, unless it does not depend on the left."""
    inner = f"SELECT {value} AS v FROM b i WHERE {where}"
    plain = f"SELECT o.id, o.k, ({inner}) FROM a o"
    matched = f"{plain} WHERE EXISTS (SELECT 1 FROM b i WHERE {where})" if "o." in where else plain
    check_same(f"SELECT o.id, o.k, s.v FROM a o, LATERAL ({inner}) AS s", matched, {"a": a, "b": b})
    check_same(f"SELECT o.id, o.k, s.v FROM a o LEFT JOIN LATERAL ({inner}) AS s ON TRUE", plain, {"a": a, "b": b})


@settings(max_examples=40, deadline=None)
@given(inner_where(False), st.sampled_from(["", "LEFT "]), st.sampled_from(["i.y", "i.y + 1", "7"]), TABLE, TABLE)
def test_a_lateral_query_is_a_join(
    where: str, kind: str, value: str, a: list[tuple[int, ...]], b: list[tuple[int, ...]]
) -> None:
    lateral = f"SELECT o.id, s.v FROM a o {kind}JOIN LATERAL (SELECT {value} AS v FROM b i WHERE {where}) AS s ON TRUE"
    shown = f"CASE WHEN i.id IS NULL THEN NULL ELSE {value} END"
    check_same(lateral, f"SELECT o.id, {shown} FROM a o {kind}JOIN b i ON {where}", {"a": a, "b": b})


@settings(max_examples=30, deadline=None)
@given(st.sampled_from(CONDITIONS[:4]), TABLE, TABLE)
def test_the_first_rows_of_a_lateral_query(where: str, a: list[tuple[int, ...]], b: list[tuple[int, ...]]) -> None:
    order = "i.y DESC, i.k, i.id"
    lateral = f"SELECT o.id, s.y FROM a o, LATERAL (SELECT y FROM b i WHERE {where} ORDER BY {order} LIMIT 2) AS s"
    ranked = f"SELECT o.id AS oid, i.y AS y, ROW_NUMBER() OVER (PARTITION BY o.r ORDER BY {order}) AS rn"
    plain = f"SELECT oid, y FROM ({ranked} FROM (SELECT *, rowid AS r FROM a) o JOIN b i ON {where}) WHERE rn <= 2"
    check_same(lateral, plain, {"a": a, "b": b})
