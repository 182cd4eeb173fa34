"""The connector 'datagen': generated rows, as columns. A row depends only on its number."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa

from penstock.datastream.data_stream import DataStream
from penstock.datastream.stream_execution_environment import StreamExecutionEnvironment
from penstock.engine.operators.operator import OperatorContext
from penstock.engine.operators.sources.readers import dealt_out
from penstock.engine.operators.sources.source_operator import Budget, Reader, ReadLimits, Source
from penstock.engine.records.columns import Columns as Batch
from penstock.engine.records.elements import Chunk, Receiver
from penstock.errors import ValidationException
from penstock.table.connectors.contract import Connector, Declared, Options
from penstock.table.logical.nodes import Column, Columns
from penstock.table.types import data_types as t
from penstock.table.types.arrow_forms import arrow_schema, arrow_type

ROWS_PER_SECOND = 10_000
CHUNK_ROWS = 32_768
TEXT_LENGTH = 100
_DIGITS = np.frombuffer(b"0123456789abcdef", dtype=np.uint8)


@dataclass(frozen=True)
class FieldSpec:
    """The generation of a column."""

    column: Column
    sequence: bool
    low: float | None
    """Least value, or the first of a sequence."""
    high: float | None
    length: int
    null_rate: float
    max_past: int
    """Greatest age of a moment, in milliseconds."""
    seed: int


class Datagen(Connector):
    """Generates rows: a bounded number if there is a sequence or 'number-of-rows', endless otherwise."""

    name = "datagen"

    def source(self, env: StreamExecutionEnvironment, table: Declared) -> DataStream:
        options = table.options
        rate = options.number("rows-per-second", ROWS_PER_SECOND)
        count = options.whole("number-of-rows")
        options.whole("scan.parallelism")
        fields = [_field(options, column, number) for number, column in enumerate(table.columns)]
        options.refuse_unknown()
        for field in fields:
            if field.sequence:
                assert field.low is not None and field.high is not None
                rows = int(field.high) - int(field.low) + 1
                count = rows if count is None else min(count, rows)
        bounded = count is not None
        limits = None if table.batch or (bounded and "rows-per-second" not in options.given) else ReadLimits(rate)
        source = DatagenSource(table.columns, tuple(fields), count)
        return env._source(f"datagen {table.name}", source, None, check=False, limits=limits)


def _field(options: Options, column: Column, number: int) -> FieldSpec:
    prefix = f"fields.{column.name}."
    sequence = options.choice(f"{prefix}kind", ("random", "sequence"), "random") == "sequence"
    length = options.whole(f"{prefix}length", TEXT_LENGTH) or TEXT_LENGTH
    options.flag(f"{prefix}var-len")
    null_rate = options.number(f"{prefix}null-rate", 0.0) or 0.0
    max_past = options.millis(f"{prefix}max-past", 0) or 0
    if sequence:
        low, high = options.number(f"{prefix}start"), options.number(f"{prefix}end")
        if low is None or high is None:
            raise ValidationException(f"table {options.table}: a sequence needs '{prefix}start' and '{prefix}end'")
        if not isinstance(column.type, (t.NumericType, t.VarCharType, t.CharType)):
            raise ValidationException(f"table {options.table}: {column} cannot be a sequence")
    else:
        low, high = options.number(f"{prefix}min"), options.number(f"{prefix}max")
    _maker(column.type)
    return FieldSpec(column, sequence, low, high, length, null_rate, max_past, number + 1)


@dataclass
class DatagenSource(Source):
    """Rows by their number. Subtasks take turns."""

    columns: Columns
    fields: tuple[FieldSpec, ...]
    count: int | None

    @property
    def bounded(self) -> bool:  # type: ignore[override]
        return self.count is not None

    def reader(self, context: OperatorContext, position: Any = None) -> Reader:
        return _DatagenReader(self, [(context.subtask, context.parallelism)] if position is None else position)

    def redistribute(self, positions: list[Any], parallelism: int) -> list[Any]:
        steps = [step for position in positions for step in position]
        while len(steps) < parallelism:  # one that takes every n-th row becomes two that take every 2n-th
            first, step = steps.pop(0)
            steps += [(first, 2 * step), (first + step, 2 * step)]
        return dealt_out(steps, parallelism)


class _DatagenReader(Reader):
    """Makes the rows of some steps. A step consists of the next number and the distance to the following one."""

    def __init__(self, source: DatagenSource, steps: list[tuple[int, int]]) -> None:
        self._source = source
        self._steps = [step for step in steps if source.count is None or step[0] < source.count]
        self._schema = arrow_schema(source.columns)
        self._makers = [(field, _maker(field.column.type)) for field in source.fields]
        self.finished = not self._steps

    def poll(self, output: Receiver, budget: Budget) -> int:
        if not self._steps:
            self.finished = True
            return 0
        first, step = self._steps.pop(0)
        rows = min(CHUNK_ROWS, budget.records)
        if self._source.count is not None:
            rows = min(rows, -(-(self._source.count - first) // step))
        numbers = np.arange(first, first + rows * step, step, dtype=np.int64)
        arrays = [_put_nulls(field, numbers, make(field, numbers)) for field, make in self._makers]
        if self._source.count is None or first + rows * step < self._source.count:
            self._steps.append((first + rows * step, step))
        output.chunk(Chunk.of(Batch(pa.RecordBatch.from_arrays(arrays, schema=self._schema))))
        self.finished = not self._steps
        return rows

    def position(self) -> list[tuple[int, int]]:
        return list(self._steps)


# --- columns ---
Maker = Callable[[FieldSpec, Any], pa.Array]


def _mix(numbers: Any, seed: int) -> Any:
    """Return numbers that look random, and are the same for the same input."""
    with np.errstate(over="ignore"):
        z = (numbers.astype(np.uint64) + np.uint64(seed * 0x9E3779B97F4A7C15 % (1 << 64))) * np.uint64(
            0xBF58476D1CE4E5B9
        )
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0x94D049BB133111EB)
        return z ^ (z >> np.uint64(31))


def _fraction(field: FieldSpec, numbers: Any) -> Any:
    return (_mix(numbers, field.seed) >> np.uint64(11)).astype(np.float64) / (1 << 53)


def _put_nulls(field: FieldSpec, numbers: Any, column: pa.Array) -> pa.Array:
    if not field.null_rate:
        return column
    mixed = (_mix(numbers, field.seed + 1_000) >> np.uint64(11)).astype(np.float64) / (1 << 53)
    keep = pa.array(mixed >= field.null_rate)
    return pa.compute.if_else(keep, column, pa.scalar(None, column.type))


def _integers(field: FieldSpec, numbers: Any) -> pa.Array:
    kind = field.column.type
    assert isinstance(kind, t.IntegralType)
    if field.sequence:
        return pa.array(numbers + int(field.low or 0)).cast(arrow_type(kind))
    least = -(1 << kind.bits - 1) if field.low is None else int(field.low)
    most = (1 << kind.bits - 1) - 1 if field.high is None else int(field.high)
    width = most - least + 1
    if width >= 1 << 64:
        return pa.array(_mix(numbers, field.seed).astype(np.int64))
    offsets = _mix(numbers, field.seed) % np.uint64(width)
    return pa.array((offsets + np.uint64(least % (1 << 64))).astype(np.int64)).cast(arrow_type(kind))


def _floats(field: FieldSpec, numbers: Any) -> pa.Array:
    if field.sequence:
        return pa.array(numbers + (field.low or 0.0)).cast(arrow_type(field.column.type))
    largest = 3.4e38 if isinstance(field.column.type, t.FloatType) else 1.7e308
    least, most = 0.0 if field.low is None else field.low, largest if field.high is None else field.high
    return pa.array(least + _fraction(field, numbers) * (most - least)).cast(arrow_type(field.column.type))


def _decimals(field: FieldSpec, numbers: Any) -> pa.Array:
    kind = field.column.type
    assert isinstance(kind, t.DecimalType)
    digits = min(kind.precision, 18)
    limit = 10 ** (digits - min(kind.scale, digits))
    if field.sequence:
        values = numbers + int(field.low or 0)
    else:
        least, most = -limit if field.low is None else field.low, limit if field.high is None else field.high
        values = np.round(least + _fraction(field, numbers) * (most - least), min(kind.scale, 15))
    return pa.array(values).cast(pa.decimal128(38, kind.scale), safe=False).cast(arrow_type(kind), safe=False)


def _texts(field: FieldSpec, numbers: Any) -> pa.Array:
    if field.sequence:
        return pa.array(numbers + int(field.low or 0)).cast(pa.string())
    kind = field.column.type
    length = min(field.length, getattr(kind, "length", field.length))
    if isinstance(kind, t.CharType):
        length = kind.length
    words = -(-length // 16)
    parts = [_mix(numbers, field.seed * 131 + word) for word in range(words)]
    nibbles = [(part >> np.uint64(4 * place)) & np.uint64(15) for part in parts for place in range(16)][:length]
    letters = _DIGITS[np.stack(nibbles, axis=1).astype(np.int64)] if length else np.zeros((len(numbers), 0), np.uint8)
    offsets = pa.py_buffer(np.arange(0, (len(numbers) + 1) * length, length or 1, dtype=np.int32)[: len(numbers) + 1])
    if not length:
        return pa.array([""] * len(numbers))
    return pa.StringArray.from_buffers(len(numbers), offsets, pa.py_buffer(np.ascontiguousarray(letters)))


def _bytes(field: FieldSpec, numbers: Any) -> pa.Array:
    return _texts(field, numbers).cast(pa.binary())


def _booleans(field: FieldSpec, numbers: Any) -> pa.Array:
    return pa.array((_mix(numbers, field.seed) & np.uint64(1)).astype(bool))


def _moments(field: FieldSpec, numbers: Any) -> pa.Array:
    now = int(time.time() * 1000)
    back = (_fraction(field, numbers) * field.max_past).astype(np.int64)
    return pa.array((now - back) * 1000).cast(arrow_type(field.column.type))


def _dates(field: FieldSpec, numbers: Any) -> pa.Array:
    return _moments(replace(field, column=_AS_MOMENT), numbers).cast(pa.date32())


def _times(field: FieldSpec, numbers: Any) -> pa.Array:
    seconds = (_fraction(field, numbers) * 86_400).astype(np.int64)
    return pa.array(seconds * 1_000_000).cast(pa.time64("us"))


_AS_MOMENT = Column("", t.TimestampType(3))


def _part(field: FieldSpec, kind: t.DataType, number: int) -> FieldSpec:
    return FieldSpec(Column("", kind), False, None, None, 10, 0.0, 0, field.seed * 17 + number)


def _arrays(field: FieldSpec, numbers: Any) -> pa.Array:
    kind = field.column.type
    assert isinstance(kind, t.ArrayType)
    length = 3
    flat = np.repeat(numbers, length) * length + np.tile(np.arange(length), len(numbers))
    items = _maker(kind.element_type)(_part(field, kind.element_type, 1), flat)
    return pa.ListArray.from_arrays(pa.array(np.arange(0, len(flat) + 1, length, dtype=np.int32)), items)


def _rows(field: FieldSpec, numbers: Any) -> pa.Array:
    kind = field.column.type
    assert isinstance(kind, t.RowType)
    parts = [
        _maker(part.data_type)(_part(field, part.data_type, number), numbers) for number, part in enumerate(kind.fields)
    ]
    return pa.StructArray.from_arrays(parts, names=kind.field_names())


_MAKERS: tuple[tuple[type[t.DataType], Maker], ...] = (
    (t.IntegralType, _integers),
    (t.DecimalType, _decimals),
    (t.FractionalType, _floats),
    (t.CharType, _texts),
    (t.VarCharType, _texts),
    (t.BinaryType, _bytes),
    (t.VarBinaryType, _bytes),
    (t.BooleanType, _booleans),
    (t.TimestampType, _moments),
    (t.LocalZonedTimestampType, _moments),
    (t.DateType, _dates),
    (t.TimeType, _times),
    (t.DayTimeIntervalType, lambda field, numbers: pa.array(numbers * 0).cast(pa.duration("ms"))),
    (t.ArrayType, _arrays),
    (t.RowType, _rows),
)


def _maker(kind: t.DataType) -> Maker:
    for known, make in _MAKERS:
        if isinstance(kind, known):
            return make
    raise ValidationException(f"datagen cannot generate values of {kind.as_sql()}")
