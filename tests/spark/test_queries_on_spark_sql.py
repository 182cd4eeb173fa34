"""BATCH queries on Spark SQL: recorded results, what both sides mean by an expression, sinks, errors, explanations."""

from __future__ import annotations

import datetime
import json
import logging
import math
import os
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from penstock.errors import JobFailed, TableException
from penstock.spark.sessions.session import session
from penstock.spark.sessions.sql_session import frame_of_table, query_session
from penstock.spark.sessions.versions import arrow_table_of
from penstock.spark.sql.batch_transport import declare_columns, pack_batch
from penstock.spark.sql.spark_expressions import text_of
from penstock.table import DataTypes, EnvironmentSettings, TableEnvironment
from penstock.table.expression.function_declarations import udf
from penstock.table.functions import compile_rex, resolve
from penstock.table.functions.moment import Moment
from penstock.table.logical.nodes import Column
from penstock.table.logical.rex import InputRef, Literal, Rex
from penstock.table.types import data_types as t
from penstock.table.types.arrow_forms import array_of, arrow_schema
from tests.spark.conftest import REMOTE
from tests.table.test_recorded import RECORDED, harness

EXPECTED = {"cases": "expected.json", "engine_cases": "engine_expected.json", "sql_cases": "sql_expected.json"}
"""Files of recorded cases."""
SAMPLE = {
    "cases": (
        "casts_between_types",
        "aggregate_result_types",
        "sums_of_small_integers_wrap",
        "rollup_and_cube",
        "collect_and_array_agg",
        "window_aggregate_in_batch_mode",
        "batch_over_ranks_and_frames",
        "not_in_with_null_matches_nothing",
        "cross_join_and_self_join",
        "intersect_and_except",
        "order_by_places_nulls",
        "offset_and_fetch",
        "to_pandas_and_from_pandas",
    ),
    "engine_cases": (
        "a_grouping_ids",
        "n_collect_unnest",
        "u_pandas_udaf_batch",
        "c_batch_joins_all",
        "c_batch_window_join",
        "c_batch_interval",
        "c_batch_dedup",
        "b_order_batch_mixed",
    ),
    "sql_cases": ("q_scalar_noneq", "q_union_types", "q_over_firstlast", "q_full_using"),
}
"""One case for each relation and each way that it goes; all others are the same with other expressions."""


@pytest.fixture(scope="module")
def spark() -> Iterator[SparkSession]:
    made = session("local[2]", "queries", {"spark.sql.shuffle.partitions": "2"})
    yield made
    made.stop()


@pytest.fixture
def t_env(spark: SparkSession, tmp_path: Path) -> TableEnvironment:
    made = TableEnvironment.create(EnvironmentSettings.in_batch_mode())
    if REMOTE in os.environ:
        made.get_config().set("table.exec.batch.staging-directory", f"{tmp_path}/staging")
    return made


@pytest.mark.parametrize(("file", "case"), [(file, case) for file, cases in SAMPLE.items() for case in cases])
def test_recorded_results(spark: SparkSession, caplog: pytest.LogCaptureFixture, file: str, case: str) -> None:
    expected = json.loads((RECORDED / EXPECTED[file]).read_text())
    with caplog.at_level(logging.INFO, "penstock.table"):
        wrong, _ = harness(file).differences(case, expected[case])
    assert wrong is None, wrong
    assert set(caplog.messages) == {"a query runs on Spark SQL"}


# --- expressions mean the same ---
YEARS = (1, 1582, 1900, 1970, 2024, 9999)
EDGES: dict[str, tuple[t.DataType, list[Any]]] = {
    "i": (t.IntType(), [None, 0, 1, -1, 2**31 - 1, -(2**31), 7]),
    "l": (t.BigIntType(), [0, None, 2**63 - 1, -(2**63), 1, -1, 7]),
    "d": (t.DoubleType(), [math.nan, -0.0, None, math.inf, -math.inf, 1.5, 0.0]),
    "e": (t.DoubleType(), [math.nan, 0.0, 1.0, math.nan, None, 1.5, math.inf]),
    "s": (t.DataTypes.STRING(), ["", "a", None, "Z", "ä", "\U0001f600", "a\x00b"]),
    "u": (t.DataTypes.STRING(), ["a", "a", "b", None, "ä", "\uffff", "a"]),
    "b": (t.BooleanType(), [True, False, None, True, False, None, True]),
    "c": (t.BooleanType(), [True, True, True, None, None, None, False]),
    "m": (t.DecimalType(6, 2), [*map(Decimal, ["0", "-1.50", "9999.99"]), None, *map(Decimal, ["1", "2", "3"])]),
    "day": (t.DateType(), [None, *(datetime.date(y, 1, 1) for y in YEARS)]),
    "ts": (
        t.TimestampType(3),
        [datetime.datetime(y, 3, 1, 2, 3, 4, 5000) for y in (1, 1900, 1970, 2024, 9999)] + [None, None],
    ),
    "at": (t.TimeType(3), [datetime.time(0, 0), None, datetime.time(23, 59, 59, 999000), *[datetime.time(1, 2)] * 4]),
}
COLUMNS = tuple(Column(name, kind) for name, (kind, _) in EDGES.items())
PAIRS = [
    ("i", "i"),
    ("i", "l"),
    ("d", "e"),
    ("s", "u"),
    ("b", "c"),
    ("m", "m"),
    ("day", "day"),
    ("ts", "ts"),
    ("at", "at"),
]


