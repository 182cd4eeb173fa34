"""Random queries over streams in which anything dies: what is left at their end, Spark SQL finds, too."""

from __future__ import annotations

import datetime
import logging
from collections import Counter
from collections.abc import Iterator
from random import Random
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from penstock.common import RowKind, Types
from penstock.datastream import DataStream, EmbeddedRocksDBStateBackend, StreamExecutionEnvironment
from penstock.spark.sessions.session import session
from penstock.table import Schema, StreamTableEnvironment
from penstock.testing import pause, scripted
from penstock.testing.crashes import Outcome, StoreSink, crash_point, simulate
from tests.crash.random_sql import DISORDER, START, START_MS, RandomSql

pytestmark = [pytest.mark.spark, pytest.mark.timeout(3600)]
SEEDS = 44
MORE = 616
TYPES = Types.ROW_NAMED(
    ["id", "k", "n", "t", "ts"], [Types.LONG(), Types.STRING(), Types.LONG(), Types.LONG(), Types.SQL_TIMESTAMP()]
)
KINDS = (pa.int64(), pa.string(), pa.int64(), pa.int64())


@pytest.fixture(scope="module")
def spark() -> Iterator[SparkSession]:
    options = {"spark.sql.shuffle.partitions": "1", "spark.ui.enabled": "false"}
    made = session("local[2]", "what streams leave", options)
    logging.disable(logging.WARNING)
    yield made
    logging.disable(logging.NOTSET)
    made.stop()


# --- a stream ---
def passed(row: Any) -> Any:
    crash_point("a row passes")
    return row


def view(t_env: StreamTableEnvironment, stream: DataStream, name: str) -> None:
    schema = Schema.new_builder().column("id", "BIGINT").column("k", "STRING").column("n", "BIGINT")
    schema = schema.column("t", "BIGINT").column("ts", "TIMESTAMP(3)")
    schema = schema.watermark("ts", f"ts - INTERVAL '{DISORDER}' SECOND")
    t_env.create_temporary_view(name, t_env.from_data_stream(stream, schema.build()))


class Job:
    """The query of a seed as a program. Every driver that follows another one has another parallelism.

    Rows are dealt out to subtasks, and so lose their order, but for those of versions.
    """

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.sql = RandomSql(seed)
        self.drivers = 0

    def build(self, env: StreamExecutionEnvironment) -> None:
        env.set_parallelism((1, 3, 2)[(self.seed + self.drivers) % 3])
        env.set_max_parallelism(16)
        self.drivers += 1
        if self.seed % 4 == 0:
            env.set_state_backend(EmbeddedRocksDBStateBackend())
        t_env = StreamTableEnvironment.create(env)
        chance = Random(self.seed)
        for name, rows in self.sql.tables.items():
            script = [step for row in rows for step in ((row, pause()) if chance.random() < 0.2 else (row,))]
            stream = scripted(env, *script, type_info=TYPES).uid(name).map(passed, TYPES).uid(f"{name} passes")
            view(t_env, stream.set_parallelism(1) if self.sql.asked.view else stream, name)
        if self.sql.asked.view is not None:
            t_env.execute_sql(self.sql.asked.view)
        found = t_env.to_changelog_stream(t_env.sql_query(self.sql.asked.stream))
        found.sink_to(StoreSink("main")).uid("sink")


def left(outcome: Outcome) -> Counter[Any]:
    """What is left of the changes that came out. They may be out of order, since sinks commit by themselves."""
    found: Counter[Any] = Counter()
    for row in outcome.store.visible("main"):
        adds = row.get_row_kind() in {RowKind.INSERT, RowKind.UPDATE_AFTER}
        found[tuple(map(as_number, row))] += 1 if adds else -1
    return Counter({row: count for row, count in found.items() if count})


def as_number(value: Any) -> Any:
    if isinstance(value, datetime.datetime):
        return START_MS + (value - START) // datetime.timedelta(milliseconds=1)
    return value


# --- Spark ---
def of_spark(spark: SparkSession, sql: RandomSql) -> Counter[Any]:
    for name, rows in sql.tables.items():
        columns = [pa.array([row[index] for row in rows], kind) for index, kind in enumerate(KINDS)]
        spark.createDataFrame(pa.table(columns, names=["id", "k", "n", "t"])).createOrReplaceTempView(name)
    return Counter(tuple(row) for row in spark.sql(sql.asked.spark).collect())


def check(spark: SparkSession, seed: int) -> Outcome:
    job = Job(seed)
    asked = job.sql.asked
    wanted = of_spark(spark, job.sql)
    whole = simulate(job.build, seed)
    assert left(whole) == wanted, f"seed {seed}, {asked.name}, nothing died: {asked.stream}"
    died = simulate(job.build, seed, steps=whole.steps)
    assert left(died) == wanted, f"seed {seed}, {asked.name}, {died.crashes}, {died.settings}: {asked.stream}"
    return died


def test_what_is_left_is_what_spark_finds(spark: SparkSession) -> None:
    outcomes = [check(spark, seed) for seed in range(SEEDS)]
    assert sum(len(outcome.crashes) for outcome in outcomes) > SEEDS / 2
    assert any(outcome.drivers > 1 for outcome in outcomes)


@pytest.mark.soak
@pytest.mark.parametrize("first", range(SEEDS, MORE, 44))
def test_with_more_seeds(spark: SparkSession, first: int) -> None:
    for seed in range(first, first + 44):
        check(spark, seed)
