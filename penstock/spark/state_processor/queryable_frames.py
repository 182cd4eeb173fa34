"""Answers of queryable state as Spark DataFrames."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import reduce
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from penstock.engine.queryable.query_requests import QueryAnswer
from penstock.errors import QueryError
from penstock.spark.state_processor.state_columns import Cell, Nothing, column


def to_spark_data_frame(spark: SparkSession, answers: QueryAnswer | Iterable[QueryAnswer]) -> DataFrame:
    """Return the found entries as a DataFrame with the columns key and value, for maps also map_key between them.

    `answers` is one answer, or its pages, which a client's `scan` yields. Values pass through this process.
    """
    pages = [answers] if isinstance(answers, QueryAnswer) else list(answers)
    if len({(page.name, page.kind, page.cut) for page in pages}) > 1:
        raise QueryError("these answers belong to several requests, but a DataFrame shows one state at one moment")
    mapped = bool(pages) and pages[0].kind == "map"
    names = ["key", "map_key", "value"] if mapped else ["key", "value"]
    rows = [row for page in pages for row in _rows(page, mapped)]
    cells: list[Cell] = reduce(_learn, rows, [Nothing() for _ in names])
    schema = StructType([column(name, cell) for name, cell in zip(names, cells, strict=True)])
    plain = [tuple(cell.plain(part) for cell, part in zip(cells, row, strict=True)) for row in rows]
    return spark.createDataFrame(plain, schema, verifySchema=False)


def _rows(answer: QueryAnswer, mapped: bool) -> Iterator[tuple[Any, ...]]:
    for entry in answer.entries:
        if entry.found and mapped:
            yield from ((entry.key, key, value) for key, value in entry.value.items())
        elif entry.found:
            yield entry.key, entry.value


def _learn(cells: list[Cell], row: tuple[Any, ...]) -> list[Cell]:
    return [cell.learn(part) for cell, part in zip(cells, row, strict=True)]
