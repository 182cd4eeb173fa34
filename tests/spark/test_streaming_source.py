"""A streaming DataFrame as a source: every row once, whatever fails on the way."""

import json
import subprocess
import sys
from collections import Counter
from datetime import datetime
from pathlib import Path

import pytest

from penstock.common import Configuration
from penstock.datastream import StreamExecutionEnvironment
from penstock.datastream.functions import MapFunction
from penstock.errors import ConnectorError
from penstock.spark.sessions import session
from tests.waiting import until

pytestmark = pytest.mark.spark
MOST_LINES = 150
"""Lines of standard error with one stack trace of Java; a query that fails prints more than a thousand."""
ROOT = Path(__file__).parents[2]
SCHEMA = "number INT, name STRING, at TIMESTAMP, parts ARRAY<INT>"


@pytest.fixture
def spark():
    return session.session("local[2]", "tests", {})


def put(folder, name, numbers):
    lines = [
        json.dumps({"number": n, "name": f"n{n}", "at": "2024-05-01T10:00:00Z", "parts": [n, n + 1]}) for n in numbers
    ]
    (folder / f".{name}").write_text("\n".join(lines))
    (folder / f".{name}").rename(folder / name)


def frame(spark, folder, per_batch=1):
    return spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", per_batch).json(str(folder))


def environment(parallelism=2, **options):
    made = Configuration()
    for name, value in options.items():
        made.set_string(name, value)
    return StreamExecutionEnvironment(made).set_parallelism(parallelism)


def test_a_query_that_takes_what_is_there_ends_with_it(spark, tmp_path):
    arriving, staging = tmp_path / "arriving", str(tmp_path / "staged")
    arriving.mkdir()
    for n in range(4):
        put(arriving, f"{n}.json", range(n * 10, n * 10 + 10))
    stream = environment().from_spark(frame(spark, arriving), staging_directory=staging, trigger={"availableNow": True})
    with stream.execute_and_collect() as results:
        rows = list(results)
    assert sorted(row.number for row in rows) == list(range(40))
    row = next(row for row in rows if row.number == 7)
    assert (row.name, row.parts) == ("n7", [7, 8])
    assert row.at == datetime(2024, 5, 1, 10)


class FailingAt(MapFunction):
    """Fails the first time it meets a number, in this job."""

    def __init__(self, folder, number):
        self.marker = folder / "failed"
        self.number = number

    def map(self, value):
        if value.number == self.number and not self.marker.exists():
            self.marker.touch()
            raise RuntimeError("once")
        return value.number


def test_rows_arrive_once_through_a_restart_and_what_was_read_is_deleted(spark, tmp_path):
    arriving, staging = tmp_path / "arriving", tmp_path / "staged"
    arriving.mkdir()
    put(arriving, "0.json", range(10))
    env = environment(
        **{
            "execution.checkpointing.interval": "100 ms",
            "restart-strategy.type": "fixed-delay",
            "restart-strategy.fixed-delay.attempts": "3",
            "restart-strategy.fixed-delay.delay": "10 ms",
        }
    )
    source = env.from_spark(frame(spark, arriving), staging_directory=str(staging)).uid("frame")
    found = []
    with source.map(FailingAt(tmp_path, 33)).execute_and_collect() as results:
        for n in range(1, 6):
            put(arriving, f"{n}.json", range(n * 10, n * 10 + 10))
        for number in results:
            found.append(number)
            if len(found) == 60:
                break
        until(lambda: not list(staging.rglob("*.parquet")), every=0.1)
    assert (tmp_path / "failed").exists()
    assert Counter(found) == Counter(range(60))


def test_an_error_of_the_query_is_the_errors_of_the_source(spark, tmp_path):
    arriving, staging = tmp_path / "arriving", str(tmp_path / "staged")
    arriving.mkdir()
    put(arriving, "0.json", range(3))
    bad = frame(spark, arriving).selectExpr("CAST(raise_error('no such thing') AS STRING) AS x")
    stream = environment().from_spark(bad, staging_directory=staging, trigger={"availableNow": True})
    with pytest.raises(ConnectorError, match=r"Spark Source .*no such thing"):
        list(stream.execute_and_collect())


CLOSED_EARLY = """
from pyspark.sql import SparkSession
from penstock.datastream import StreamExecutionEnvironment

spark = SparkSession.builder.master("local[4]").config("spark.ui.enabled", "false").getOrCreate()
frame = spark.readStream.format("rate").option("rowsPerSecond", 5).load()
env = StreamExecutionEnvironment.get_execution_environment().set_parallelism(2)
results = env.from_spark(frame).map(lambda row: row.value).execute_and_collect()
print(next(results))
results.close()
"""


def test_results_that_are_closed_early_end_spark_s_query_quietly(tmp_path):
    program = tmp_path / "closed_early.py"
    program.write_text(CLOSED_EARLY)
    done = subprocess.run(
        [sys.executable, str(program)], capture_output=True, text=True, check=False, timeout=500, cwd=ROOT
    )
    assert (done.returncode, done.stdout.strip().isdecimal()) == (0, True), done.stdout + done.stderr
    assert "ERROR" not in done.stderr
    # Between two batches Spark may still be interrupted while it begins the next one, and say so once.
    assert len(done.stderr.splitlines()) < MOST_LINES, done.stderr
