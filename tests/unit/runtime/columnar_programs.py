"""A program whose records are columns up to a key_by, and the same program on values, for tests that compare them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from penstock.common import Row, Types
from penstock.datastream import DataStream, KeyedProcessFunction, StreamExecutionEnvironment
from penstock.datastream.state import ValueStateDescriptor
from penstock.engine.operators.functions.columnar_operator import ColumnsOperator
from penstock.engine.operators.operator import Operator, OperatorContext
from penstock.engine.operators.sources.source_operator import Budget, Reader, Source
from penstock.engine.records.columns import Columns
from penstock.engine.records.elements import Chunk, Receiver

READING = Types.ROW_NAMED(["sensor", "celsius"], [Types.STRING(), Types.DOUBLE()])
WARM = Types.ROW_NAMED(["sensor", "fahrenheit"], [Types.STRING(), Types.DOUBLE()])


def readings(count: int) -> list[Row]:
    return [Row(sensor=f"s{n * 7 % 5}", celsius=float(n % 13)) for n in range(count)]


@dataclass
class BatchSource(Source):
    """Readings as record batches, the nth of them at n seconds; a batch has as many rows as an epoch may read."""

    count: int
    rows_at_once: int = 7

    def reader(self, context: OperatorContext, position: Any = None) -> Reader:
        first = context.subtask if position is None else position
        return BatchReader(self, first, context.parallelism)

    def redistribute(self, positions: list[Any], parallelism: int) -> list[Any]:
        raise NotImplementedError


class BatchReader(Reader):
    """Every parallelism-th reading."""

    def __init__(self, source: BatchSource, first: int, step: int) -> None:
        self._source, self._next, self._step = source, first, step
        self._all = readings(source.count)

    def poll(self, output: Receiver, budget: Budget) -> int:
        most = min(self._source.rows_at_once, budget.records)
        numbers = range(self._next, self._source.count, self._step)[:most]
        self._next += len(numbers) * self._step
        self.finished = self._next >= self._source.count
        if numbers:
            output.chunk(Chunk.of(columns_of(numbers, self._all)))
            output.watermark(numbers[-1] * 1000)
        return len(numbers)

    def position(self) -> int:
        return self._next


def columns_of(numbers: range, rows: list[Row]) -> Columns:
    batch = pa.RecordBatch.from_pydict(
        {name: [rows[n][name] for n in numbers] for name in READING.get_field_names()},
        schema=pa.schema([("sensor", pa.string()), ("celsius", pa.float64())]),
    )
    return Columns(batch, pa.array([n * 1000 for n in numbers], pa.int64()))


def warm_in_columns(columns: Columns) -> Columns:
    warm = columns.filter(pc.greater(columns.batch["celsius"], 4.0))
    fahrenheit = pc.add(pc.multiply(warm.batch["celsius"], 1.8), 32.0)
    return warm.with_batch(pa.RecordBatch.from_arrays([warm.batch["sensor"], fahrenheit], ["sensor", "fahrenheit"]))


def warm_rows(rows: list[Row]) -> list[Row]:
    return [Row(sensor=row["sensor"], fahrenheit=row["celsius"] * 1.8 + 32.0) for row in rows if row["celsius"] > 4.0]


def warm_readings(env: StreamExecutionEnvironment, count: int, declared: bool = True) -> DataStream:
    """The source and an operator chained to it, both on columns."""
    source = env._source("Batches", BatchSource(count), READING if declared else None).uid("batches")
    return source.apply_operator("Warm", ColumnsOperator(warm_in_columns), WARM if declared else None)


class Total(KeyedProcessFunction):
    """Counts and sums per sensor."""

    def open(self, runtime_context: Any) -> None:
        self.total = runtime_context.get_state(ValueStateDescriptor("total"))

    def process_element(self, value: Row, ctx: Any) -> Any:
        count, total = self.total.value() or (0, 0.0)
        self.total.update((count + 1, total + value["fahrenheit"]))
        yield value["sensor"], count + 1, round(total + value["fahrenheit"], 6), ctx.timestamp()


def totals(count: int) -> list[Any]:
    """What `Total` says of every warm reading, worked out on values."""
    expected, held = [], {}
    for number, row in enumerate(readings(count)):
        for warm in warm_rows([row]):
            many, total = held.get(warm["sensor"], (0, 0.0))
            held[warm["sensor"]] = many + 1, total + warm["fahrenheit"]
            expected.append((warm["sensor"], many + 1, round(total + warm["fahrenheit"], 6), number * 1000))
    return expected


class Forms(Operator):
    """Tells for every chunk whether it came as columns."""

    def chunk(self, chunk: Chunk) -> None:
        self.emit(["columns" if chunk.columns is not None else "values"], None)
