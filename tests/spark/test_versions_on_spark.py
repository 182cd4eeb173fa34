"""The calls that depend on the version of Spark, pandas in queries, and executors with another Python."""

from __future__ import annotations

import datetime
import os
import subprocess
import sys
import textwrap
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from penstock.common import Row
from penstock.spark.sessions import versions
from penstock.spark.sessions.session import session
from penstock.spark.sessions.sql_session import frame_of_table, query_session
from penstock.table import DataTypes, EnvironmentSettings, TableEnvironment
from penstock.table.expression.function_declarations import udaf, udf

ROOT = Path(__file__).parents[2]
MOMENT = datetime.datetime(2024, 2, 29, 12, 0, 0, 123456)
SCHEMA = "n BIGINT, text STRING, price DECIMAL(10,2), at TIMESTAMP_NTZ, parts ARRAY<STRUCT<a: INT, b: STRING>>"
TABLE = pa.table(
    {
        "n": pa.array([1, None, 3], pa.int64()),
        "text": pa.array(["a", None, ""], pa.string()),
        "price": pa.array([Decimal("1.50"), None, Decimal("-2.25")], pa.decimal128(10, 2)),
        "at": pa.array([MOMENT, None, MOMENT], pa.timestamp("us")),
        "parts": pa.array(
            [[{"a": 1, "b": "x"}], None, []], pa.list_(pa.struct([("a", pa.int32()), ("b", pa.string())]))
        ),
    }
)


@pytest.fixture
def spark() -> SparkSession:
    return query_session(session("local[2]", "versions", {}, 2))


@pytest.fixture(params=["own calls", "calls of Spark 3.5"])
def calls(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """On newer versions of Spark, the calls that Spark 3.5 needs work too."""
    if request.param == "calls of Spark 3.5":
        monkeypatch.setattr(versions, "has_arrow_tables", lambda: False)


def test_arrow_tables_become_data_frames_and_come_back(spark, calls):
    table = pa.concat_tables([TABLE] * 4)
    frame = frame_of_table(spark, table, SCHEMA)
    assert versions.arrow_table_of(frame.coalesce(1)).to_pylist() == table.to_pylist()


def test_rows_keep_the_order_of_a_sorted_data_frame(spark, calls):
    frame = spark.range(0, 100_000, 1, 7).selectExpr("id", "id % 1000 AS k").orderBy("k", "id")
    rows = versions.arrow_table_of(frame)
    assert rows.column("id").to_pylist() == sorted(range(100_000), key=lambda n: (n % 1000, n))


def test_a_data_frame_without_rows(spark, calls):
    empty = frame_of_table(spark, TABLE.slice(0, 0), SCHEMA)
    assert empty.columns == TABLE.column_names
    assert versions.arrow_table_of(empty).num_rows == 0


def test_options_of_a_session(spark, calls):
    spark.conf.set("spark.sql.shuffle.partitions", "3")
    spark.conf.set("spark.sql.mine", "a = b, c")
    options = versions.options_of(spark)
    assert (options["spark.sql.shuffle.partitions"], options["spark.sql.mine"]) == ("3", "a = b, c")
    assert options["spark.sql.session.timeZone"] == "UTC"


@pytest.mark.parametrize("mode", ["streaming", "batch"])
def test_functions_of_pandas_get_none_for_null(mode):
    settings = EnvironmentSettings.new_instance()
    made = settings.in_batch_mode() if mode == "batch" else settings.in_streaming_mode()
    tables = TableEnvironment.create(made.build())
    loud = udf(lambda s: s.map(lambda x: "none" if x is None else x.upper()), result_type="STRING", func_type="pandas")
    length = udf(lambda s: s.str.len(), result_type=DataTypes.BIGINT(), func_type="pandas")
    same = udf(lambda s: s, result_type=DataTypes.STRING(), func_type="pandas")
    built_in = udf(lambda s: s.astype("string").str.lower(), result_type=DataTypes.STRING(), func_type="pandas")
    for name, function in {"loud": loud, "length": length, "same": same, "built_in": built_in}.items():
        tables.create_temporary_function(name, function)
    query = (
        "SELECT loud(s), length(s), same(s), built_in(s) FROM (VALUES ('ab'), (CAST(NULL AS STRING)), ('C')) AS t(s)"
    )
    with tables.sql_query(query).execute().collect() as rows:
        found = sorted(map(tuple, rows))
    assert found == [("AB", 2, "ab", "ab"), ("C", 1, "C", "c"), ("none", None, None, None)]


def test_an_aggregate_function_of_pandas_gets_none_for_null():
    tables = TableEnvironment.create(EnvironmentSettings.in_batch_mode())
    missing = udaf(lambda s: sum(x is None for x in s), result_type=DataTypes.BIGINT(), func_type="pandas")
    tables.create_temporary_function("missing", missing)
    query = "SELECT k, missing(s) FROM (VALUES (1, 'a'), (1, CAST(NULL AS STRING)), (2, 'b')) AS t(k, s) GROUP BY k"
    with tables.sql_query(query).execute().collect() as rows:
        assert sorted(map(tuple, rows)) == [(1, 1), (2, 0)]


def test_data_frames_of_pandas_go_in_and_come_out_with_none_for_null():
    import pandas

    tables = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
    given = pandas.DataFrame({"n": [1, 2, 3], "text": ["a", None, ""]})
    frame = tables.from_pandas(given).to_pandas().sort_values("n")
    assert frame.text.dtype == object
    assert list(frame.itertuples(index=False, name=None)) == [(1, "a"), (2, None), (3, "")]
    with tables.from_pandas(given).execute().collect() as rows:
        assert sorted(rows, key=lambda row: row[0]) == [Row(1, "a"), Row(2, None), Row(3, "")]


def test_streamed_rows_become_a_data_frame_of_spark():
    tables = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
    table = tables.sql_query("SELECT * FROM (VALUES (1, 'a'), (2, CAST(NULL AS STRING))) AS t(n, text)")
    frame = table.to_spark()
    assert sorted(map(tuple, frame.collect())) == [(1, "a"), (2, None)]


OTHER_PYTHON = """
from pyspark.sql import SparkSession
from penstock.datastream import StreamExecutionEnvironment

spark = SparkSession.builder.master("local[4]").config("spark.ui.enabled", "false").getOrCreate()
spark.sparkContext.pythonVer = "3.7"
env = StreamExecutionEnvironment.get_execution_environment()
env.set_parallelism(2)
env.from_collection([1]).print()
env.execute("other python")
"""


def test_executors_with_another_python_are_named(tmp_path):
    """Spark's workers compare their version with the one that the driver tells them."""
    program = tmp_path / "other_python.py"
    program.write_text(textwrap.dedent(OTHER_PYTHON))
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "PYSPARK_PYTHON": sys.executable}
    ended = subprocess.run(
        [sys.executable, str(program)], capture_output=True, text=True, env=environment, check=False, timeout=600
    )
    own = f"{sys.version_info[0]}.{sys.version_info[1]}"
    assert ended.returncode != 0
    # Spark, whose log is on in a session of the program's own, may still log the tasks that it has stopped.
    said = [line for line in ended.stderr.splitlines() if "ConfigurationError: " in line]
    assert said, ended.stderr[-3000:]
    assert f"is Python {own}." in said[-1]
    assert "PYSPARK_PYTHON" in said[-1]
