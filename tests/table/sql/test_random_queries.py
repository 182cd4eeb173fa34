"""Random queries of a grammar bind to well-formed plans, always to the same, and print."""

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from penstock.table.logical.nodes import explain
from penstock.table.sql import Binder, parse
from tests.table.sql.sessions import tables
from tests.table.sql.validity import check_plan

NUMBERS, TEXTS = st.sampled_from(["id", "x", "7", "-1", "2.5"]), st.sampled_from(["k", "'word'", "''"])


@st.composite
def number(draw: st.DrawFn, depth: int = 2) -> str:
    if depth == 0:
        return draw(NUMBERS)
    one, other = draw(number(depth - 1)), draw(number(depth - 1))
    forms = [one, f"({one} + {other})", f"{one} * {other}", f"({one} - {other}) / 3", f"ABS({one})", f"- ({one})"]
    forms += [f"COALESCE({one}, {other})", f"CAST({one} AS DECIMAL(10, 2))", f"CHAR_LENGTH({draw(TEXTS)})"]
    forms += [f"CASE WHEN {draw(condition(depth - 1))} THEN {one} ELSE {other} END", "EXTRACT(HOUR FROM ts)"]
    return draw(st.sampled_from(forms))


@st.composite
def text(draw: st.DrawFn, depth: int = 2) -> str:
    if depth == 0:
        return draw(TEXTS)
    one = draw(text(depth - 1))
    forms = [one, f"UPPER({one})", f"{one} || {draw(text(depth - 1))}", f"SUBSTRING({one} FROM 2 FOR 3)"]
    forms += [f"TRIM(BOTH 'x' FROM {one})", f"CAST({draw(number(depth - 1))} AS STRING)", f"IF(id > 1, {one}, 'no')"]
    return draw(st.sampled_from(forms))


@st.composite
def condition(draw: st.DrawFn, depth: int = 2) -> str:
    one = draw(number(0))
    forms = [f"{one} > 3", f"{draw(TEXTS)} LIKE 'a%'", f"x BETWEEN {one} AND 9", "k IS NOT NULL", f"x IN (1, {one})"]
    forms += ["(x > 1) IS NOT TRUE", "k NOT IN ('a', 'b')", "x IS DISTINCT FROM id"]
    if depth > 0:
        deeper = draw(condition(depth - 1))
        forms += [f"({deeper} AND {draw(condition(depth - 1))})", f"({deeper} OR x = 2)", f"NOT ({deeper})"]
    return draw(st.sampled_from(forms))


AGGREGATES = [
    "COUNT(*)",
    "SUM({0})",
    "AVG({0})",
    "MIN({0})",
    "MAX(k)",
    "COUNT(DISTINCT k)",
    "SUM({0}) FILTER (WHERE {1})",
]


@st.composite
def aggregate(draw: st.DrawFn) -> str:
    return draw(st.sampled_from(AGGREGATES)).format(draw(number(1)), draw(condition(1)))


@st.composite
def items(draw: st.DrawFn, made: st.SearchStrategy[str]) -> str:
    return ", ".join(f"{one} AS f{index}" for index, one in enumerate(draw(st.lists(made, min_size=1, max_size=3))))


WINDOWS = [
    "TUMBLE(TABLE a, DESCRIPTOR(ts), INTERVAL '10' SECOND)",
    "HOP(TABLE a, DESCRIPTOR(ts), INTERVAL '5' SECOND, INTERVAL '10' SECOND)",
    "CUMULATE(DATA => TABLE a, TIMECOL => DESCRIPTOR(ts), STEP => INTERVAL '1' DAY, SIZE => INTERVAL '2' DAY)",
    "SESSION(TABLE a PARTITION BY k, DESCRIPTOR(ts), INTERVAL '1:30' MINUTE TO SECOND)",
]
KEYS = ["k", "id, k", "MOD(id, 2)", "ROLLUP (k, id)", "CUBE (k, id)", "GROUPING SETS ((k), (id), ())", "k, ROLLUP (id)"]
FRAME = "ROWS BETWEEN 2 PRECEDING AND CURRENT ROW"
JOINS = ["JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN"]
INSIDE = ["SELECT y FROM b", "SELECT y FROM b WHERE b.k = a.k", "SELECT MAX(y) FROM b WHERE b.id > a.id GROUP BY k"]


@st.composite
def query(draw: st.DrawFn) -> str:
    plain = draw(items(st.one_of(number(), text(), condition())))
    made, where = draw(items(aggregate())), draw(condition())
    shapes = [
        f"SELECT {plain} FROM a WHERE {where}",
        f"SELECT DISTINCT {plain} FROM a",
        f"SELECT {made} FROM a WHERE {where}",
        f"SELECT {made} FROM a GROUP BY {draw(st.sampled_from(KEYS))} HAVING COUNT(*) > 1",
        f"SELECT window_start, {made} FROM TABLE({draw(st.sampled_from(WINDOWS))}) GROUP BY window_start, window_end",
        f"SELECT TUMBLE_END(ts, INTERVAL '1' DAY) AS e, {made} FROM a GROUP BY k, TUMBLE(ts, INTERVAL '1' DAY)",
        f"SELECT *, ROW_NUMBER() OVER (PARTITION BY k ORDER BY {draw(number(1))} DESC) AS rn FROM a WHERE {where}",
        f"SELECT SUM({draw(number(1))}) OVER w AS s, k FROM a WINDOW w AS (ORDER BY ts {FRAME})",
        f"SELECT l.k, r.y FROM a AS l {draw(st.sampled_from(JOINS))} b AS r ON l.id = r.id AND r.y > 1",
        f"SELECT id, k FROM a WHERE {where} UNION ALL SELECT id, k FROM b ORDER BY 1 LIMIT 3",
        f"SELECT k FROM a WHERE x IN ({draw(st.sampled_from(INSIDE))}) AND {where}",
        f"SELECT k FROM a WHERE x > (SELECT AVG(y) FROM b WHERE b.k = a.k) OR {where}",
        f"WITH t AS (SELECT {plain} FROM a) SELECT * FROM t ORDER BY f0 LIMIT 2 OFFSET 1",
        f"SELECT k, COUNT(*) AS n FROM (SELECT k, {draw(aggregate())} AS m FROM a GROUP BY k) GROUP BY k",
    ]
    return draw(st.sampled_from(shapes))


@settings(max_examples=80, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(query(), st.booleans())
def test_random_queries_bind_and_print(written: str, batch: bool) -> None:
    plan = Binder(tables(batch)).query(written)
    check_plan(plan)
    again = Binder(tables(batch)).query(written.replace(" ", "\n "))
    assert explain(again) == explain(plan) and again == plan


@settings(max_examples=80, deadline=None)
@given(query(), st.integers(0, 200), st.sampled_from(["(", ")", ",", "FROM", "1", "'", "SELECT", "."]))
def test_broken_queries_are_refused_with_a_place_or_read(written: str, place: int, token: str) -> None:
    """Whatever is put into a query, the parser reads it or says where it failed."""
    from penstock.errors import SqlParserException, ValidationException

    broken = f"{written[:place]} {token} {written[place:]}"
    try:
        parse(broken)
    except (SqlParserException, ValidationException) as problem:
        assert str(problem).startswith("line ")
