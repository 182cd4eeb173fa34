"""Sources that read DataFrames of Spark."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from penstock.common.types import Row
from penstock.connectors import source_api as base
from penstock.engine.operators.sources.readers import FedSource, IteratorEnumerator
from penstock.engine.operators.sources.source_operator import Enumerator


def data_frame_source(data_frame: Any) -> FedSource:
    """Return a source of a DataFrame's rows. The driver reads them by partition and distributes them over subtasks."""

    def enumerator() -> Enumerator:
        return IteratorEnumerator(_rows(data_frame))

    return FedSource(enumerator)


def streaming_frame_source(data_frame: Any, staging: str | None, trigger: dict[str, Any] | None) -> base.Source:
    """Return a source of a streaming DataFrame's rows, which Spark's own query stages."""
    from penstock.spark.frames.streaming_source import SparkStreamSource

    return SparkStreamSource(data_frame, staging, trigger)


def _rows(data_frame: Any) -> Iterator[Row]:
    names = list(data_frame.columns)
    for fields in data_frame.toLocalIterator():
        row = Row(*fields)
        row.set_field_names(names)
        yield row