def ref(name: str) -> InputRef:
    return InputRef(EDGES[name][0], list(EDGES).index(name))


def expressions() -> list[Rex]:
    """Everything that has words in Spark, over values at which meanings part."""
    found: list[Rex] = []
    for one, other in PAIRS:
        literal = Literal(EDGES[other][0].not_null(), EDGES[other][1][1 if EDGES[other][1][1] is not None else 0])
        for word in ("=", "<>", "<", "<=", ">", ">=", "IS DISTINCT FROM", "IS NOT DISTINCT FROM"):
            found += [resolve(word, [ref(one), right]) for right in (ref(other), literal)]
        found += [resolve("IS NULL", [ref(one)]), resolve("COALESCE", [ref(one), ref(other)])]
        found.append(resolve("CASE", [ref("b"), ref(one), ref(other)]))
        found.append(resolve("IN", [ref(one), literal, Literal(EDGES[one][0], None)]))
    for word in ("+", "-", "*"):
        found += [
            resolve(word, [ref(one), ref(other)]) for one, other in (("i", "i"), ("i", "l"), ("l", "l"), ("d", "e"))
        ]
    found += [resolve("NEGATE", [ref(one)]) for one in ("i", "l", "d")]
    found += [resolve(word, [ref("b"), ref("c")]) for word in ("AND", "OR")]
    found += [resolve(word, [ref("b")]) for word in ("NOT", "IS TRUE", "IS NOT TRUE", "IS FALSE", "IS NOT UNKNOWN")]
    return found


def test_spark_means_the_same_by_the_words_it_is_given(spark: SparkSession) -> None:
    schema = arrow_schema(COLUMNS)
    batch = pa.RecordBatch.from_arrays([array_of(values, kind) for kind, values in EDGES.values()], schema=schema)
    names = [column.name for column in COLUMNS]
    frame = frame_of_table(
        query_session(spark), pa.Table.from_batches([pack_batch(batch, names)]), declare_columns(names, schema)
    ).coalesce(1)
    said = [(rex, text) for rex in expressions() if (text := text_of(rex, names)) is not None]
    assert len(said) > 150
    table = arrow_table_of(frame.selectExpr(*(f"{text} AS x{index}" for index, (_, text) in enumerate(said))))
    for index, (rex, text) in enumerate(said):
        wanted = pack_batch(pa.record_batch([compile_rex(rex)(batch, Moment())], names=["x"]), ["x"]).column(0)
        found = table.column(index).combine_chunks()
        assert list(map(repr, found.to_pylist())) == list(map(repr, wanted.to_pylist())), text


# --- tables and sinks ---
def files(path: Path, rows: int = 1000, parts: int = 3) -> str:
    path.mkdir()
    for part in range(parts):
        ids = list(range(part, rows, parts))
        columns = {"id": pa.array(ids, pa.int64()), "k": [f"k{i % 7}" for i in ids], "v": [i / 2 for i in ids]}
        pq.write_table(pa.table(columns), path / f"part-{part}.parquet")
    return str(path)


def table(t_env: TableEnvironment, name: str, path: str, kind: str = "parquet") -> None:
    t_env.execute_sql(
        f"CREATE TABLE {name} (id BIGINT, k STRING, v DOUBLE) "
        f"WITH ('connector' = 'filesystem', 'path' = '{path}', 'format' = '{kind}')"
    )


GROUPED = "SELECT k, COUNT(*) AS n, SUM(id) AS s, MAX(v) AS m FROM t WHERE id >= 10 GROUP BY k"


def test_files_are_read_by_spark_and_a_sink_gets_every_row_once(t_env: TableEnvironment, tmp_path: Path) -> None:
    table(t_env, "t", files(tmp_path / "in"))
    plan = t_env.explain_sql(GROUPED)
    assert "Runs on Spark SQL" in plan and "FileScan parquet" in plan and "PushedFilters" in plan
    assert "MapInArrow" not in plan
    t_env.execute_sql(
        f"CREATE TABLE o (k STRING, n BIGINT, s BIGINT, m DOUBLE) "
        f"WITH ('connector' = 'filesystem', 'path' = '{tmp_path}/out', 'format' = 'json')"
    )
    before = set(os.listdir(os.environ.get("TMPDIR", "/tmp")))
    t_env.execute_sql(f"INSERT INTO o {GROUPED}").wait()
    left = {name for name in set(os.listdir(os.environ.get("TMPDIR", "/tmp"))) - before if "staged" in name}
    assert not left
    wanted = {}
    for i in range(10, 1000):
        n, s, m = wanted.get(f"k{i % 7}", (0, 0, 0.0))
        wanted[f"k{i % 7}"] = (n + 1, s + i, max(m, i / 2))
    lines = [json.loads(line) for file in (tmp_path / "out").iterdir() for line in file.read_text().splitlines()]
    assert sorted((row["k"], row["n"], row["s"], row["m"]) for row in lines) == sorted(
        (k, *values) for k, values in wanted.items()
    )
    read = "SELECT SUM(s) AS a, SUM(id) AS b FROM (SELECT s, n AS id FROM o)"
    with t_env.sql_query(read).execute().collect() as rows:
        assert [tuple(row) for row in rows] == [(sum(range(10, 1000)), 990)]


