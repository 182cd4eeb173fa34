"""What is said in Spark's words, and what is not; no Spark is needed to see the words."""

from __future__ import annotations

import datetime
from decimal import Decimal

import pytest

from penstock.spark.sql.spark_aggregates import aggregate_text, over_texts
from penstock.spark.sql.spark_expressions import text_of
from penstock.table.functions import cast, resolve
from penstock.table.logical.rex import AggregateCall, Frame, InputRef, Literal, OverSpec, Rex, SortKey
from penstock.table.types import data_types as t

KINDS: list[t.DataType] = [
    t.IntType(),
    t.BigIntType(),
    t.DoubleType(),
    t.VarCharType(10),
    t.BooleanType(),
    t.DecimalType(10, 2),
    t.TimestampType(3),
    t.ArrayType(t.IntType()),
    t.TimeType(0),
]
NAMES = ["i", "l", "d", "s", "b", "m", "ts", "a", "at"]
INT, LONG, D, S, B, M, TS, A, AT = (InputRef(kind, index) for index, kind in enumerate(KINDS))


def lit(value: object, kind: t.DataType) -> Rex:
    return Literal(kind.not_null(), value)


ONE = lit(1, t.IntType())
SAID = [
    (resolve("+", [INT, ONE]), "(i + CAST('1' AS INT))"),
    (resolve("*", [INT, LONG]), "(CAST(i AS BIGINT) * l)"),
    (resolve("=", [S, lit("a'b", t.CharType(3))]), "(s = CAST(X'612762' AS STRING))"),
    (resolve("AND", [B, resolve("IS NULL", [A])]), "(b AND (a IS NULL))"),
    (resolve("IS NOT DISTINCT FROM", [INT, ONE]), "(i <=> CAST('1' AS INT))"),
    (resolve("IN", [INT, ONE, lit(2, t.IntType())]), "(i IN (CAST('1' AS INT), CAST('2' AS INT)))"),
    (resolve("<", [D, lit(1.5, t.DoubleType())]), "(d < CAST('1.5' AS DOUBLE))"),
    (resolve(">", [D, lit(1.5, t.DoubleType())]), "((d > CAST('1.5' AS DOUBLE)) AND NOT isnan(d))"),
    (resolve("=", [M, lit(Decimal("1.50"), t.DecimalType(10, 2))]), "(m = CAST('1.50' AS DECIMAL(10,2)))"),
    (
        resolve(">=", [TS, lit(datetime.datetime(2024, 1, 2, 3, 4, 5, 600000), t.TimestampType(3))]),
        "(ts >= CAST('2024-01-02 03:04:05.600000' AS TIMESTAMP_NTZ))",
    ),
    (resolve("=", [AT, lit(datetime.time(0, 0, 1), t.TimeType(0))]), "(at = CAST('1000000' AS BIGINT))"),
    (cast(INT, t.BigIntType()), "CAST(i AS BIGINT)"),
    (resolve("CASE", [B, INT, ONE]), "(CASE WHEN b THEN i ELSE CAST('1' AS INT) END)"),
    (resolve("COALESCE", [INT, ONE]), "coalesce(i, CAST('1' AS INT))"),
]
UNSAID = [
    resolve("/", [INT, ONE]),  # Spark divides by 0 in another way
    resolve("+", [M, M]),  # and gives decimals other digits
    resolve("UPPER", [S]),
    resolve("=", [A, A]),
    cast(LONG, t.IntType()),
    cast(S, t.IntType()),
    cast(S, t.VarCharType(3)),
    cast(INT, t.DataTypes.STRING()),
    resolve("+", [resolve("ABS", [INT]), ONE]),  # one part is enough
]


@pytest.mark.parametrize(("rex", "text"), SAID, ids=str)
def test_what_spark_means_the_same_by_is_said_in_its_words(rex: Rex, text: str) -> None:
    assert text_of(rex, NAMES) == text


@pytest.mark.parametrize("rex", UNSAID, ids=str)
def test_everything_else_has_no_words(rex: Rex) -> None:
    assert text_of(rex, NAMES) is None


def agg(function: str, column: int | None, kind: t.DataType, **more: object) -> AggregateCall:
    return AggregateCall(function, () if column is None else (column,), kind, **more)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (agg("COUNT", None, t.BigIntType()), "count(1)"),
        (agg("COUNT", 3, t.BigIntType(), distinct=True, filter=4), "count(DISTINCT s) FILTER (WHERE b)"),
        (agg("SUM", 0, t.IntType()), "CAST(sum(i) AS INT)"),
        (agg("AVG", 0, t.IntType()), "CAST(sum(i) div count(i) AS INT)"),
        (agg("SUM", 5, t.DecimalType(38, 2)), "CAST(sum(m) AS DECIMAL(38,2))"),
        (agg("AVG", 5, t.DecimalType(38, 6)), None),
        (agg("MAX", 3, t.VarCharType(10)), "max(s)"),
        (agg("COUNT", 2, t.BigIntType(), distinct=True), None),  # NaN
        (agg("LISTAGG", 3, t.DataTypes.STRING()), None),
        (agg("FIRST_VALUE", 0, t.IntType()), None),
    ],
)
def test_aggregates(call: AggregateCall, text: str | None) -> None:
    assert aggregate_text(call, NAMES, KINDS) == text


def test_over_windows() -> None:
    rank = agg("ROW_NUMBER", None, t.BigIntType())
    running = agg("SUM", 0, t.IntType())
    by, order = (3,), (SortKey(6, True, False),)
    assert over_texts(OverSpec(by, order, Frame(), (rank, running)), NAMES, KINDS) == [
        "CAST(row_number() OVER (PARTITION BY s ORDER BY ts DESC NULLS LAST) AS BIGINT)",
        "CAST(sum(i) OVER (PARTITION BY s ORDER BY ts DESC NULLS LAST RANGE BETWEEN UNBOUNDED PRECEDING AND CURRENT "
        "ROW) AS INT)",
    ]
    assert over_texts(OverSpec(by, order, Frame(False, -5000, 0), (running,)), NAMES, KINDS) is None
    assert over_texts(OverSpec(by, order, Frame(True, -2, 1), (running,)), NAMES, KINDS) == [
        "CAST(sum(i) OVER (PARTITION BY s ORDER BY ts DESC NULLS LAST ROWS BETWEEN 2 PRECEDING AND 1 FOLLOWING) AS INT)"
    ]
    assert over_texts(OverSpec((2,), (), Frame(), (running,)), NAMES, KINDS) is None
