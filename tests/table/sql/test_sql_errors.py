"""Errors of SQL texts have line and column, say what is expected, and suggest what was probably meant."""

import re

import pytest

from penstock.errors import SqlParserException, TableException, ValidationException
from penstock.table.sql import Binder, parse
from tests.table.sql.sessions import bound, tables

UNREADABLE = [
    ("SELEC 1", "line 1, column 1", "did you mean SELECT"),
    ("SELECT id FROM a WHERE", "line 1, column 23", "expected an expression"),
    ("SELECT id\nFROM a\nWHERE id = = 1", "line 3, column 12", "expected an expression"),
    ("SELECT id FROM (SELECT id FROM a", "line 1, column 33", 'expected ")"'),
    ("SELECT id a b FROM a", "line 1, column 13", "FROM"),
    ("SELECT id FROM a WHERE k IN ()", "line 1, column 30", "an expression"),
    ("SELECT 1 AS one", "line 1, column 13", "reserved word (write `one`"),
    ("SELECT 'abc", "line 1, column 8", "does not end"),
    ("SELECT 1 /* x", "line 1, column 10", "does not end"),
    ("SELECT CAST(1 AS DECIMAL(50, 2))", "line 1, column 18", "between 1 and 38"),
    ("CREATE TABLE t (a INT, PRIMARY KEY (a))", "line 1, column 39", "NOT ENFORCED"),
    ("CREATE TABLE t (a INT) WITH ('x')", "line 1, column 33", '"="'),
    ("SELECT 1; SELEC 2", "line 1, column 11", "did you mean SELECT"),
    ("SHOW TABELS", "line 1, column 6", "did you mean TABLES"),
]


@pytest.mark.parametrize(("text", "place", "advice"), UNREADABLE)
def test_what_cannot_be_read_is_told_with_place_and_advice(text: str, place: str, advice: str) -> None:
    with pytest.raises(SqlParserException) as caught:
        parse(text)
    assert str(caught.value).startswith(place + ":")
    assert advice in str(caught.value)


NOT_OFFERED = [
    ("DELETE FROM a", "line 1, column 1: DELETE"),
    ("WITH RECURSIVE t AS (SELECT 1) SELECT * FROM t", "line 1, column 6: recursive"),
]


@pytest.mark.parametrize(("text", "message"), NOT_OFFERED)
def test_what_is_understood_but_not_offered_has_flinks_class_of_error(text: str, message: str) -> None:
    with pytest.raises(TableException) as caught:
        parse(text)
    assert str(caught.value).startswith(message) and str(caught.value).endswith("not supported")


MATCH = "SELECT * FROM a MATCH_RECOGNIZE (ORDER BY ts MEASURES {} AS m PATTERN (A B) DEFINE A AS {})"
SENSELESS = [
    ("SELECT nothing FROM a", "line 1, column 8: Column 'nothing' not found in any table"),
    ("SELECT ID FROM a", "did you mean 'id'?"),
    ("SELECT a.idd FROM a", "line 1, column 8: Column 'idd' not found in table 'a'; did you mean 'id'?"),
    ("SELECT id FROM A", "line 1, column 16: Table 'A' not found; did you mean 'a'?"),
    ("SELECT c.id FROM a", "line 1, column 8: Table 'c' not found"),
    ("SELECT id FROM a JOIN b ON a.id = b.id", "line 1, column 8: Column 'id' is ambiguous"),
    ("SELECT upperr(k) FROM a", "line 1, column 8: there is no function UPPERR; did you mean UPPER?"),
    ("SELECT UPPER(x => k) FROM a", "line 1, column 8: UPPER takes no named arguments"),
    ("SELECT k + 1 FROM a", "line 1, column 10: + cannot be applied"),
    ("SELECT id FROM a WHERE id", "line 1, column 24: WHERE clause must be a condition"),
    ("SELECT SUM(id) FROM a WHERE SUM(id) > 1", "line 1, column 29: Aggregate expression SUM is illegal in WHERE"),
    ("SELECT SUM(COUNT(*)) FROM a", "line 1, column 12: Aggregate expression COUNT is illegal inside of another"),
    ("SELECT id,\n  x FROM a GROUP BY id", "line 2, column 3: Expression 'x' is not being grouped"),
    ("SELECT id AS z, COUNT(*) FROM a GROUP BY z", "line 1, column 42: Column 'z' not found"),
    ("SELECT id, COUNT(*) FROM a GROUP BY 1", "line 1, column 8: Expression 'id' is not being grouped"),
    ("SELECT COUNT(*) AS c FROM a HAVING c > 1", "line 1, column 36: Column 'c' not found"),
    ("SELECT NULL FROM a", "line 1, column 8: Illegal use of 'NULL'"),
    ("SELECT id FROM a UNION SELECT id, k FROM a", "Column count mismatch in UNION"),
    ("SELECT id FROM a UNION ALL SELECT k FROM a", "line 1, column 18: Type mismatch in column 1 of UNION ALL"),
    ("SELECT DISTINCT id FROM a ORDER BY x", "line 1, column 36"),
    ("SELECT id FROM a ORDER BY 3", "line 1, column 27: ORDER BY 3: there are columns 1 to 1"),
    ("SELECT * FROM a AS t (c1)", "1 names are given for 5 columns"),
    ("SELECT * FROM TABLE(TUMBLE(TABLE a, DESCRIPTOR(x), INTERVAL '1' DAY))", "TIMESTAMP or TIMESTAMP_LTZ, but is INT"),
    ("SELECT * FROM TABLE(TUMBLE(TABLE a, DESCRIPTOR(ts)))", "TUMBLE takes (DATA, TIMECOL, SIZE[, OFFSET])"),
    ("SELECT INTERVAL '1:30' SECOND", "line 1, column 8: '1:30' is no interval of SECOND"),
    ("SELECT DATE '2024-13-01'", "yyyy-MM-dd"),
    ("SELECT CAST(1 AS INTEGR)", 'line 1, column 18: found "INTEGR" (did you mean INTEGER?)'),
    ("SELECT id FROM a JOIN b", "requires a condition"),
    ("SELECT * FROM TABLE(TUMBLE(TABLE a, DESCRIPTOR(ts), INTERVAL '1' DAY, INTERVAL '2' DAY))", "an offset that is"),
    ("SELECT LISTAGG(k, 1) FROM a", "a text, and a separator"),
    (MATCH.format("NEXT(A.x)", "A.x > 1"), "LAST(A.x, 1) is the row before"),
    (MATCH.format("COUNT(A.*)", "A.x > 1"), "a column of a variable"),
    ("SELECT HOP_START(ts, INTERVAL '1' DAY) FROM a GROUP BY TUMBLE(ts, INTERVAL '1' DAY)", "there is no HOP"),
    ("SELECT ROW_NUMBER() OVER (PARTITION BY k) FROM a", "ROW_NUMBER needs an ORDER BY"),
    ("SELECT SUM(x) OVER v FROM a", "Window 'v' not found"),
    ("SELECT MATCH_ROWTIME() FROM a", "only be used in MATCH_RECOGNIZE"),
    ("SELECT LISTAGG(k) WITHIN GROUP (ORDER BY id) FROM a", "LISTAGG must not have"),
    ("SELECT (SELECT id, k FROM b) FROM a", "one column, not 2"),
    ("SELECT 9223372036854775808", "is too large"),
    ("SELECT r.nope FROM n", "there is no field 'nope'"),
    ("VALUES (1, 2), (3)", "rows of VALUES have 2 and 1 values"),
]