def test_an_insert_keeps_the_constraints_of_its_table(t_env: TableEnvironment, tmp_path: Path) -> None:
    (tmp_path / "in.json").write_text('{"a":1,"b":"abcdef","c":"x","r":{"x":null}}\n{"a":2,"b":"ab","c":"y"}\n')
    for name, path in (("src", tmp_path / "in.json"), ("snk", tmp_path / "out")):
        t_env.execute_sql(
            f"CREATE TABLE {name} (a INT, b VARCHAR(4), c CHAR(4), r ROW<x INT NOT NULL>) WITH ('format' = 'json', "
            f"'connector' = 'filesystem', 'path' = '{path}')"
        )
    t_env.get_config().set("table.exec.sink.type-length-enforcer", "TRIM_PAD")
    assert "Runs on Spark SQL" in t_env.explain_sql("INSERT INTO snk SELECT * FROM src ORDER BY a")
    t_env.execute_sql("INSERT INTO snk SELECT * FROM src ORDER BY a").wait()
    lines = [line for path in (tmp_path / "out").glob("part-*") for line in path.read_text().splitlines()]
    first, second = {"a": 1, "b": "abcd", "c": "x   ", "r": {"x": None}}, {"a": 2, "b": "ab", "c": "y   ", "r": None}
    assert [json.loads(line) for line in lines] == [first, second]


def test_an_insert_keeps_the_order_of_its_query(t_env: TableEnvironment, tmp_path: Path) -> None:
    table(t_env, "t", files(tmp_path / "in"))
    table(t_env, "o", str(tmp_path / "out"), "csv")
    t_env.execute_sql("INSERT INTO o SELECT id, k, v FROM t ORDER BY id DESC").wait()
    (written,) = (tmp_path / "out").iterdir()
    assert [int(line.split(",")[0]) for line in written.read_text().splitlines()] == list(range(999, -1, -1))


def test_a_dataframe_of_a_query(t_env: TableEnvironment, spark: SparkSession) -> None:
    spark.conf.set("spark.sql.ansi.enabled", "true")  # Spark's default, but for Spark 3.5
    found = t_env.sql_query("SELECT x, UPPER(y) AS `b c` FROM (VALUES (1, 'a'), (2, 'b')) AS v(x, y)").to_spark()
    assert found.dtypes == [("x", "int"), ("b c", "string")]
    assert sorted(map(tuple, found.collect())) == [(1, "A"), (2, "B")]
    assert spark.conf.get("spark.sql.ansi.enabled") == "true"
    assert SparkSession.getActiveSession() is not found.sparkSession


# --- what our own functions do there ---
def test_functions_of_the_program_run_in_spark_and_their_errors_come_home(t_env: TableEnvironment) -> None:
    def inverse(x: int) -> int:
        return 100 // x

    t_env.create_temporary_system_function("inverse", udf(inverse, result_type=DataTypes.BIGINT()))
    t_env.create_temporary_view("v", t_env.from_elements([(1,), (2,), (0,)], ["x"]))
    with t_env.sql_query("SELECT inverse(x) AS y FROM v WHERE x > 0").execute().collect() as rows:
        assert sorted(row[0] for row in rows) == [50, 100]
    with pytest.raises(JobFailed, match=r"the function inverse failed for \(0\): ZeroDivisionError") as raised:
        list(t_env.sql_query("SELECT inverse(x) AS y FROM v").execute().collect())
    assert isinstance(raised.value, TableException)


# --- choosing ---
def test_an_explanation_says_what_runs_a_query(t_env: TableEnvironment) -> None:
    query = "SELECT x, COUNT(*) AS n FROM (VALUES (1), (2)) AS v(x) GROUP BY x"
    assert "\nRuns on Spark SQL\n" in t_env.explain_sql(query)
    t_env.get_config().set("table.exec.batch.engine", "penstock")
    assert "\nRuns on Penstock's operators: 'table.exec.batch.engine' is 'penstock'\n" in t_env.explain_sql(query)
    with t_env.sql_query(query).execute().collect() as rows:
        assert sorted(map(tuple, rows)) == [(1, 1), (2, 1)]
