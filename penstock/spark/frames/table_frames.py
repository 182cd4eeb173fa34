"""Results of queries as DataFrames of Spark."""

from __future__ import annotations

from typing import Any

from pyspark.sql import SparkSession

from penstock.spark.sessions.session import active_session


def frame_of(rows: Any) -> Any:
    """A pandas DataFrame as one of the active Spark session."""
    return (active_session() or SparkSession.builder.getOrCreate()).createDataFrame(rows)