@pytest.mark.parametrize(("text", "message"), SENSELESS)
def test_what_makes_no_sense_is_told_with_place_and_suggestion(text: str, message: str) -> None:
    with pytest.raises(ValidationException) as caught:
        bound(text)
    assert message in str(caught.value)
    assert str(caught.value).startswith("line ")


def test_a_time_column_without_watermark_is_refused_in_a_stream_only() -> None:
    query = (
        "SELECT * FROM TABLE(TUMBLE((SELECT CAST(ts AS TIMESTAMP(3)) AS t FROM a), DESCRIPTOR(t), INTERVAL '1' DAY))"
    )
    query = query.replace("CAST(ts AS TIMESTAMP(3))", "COALESCE(ts, ts)")
    with pytest.raises(ValidationException, match="needs a WATERMARK FOR `t`"):
        bound(query)
    assert bound(query, batch=True).names() == ["t", "window_start", "window_end", "window_time"]


def test_what_is_understood_but_not_offered_is_told() -> None:
    with pytest.raises(TableException, match="ALL ROWS PER MATCH"):
        bound("SELECT * FROM a MATCH_RECOGNIZE (ORDER BY ts ALL ROWS PER MATCH PATTERN (A) DEFINE A AS x > 1)")
    with pytest.raises(TableException, match="right side of a join"):
        bound("SELECT * FROM a FOR SYSTEM_TIME AS OF TIMESTAMP '2024-01-01 00:00:00'")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (MATCH.format("A.x", "PREV(A.x) > 1"), "LAST(A.x, 1) is the row before"),
        ("SELECT * FROM TABLE(HOP(TABLE a, DESCRIPTOR(ts), INTERVAL '1' MONTH, INTERVAL '1' DAY))", "months"),
        ("SELECT id FROM a WHERE id IN (SELECT k FROM b)", "cannot be compared"),
        ("SELECT a.id FROM a JOIN b ON a.id = b.k", "= cannot be applied"),
        (MATCH.replace("(A B)", "(A | B)").format("A.x", "A.x > 1"), "the alternative |"),
        ("SELECT 1 FROM a GROUP BY TUMBLE(ts, INTERVAL '1' DAY), TUMBLE(ts, INTERVAL '2' DAY)", "one group window"),
    ],
)
def test_what_flink_finds_out_when_it_plans_has_the_name_of_that(text: str, message: str) -> None:
    with pytest.raises(TableException, match=re.escape(message)):
        bound(text)


def test_a_text_that_ends_too_early_has_a_name_of_its_own() -> None:
    with pytest.raises(SqlParserException) as caught:
        parse("SELECT id FROM")
    assert type(caught.value).__name__ == "SqlParserEOFException"


def test_functions_of_the_user_are_suggested_too() -> None:
    session = tables()
    session.functions["my_own_function"] = object()
    with pytest.raises(ValidationException, match="did you mean 'my_own_function'"):
        Binder(session).query("SELECT my_own_functoin(k) FROM a")


def test_a_very_long_condition_is_bound() -> None:
    long = " OR ".join(f"x = {number} AND id = {number}" for number in range(2000))
    assert bound(f"SELECT id FROM a WHERE {long}").names() == ["id"]
