"""Spark sessions for the state processor: with RDDs, or over Spark Connect with DataFrames of pickled values."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from typing import Any, Protocol

from penstock.base.pickling import dumps
from penstock.spark.sessions.connect_session import check_stages, is_connect

COLUMN = "value BINARY"
MOST_TOGETHER = 1024
"""Most values in a batch that a task returns."""
Function = Callable[[Any], Any]


class Session(Protocol):
    """The operations of a Spark session that savepoints need. Functions run in tasks."""

    def map(self, items: Sequence[Any], function: Function) -> list[Any]:
        """Return the function's results in the order of the items. Every item has a task of its own."""

    def frame(self, items: Sequence[Any], function: Callable[[Any], Iterable[Any]], schema: Any) -> Any:
        """Return a DataFrame of the rows that the function makes of the items."""

    def regroup(
        self,
        frame: Any,
        address: Callable[[Iterable[Any]], Iterable[tuple[int, Any]]],
        write: Callable[[int, Iterable[tuple[int, Any]]], Iterable[Any]],
        slots: int,
    ) -> list[Any]:
        """Send the rows of a DataFrame to slots, and return the results of `write` there.

        `address` turns rows into pairs of a slot and a value. `write` gets a slot and its pairs.
        """


def session_of(spark: Any) -> Session:
    """Return the state processor's view of a Spark session."""
    return ConnectSession(spark) if is_connect(spark) else ClassicSession(spark)


class ClassicSession:
    """A session with a SparkContext."""

    def __init__(self, spark: Any) -> None:
        self._spark = spark

    def _shares(self, items: Sequence[Any]) -> Any:
        return self._spark.sparkContext.parallelize(items, max(len(items), 1))

    def map(self, items: Sequence[Any], function: Function) -> list[Any]:
        return list(self._shares(items).map(function).collect())

    def frame(self, items: Sequence[Any], function: Callable[[Any], Iterable[Any]], schema: Any) -> Any:
        return self._spark.createDataFrame(self._shares(items).flatMap(function), schema, verifySchema=False)

    def regroup(
        self,
        frame: Any,
        address: Callable[[Iterable[Any]], Iterable[tuple[int, Any]]],
        write: Callable[[int, Iterable[tuple[int, Any]]], Iterable[Any]],
        slots: int,
    ) -> list[Any]:
        owned = frame.rdd.mapPartitions(address).partitionBy(slots, itself)
        return list(owned.mapPartitionsWithIndex(write).collect())


class ConnectSession:
    """A session of Spark Connect."""

    def __init__(self, spark: Any) -> None:
        self._spark = spark

    def _shares(self, items: Sequence[Any], function: Callable[[Any], Iterable[Any]]) -> Any:
        def run(batches: Iterator[Any]) -> Iterator[Any]:
            numbers = (number for batch in batches for number in batch.column(0).to_pylist())
            return pack_values(made for number in numbers for made in function(items[number]))

        return self._spark.range(0, len(items), 1, max(len(items), 1)).mapInArrow(run, COLUMN)

    def map(self, items: Sequence[Any], function: Function) -> list[Any]:
        return [pickle.loads(row.value) for row in self._shares(items, lambda item: [function(item)]).collect()]

    def frame(self, items: Sequence[Any], function: Callable[[Any], Iterable[Any]], schema: Any) -> Any:
        """Unpickle rows in a plain Python function, so that Spark converts them like the rows of an RDD."""
        from pyspark.sql.functions import udf

        row = udf(from_pickle, schema, useArrow=False)
        return self._shares(items, function).select(row("value").alias("row")).select("row.*")

    def regroup(
        self,
        frame: Any,
        address: Callable[[Iterable[Any]], Iterable[tuple[int, Any]]],
        write: Callable[[int, Iterable[tuple[int, Any]]], Iterable[Any]],
        slots: int,
    ) -> list[Any]:
        from pyspark.sql.functions import struct, udf

        check_stages(self._spark, "the state processor")

        def address_rows(batches: Iterator[Any]) -> Iterator[Any]:
            return pack_for_slots(address(unpack_values(batches, 0)))

        def write_values(batches: Iterator[Any]) -> Iterator[Any]:
            from pyspark import TaskContext

            context = TaskContext.get()
            assert context is not None
            slot = context.partitionId()
            return pack_values(write(slot, ((slot, value) for value in unpack_values(batches, 1))))

        row = udf(to_pickle, "BINARY", useArrow=False)
        rows = frame.select(row(struct("*")).alias("value")).mapInArrow(address_rows, f"slot INT, {COLUMN}")
        found = rows.repartitionById(slots, "slot").mapInArrow(write_values, COLUMN).collect()
        return [pickle.loads(row.value) for row in found]


def itself(slot: int) -> int:
    """Return the slot that a pair goes to. Spark's shuffle calls this."""
    return slot


def from_pickle(value: bytes) -> Any:
    """Return a value that another task has pickled. Spark requires a plain function."""
    return pickle.loads(value)


def to_pickle(value: Any) -> bytes:
    """Return the pickled bytes of a row."""
    return pickle.dumps(value)


def unpack_values(batches: Iterator[Any], column: int) -> Iterator[Any]:
    """Yield the values in a column of batches."""
    for batch in batches:
        for value in batch.column(column):
            yield pickle.loads(value.as_buffer())


def together(values: Iterable[Any]) -> Iterator[list[Any]]:
    """Yield lists of values, each no longer than a batch may be."""
    left = iter(values)
    while some := list(islice(left, MOST_TOGETHER)):
        yield some


def pack_values(values: Iterable[Any]) -> Iterator[Any]:
    """Yield batches of values."""
    import pyarrow

    for some in together(values):
        yield pyarrow.RecordBatch.from_pydict({"value": pyarrow.array(map(dumps, some), pyarrow.binary())})


def pack_for_slots(pairs: Iterable[tuple[int, Any]]) -> Iterator[Any]:
    """Yield batches of values with the slots that they go to."""
    import pyarrow

    for some in together(pairs):
        slots = pyarrow.array([slot for slot, _ in some], pyarrow.int32())
        values = pyarrow.array([dumps(value) for _, value in some], pyarrow.binary())
        yield pyarrow.RecordBatch.from_pydict({"slot": slots, "value": values})
