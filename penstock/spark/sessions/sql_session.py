"""The sessions in which table queries run. They share the context of the user's session, but not its options."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import redirect_stdout, suppress
from io import StringIO
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from pyspark.errors import AnalysisException, ParseException
from pyspark.sql import SparkSession
from pyspark.sql.functions import expr

from penstock.spark.sessions.connect_session import clone, is_connect, parallelism_of
from penstock.spark.sessions.versions import frame_of_arrow_table, options_of

if TYPE_CHECKING:
    import pyarrow
    from pyspark.sql import Column, DataFrame

_MEANT = {
    "spark.sql.ansi.enabled": "false",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.caseSensitive": "true",
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
    "spark.sql.execution.arrow.useLargeVarTypes": "false",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "65536",
}
"""Options on which expressions rely: integers that wrap around, times in UTC, case-sensitive names."""
REFUSALS = (AnalysisException, ParseException)
"""Errors that Spark raises for a DataFrame that it cannot analyse."""
_PARTITIONS = "spark.sql.shuffle.partitions"
_derived: WeakKeyDictionary[SparkSession, SparkSession] = WeakKeyDictionary()


def query_session(spark: SparkSession) -> SparkSession:
    """Return a session on the same context, with the same options except those that change the meaning of queries."""
    found = _derived.get(spark)
    if found is None:
        found = _derived[spark] = clone(spark) if is_connect(spark) else spark.newSession()
    given = {name: value for name, value in options_of(spark).items() if name.startswith("spark.sql.")}
    if is_on_one_machine(spark):
        given.setdefault(_PARTITIONS, str(default_parallelism(spark)))
    for name, value in {**given, **_MEANT}.items():
        with suppress(Exception):  # some options can only be set before there is a session, and all sessions share them
            found.conf.set(name, value)
    return found


def is_on_one_machine(spark: SparkSession) -> bool:
    """Return True if this process and Spark's tasks are on one machine. For Spark Connect, this is unknown."""
    return not is_connect(spark) and spark.sparkContext.master.startswith("local")


def default_parallelism(spark: SparkSession) -> int:
    """Return the number of tasks that Spark makes for data without partitions of their own."""
    return (parallelism_of(spark) or 1) if is_connect(spark) else spark.sparkContext.defaultParallelism


def check_translation(frame: DataFrame) -> None:
    """Raise one of REFUSALS if Spark cannot analyse a DataFrame.

    A classic session does so itself; a Connect server must be asked.
    """
    if is_connect(frame.sparkSession):
        frame.schema  # noqa: B018 - asks the server


def frame_of_table(session: SparkSession, table: pyarrow.Table, schema: str) -> DataFrame:
    """Return a DataFrame of a table in memory. Make the user's session the active one again afterwards."""
    if is_connect(session):
        return frame_of_arrow_table(session, table, schema)
    before = SparkSession.getActiveSession() or SparkSession.builder.getOrCreate()
    try:
        return frame_of_arrow_table(session, table, schema)
    finally:
        before.createDataFrame([], "nothing INT")


def column(text: str) -> Column:
    """Return a column of an expression in Spark SQL."""
    return expr(text)


def map_partitions(frame: DataFrame, task: Callable[[Any], Any], schema: str) -> DataFrame:
    """Return a DataFrame of a task's results for the batches of each partition."""

    def run(batches: Any) -> Any:
        return task(batches)

    return frame.mapInArrow(run, schema)


def physical_plan(frame: DataFrame) -> str:
    """Return Spark's physical plan of a DataFrame."""
    with redirect_stdout(StringIO()) as said:
        frame.explain()
    return said.getvalue().removeprefix("== Physical Plan ==").strip()
