"""Spark DataFrames of query results."""

from __future__ import annotations

from typing import Any

from pyspark.sql import SparkSession

from penstock.spark.sessions.session import active_session


def frame_of(rows: Any) -> Any:
    """Return a DataFrame of the active Spark session with the rows of a pandas DataFrame."""
    return (active_session() or SparkSession.builder.getOrCreate()).createDataFrame(rows)
