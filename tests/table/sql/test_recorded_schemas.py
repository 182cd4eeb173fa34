"""Names, types, nullability and time attributes of results, and refusals, as Flink 2.3.0 gave them.

`recorded_schemas.json` was recorded with PyFlink's `sql_query(...).get_schema()` in streaming mode over the tables
below; it is not edited. What deliberately differs is listed with its reason.
"""

import json
from pathlib import Path

import pytest

from penstock.errors import SqlParserException, TableException, ValidationException
from penstock.table.sql import Binder
from tests.table.sql.sessions import ROW, Tables, schema
from tests.table.sql.validity import check_plan

RECORDED = json.loads((Path(__file__).parent / "recorded_schemas.json").read_text())
A = f"id INT; k STRING; x INT; {ROW}; m MAP<STRING, INT>; xs ARRAY<INT>; rs ARRAY<ROW<u INT, v STRING>>"
TABLES = {
    "a": f"{A}; ts TIMESTAMP(3); p TIMESTAMP_LTZ(3) NOT NULL",
    "b": "id INT; k STRING; y INT; ts TIMESTAMP(3)",
    "v": "k STRING NOT NULL; y INT; ts TIMESTAMP(3)",
}
UNITS = "intervals keep the units that they were written with"
TIME = "only columns that are passed on stay time attributes; Flink finds out later that these are none"
NULLS = "IF without NULL among its values is NOT NULL; LAG is not, whatever its default"
DIFFERENT = {
    "SELECT INTERVAL '1' DAY": UNITS,
    "SELECT INTERVAL 10": UNITS,
    "SELECT INTERVAL -'10'": UNITS,
    "SELECT MIN(ts) AS t": TIME,
    "SELECT TIMESTAMPADD(WEEK": TIME,
    "SELECT EXTRACT(EPOCH": TIME,
    "SELECT id FROM (SELECT id, k AS id": "the second column of a name gets a number at once; the first is found",
    "SELECT JSON_OBJECTAGG(KEY k": "the type is STRING at once, which it has in Flink when the query runs",
    "SELECT 'a' 'b'": "the parser refuses it already",
    "SELECT COALESCE(k, 'x'), IF(": NULLS,
    "SELECT IF(x > 1": NULLS,
    "SELECT id, RANK() OVER": NULLS,
    "SELECT id FROM a NATURAL FULL": "the column that two others were merged into is found",
    "SELECT id FROM a TABLESAMPLE": "samples are not supported",
    "SELECT T.aa FROM a MATCH_RECOGNIZE (PARTITION BY k ORDER BY ts MEASURES A.x AS aa ALL": "Flink refuses it later",
    "SELECT id FROM a WHERE k = 'a' /*+": "a hint where none belongs is a comment",
}


@pytest.mark.parametrize(("query", "expected"), RECORDED, ids=[query[:60] for query, _ in RECORDED])
def test_schema_is_that_of_flink(query: str, expected: str | dict[str, str]) -> None:
    reason = next((why for start, why in DIFFERENT.items() if query.startswith(start)), None)
    if reason is not None:
        pytest.skip(reason)
    session = Tables(**TABLES)
    if isinstance(expected, dict):
        with pytest.raises((ValidationException, SqlParserException, TableException)) as caught:
            Binder(session).query(query)
        assert expected["error"] in [kind.__name__ for kind in type(caught.value).__mro__]
        assert str(caught.value).startswith("line ")
        return
    plan = Binder(session).query(query)
    check_plan(plan)
    assert schema(plan) == expected
