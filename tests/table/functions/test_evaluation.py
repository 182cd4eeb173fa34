"""Branches that are not needed are not computed; errors name the function and the value; constants are folded."""

from __future__ import annotations

import sys
from pathlib import Path

import pyarrow as pa
import pytest

from penstock.errors import TableException, ValidationException
from penstock.table.functions import Moment, compile_rex, constant, resolve
from penstock.table.logical.nodes import Column
from penstock.table.logical.rex import Literal, Rex
from penstock.table.sql import Binder
from penstock.table.types import data_types as t

sys.path.insert(0, str(Path(__file__).parent))
from plain_values import NoTables, bound

COLUMNS = (
    Column("a", t.IntType()),
    Column("b", t.IntType()),
    Column("s", t.DataTypes.STRING()),
    Column("unused", t.DataTypes.STRING()),
)
BATCH = pa.RecordBatch.from_arrays(
    [
        pa.array([10, 7, None, 5], pa.int32()),
        pa.array([2, 0, 3, None], pa.int32()),
        pa.array(["12", "x", None, "7"]),
        pa.array(["-", "-", "-", "-"]),
    ],
    [column.name for column in COLUMNS],
)


def expression(text: str) -> Rex:
    return Binder(NoTables()).expression(text, COLUMNS)


def values(text: str, batch: pa.RecordBatch = BATCH) -> list[object]:
    return compile_rex(expression(text))(batch, Moment()).to_pylist()


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("CASE WHEN b <> 0 THEN a / b ELSE -1 END", [5, -1, None, -1]),
        ("CASE WHEN b = 0 THEN -1 WHEN a / b > 4 THEN 1 ELSE 0 END", [1, -1, 0, 0]),
        ("b <> 0 AND a / b > 1", [True, False, None, None]),
        ("b = 0 OR a / b > 1", [True, True, None, None]),
        ("IF(s = 'x', 0, CAST(s AS INT))", [12, 0, None, 7]),
        ("COALESCE(NULLIF(b, 0), CHAR_LENGTH(s))", [2, 1, 3, 1]),
        ("COALESCE(TRY_CAST(s AS INT), a)", [12, 7, None, 7]),
        ("CASE WHEN s <> 'x' THEN CASE WHEN b > 0 THEN CAST(s AS INT) / b END END", [6, None, None, None]),
    ],
)
def test_only_rows_that_need_it(text: str, wanted: list[object]) -> None:
    assert values(text) == wanted
    assert [values(text, BATCH.slice(row, 1))[0] for row in range(4)] == wanted


def test_a_batch_without_rows() -> None:
    assert values("CASE WHEN b <> 0 THEN a / b ELSE -1 END", BATCH.slice(0, 0)) == []
    assert values("CAST(a AS DECIMAL(5, 2)) / 3", BATCH.slice(0, 0)) == []


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a / b", "/: division of 7 by zero"),
        ("a % b", "division of 7 by zero"),
        ("CAST(s AS INT)", "CAST: 'x' cannot be converted to INT"),
        ("SHA2(s, b)", "SHA2('12', 2) failed"),
    ],
)
def test_errors_name_function_and_value(text: str, message: str) -> None:
    with pytest.raises(TableException) as raised:
        values(text)
    assert message in str(raised.value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("UPER(s)", "did you mean UPPER?"),
        ("s + 1", "+ cannot be applied to (STRING, INT NOT NULL)"),
        ("s = 1", "= cannot be applied to (STRING, INT NOT NULL)"),
        ("CASE WHEN a > 1 THEN a ELSE s END", "CASE cannot be applied"),
        ("CAST(a AS DATE)", "a value of INT cannot be cast to DATE"),
        ("SUBSTRING(a, 1)", "it takes (text, a whole number, [a whole number])"),
    ],
)
def test_refusals_say_what_is_taken(text: str, message: str) -> None:
    with pytest.raises(ValidationException) as raised:
        expression(text)
    assert message in str(raised.value)


def test_constants() -> None:
    assert constant(bound("UPPER('a' || 'b')")) == Literal(t.CharType(2, False), "AB")
    assert constant(bound("1 / 0")) is None
    assert constant(bound("RAND()")) is None
    assert constant(expression("a + 1")) is None


def test_time_is_handed_in() -> None:
    moment = Moment(processing_time=1_700_000_000_000, zone="Asia/Tokyo")
    for text, wanted in {
        "CAST(CURRENT_TIMESTAMP AS STRING)": "2023-11-15 07:13:20.000",
        "CAST(LOCALTIMESTAMP AS STRING)": "2023-11-15 07:13:20.000",
        "CAST(CURRENT_DATE AS STRING)": "2023-11-15",
        "FROM_UNIXTIME(0)": "1970-01-01 09:00:00",
        "CAST(TO_TIMESTAMP_LTZ(0, 3) AS STRING)": "1970-01-01 09:00:00.000",
        "CAST(EXTRACT(HOUR FROM TO_TIMESTAMP_LTZ(0, 3)) AS STRING)": "9",
        "CAST(FLOOR(TO_TIMESTAMP_LTZ(0, 3) TO DAY) AS STRING)": "1970-01-01 00:00:00.000",
    }.items():
        assert compile_rex(bound(text))(BATCH.slice(0, 1), moment).to_pylist() == [wanted]


def test_resolve_takes_names_in_any_case() -> None:
    text = Literal(t.CharType(1, False), "a")
    assert resolve("upper", [text]) == resolve("UPPER", [text])
