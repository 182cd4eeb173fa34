"""Programs in BATCH mode on Spark SQL: they give what Flink's sinks hold at the end of the stream."""

from __future__ import annotations

import logging
from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from penstock.spark.sessions.session import session
from tests.table.programs.batch import NAMES, expected_rows, result
from tests.table.programs.test_programs import script

__all__ = ["script"]
ON_OUR_OPERATORS = {"match": "a query runs on Penstock's operators: Match needs its input sorted by key"}
"""Programs that Spark SQL cannot express, and what is logged about them."""
SAMPLE = {
    *("having", "expand", "except", "over-changes", "rank-retract", "full-join-unequal", "window-join-full"),
    *("deduplicate-last", "correlate"),
}
"""Programs with operators of many kinds. All others are the same in other words."""


@pytest.fixture(scope="module")
def spark() -> Iterator[SparkSession]:
    made = session("local[2]", "programs", {"spark.sql.shuffle.partitions": "2", "spark.ui.enabled": "false"})
    yield made
    made.stop()


@pytest.mark.parametrize(
    "name", [name if name in SAMPLE else pytest.param(name, marks=pytest.mark.soak) for name in NAMES]
)
def test_a_program_on_spark_sql(spark: SparkSession, caplog: pytest.LogCaptureFixture, name: str) -> None:
    with caplog.at_level(logging.INFO, "penstock.table"):
        assert result(name, "spark") == expected_rows(name)
    assert set(caplog.messages) == {ON_OUR_OPERATORS.get(name, "a query runs on Spark SQL")}
