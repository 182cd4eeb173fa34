"""Many messages of one Avro record each, read and written as columns: field by field for all messages at once.

The fields of a record follow each other without names or lengths. So the position of a field is known for every message
once all fields before it have been read, and a few calls of NumPy read it in all messages. A schema may contain only
plain fields, records within records, and null beside them. A message that is not exactly one record of the schema, and
a value that Python would not accept, is left to the reader of single messages.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.formats.avro.avro_bytes import Input, Misfit, Places, Run, messages_of, write_longs, write_wide
from penstock.formats.avro.avro_types import Shape, is_null, parse_schema

_DAY_MICROS = 86_400_000_000
_FIRST_DAY, _LAST_DAY = -719_162, 2_932_896
"""Range of dates in Python, the years 1 to 9999, in days since 1970."""


class AvroColumns:
    """Reads and writes messages of a schema."""

    def __init__(self, root: _Record) -> None:
        self._root = root

    @staticmethod
    def of(schema: str) -> AvroColumns | None:
        """Return a reader and writer for a schema; None if the schema contains other parts."""
        try:
            root = _Plan(parse_schema(schema)).field(parse_schema(schema))
        except Misfit:
            return None
        return AvroColumns(root) if isinstance(root, _Record) else None

    def read(self, messages: list[bytes]) -> pa.RecordBatch | None:
        """Return the records of the messages as a batch; None if the messages must be read one by one."""
        ends = np.cumsum(np.fromiter(map(len, messages), np.int64, len(messages)))
        input = Input(np.frombuffer(b"".join(messages), np.uint8), ends)
        starts = np.concatenate(([0], ends[:-1]))
        try:
            record, behind = self._root.read(input, starts, ends)
        except (Misfit, pa.ArrowInvalid):
            return None
        if not np.array_equal(behind, ends):
            return None
        return pa.RecordBatch.from_struct_array(record)

    def write(self, batch: pa.RecordBatch) -> list[bytes] | None:
        """Return a message for each row; None if the rows must be written one by one."""
        try:
            return messages_of(self._root.runs(batch))
        except (Misfit, pa.ArrowInvalid):
            return None


class _Field(ABC):
    """Reads and writes one part of a schema, at many positions in the input."""

    @abstractmethod
    def read(self, input: Input, at: Places, end: Places) -> tuple[pa.Array, Places]:
        """Read the column of some messages from their positions on. Return it and the positions of its ends."""

    @abstractmethod
    def write(self, column: pa.Array) -> list[Run]:
        """Return the bytes of a column that has no nulls."""


class _Whole(_Field):
    """A whole number, or a moment stored as one. Values out of range are refused."""

    def __init__(self, kind: pa.DataType, lowest: int, highest: int, factor: int = 1) -> None:
        self._kind, self._lowest, self._highest, self._factor = kind, lowest, highest, factor

    def read(self, input: Input, at: Places, end: Places) -> tuple[pa.Array, Places]:
        found, behind = input.longs(at, end)
        if found.size and (found.min() < self._lowest or found.max() > self._highest):
            raise Misfit
        numbers = pa.array(found * self._factor)
        return (numbers.cast(pa.int32()) if self._kind.bit_width == 32 else numbers).cast(self._kind), behind

    def write(self, column: pa.Array) -> list[Run]:
        if pa.types.is_signed_integer(self._kind) and pa.types.is_signed_integer(column.type):
            column = column.cast(self._kind)
        numbers = _of_type(column, self._kind).cast(pa.int32() if self._kind.bit_width == 32 else pa.int64())
        found = numbers.to_numpy().astype(np.int64) // self._factor
        if found.size and (found.min() < self._lowest or found.max() > self._highest):
            raise Misfit
        return [write_longs(found)]


class _Floating(_Field):
    def __init__(self, kind: str) -> None:
        self._kind = kind

    def read(self, input: Input, at: Places, end: Places) -> tuple[pa.Array, Places]:
        found, behind = input.wide(at, end, self._kind)
        return pa.array(found), behind

    def write(self, column: pa.Array) -> list[Run]:
        if column.type not in (pa.float32(), pa.float64()) or column.type.bit_width > 8 * np.dtype(self._kind).itemsize:
            raise Misfit
        return [write_wide(np.ascontiguousarray(column.to_numpy().astype(self._kind)))]


class _Boolean(_Field):
    def read(self, input: Input, at: Places, end: Places) -> tuple[pa.Array, Places]:
        found = input.bytes_at(at, end)
        if (found > 1).any():
            raise Misfit
        return pa.array(found == 1), at + 1

    def write(self, column: pa.Array) -> list[Run]:
        return [write_wide(_of_type(column, pa.bool_()).to_numpy(zero_copy_only=False).astype(np.uint8))]


class _Text(_Field):
    def __init__(self, kind: pa.DataType) -> None:
        self._kind = kind

    def read(self, input: Input, at: Places, end: Places) -> tuple[pa.Array, Places]:
        lengths, begin = input.longs(at, end)
        offsets, data, behind = input.runs(begin, lengths, end)
        found = pa.Array.from_buffers(self._kind, len(at), [None, offsets, data])
        found.validate(full=True)  # that a text is UTF-8
        return found, behind

    def write(self, column: pa.Array) -> list[Run]:
        _, offsets, data = _of_type(column, self._kind).buffers()
        places = np.frombuffer(offsets, np.int32)[column.offset : column.offset + len(column) + 1].astype(np.int64)
        whole = np.frombuffer(data or b"", np.uint8)[places[0] : places[-1]]
        lengths = np.diff(places)
        return [write_longs(lengths), (whole, lengths)]


class _Enum(_Field):
    def __init__(self, symbols: list[str]) -> None:
        self._symbols = pa.array(symbols, pa.string())

    def read(self, input: Input, at: Places, end: Places) -> tuple[pa.Array, Places]:
        found, behind = input.longs(at, end)
        if found.size and (found.min() < 0 or found.max() >= len(self._symbols)):
            raise Misfit
        return self._symbols.take(pa.array(found)), behind

    def write(self, column: pa.Array) -> list[Run]:
        found = pc.index_in(_of_type(column, pa.string()), self._symbols)
        if found.null_count:
            raise Misfit
        return [write_longs(found.to_numpy().astype(np.int64))]


class _Nullable(_Field):
    def __init__(self, field: _Field, null: int) -> None:
        self._field = field
        self._null = null
        """Index of the null branch in the union."""

    def read(self, input: Input, at: Places, end: Places) -> tuple[pa.Array, Places]:
        branch, behind = input.longs(at, end)
        if ((branch != 0) & (branch != 1)).any():
            raise Misfit
        there = branch != self._null
        if there.all():
            return self._field.read(input, behind, end)
        found, behind[there] = self._field.read(input, behind[there], end[there])
        return found.take(pa.array(np.cumsum(there) - 1, mask=~there)), behind

    def write(self, column: pa.Array) -> list[Run]:
        there = column.is_valid().to_numpy(zero_copy_only=False)
        branch = np.where(there, 1 - self._null, self._null)
        if there.all():
            return [write_longs(branch), *self._field.write(column)]
        runs, lengths = self._field.write(column.filter(pa.array(there))), []
        for _, own in runs:
            lengths.append(np.zeros(len(there), np.int64))
            lengths[-1][there] = own
        return [write_longs(branch), *((data, own) for (data, _), own in zip(runs, lengths, strict=True))]


class _Record(_Field):
    def __init__(self, fields: list[tuple[str, _Field]]) -> None:
        self._fields = fields

    def read(self, input: Input, at: Places, end: Places) -> tuple[pa.Array, Places]:
        columns = []
        for _, field in self._fields:
            column, at = field.read(input, at, end)
            columns.append(column)
        return pa.StructArray.from_arrays(columns, [name for name, _ in self._fields]), at

    def write(self, column: pa.Array) -> list[Run]:
        if not pa.types.is_struct(column.type):
            raise Misfit
        return self.runs(pa.RecordBatch.from_struct_array(column))

    def runs(self, batch: pa.RecordBatch) -> list[Run]:
        """Return the bytes of columns, which are found by their names."""
        return [run for name, field in self._fields for run in field.write(_column(batch, name, field))]


def _column(batch: pa.RecordBatch, name: str, field: _Field) -> pa.Array:
    if batch.schema.names.count(name) != 1:
        raise Misfit
    column = batch.column(name)
    if column.null_count and not isinstance(field, _Nullable):
        raise Misfit
    return column


def _of_type(column: pa.Array, kind: pa.DataType) -> pa.Array:
    if column.type != kind:
        raise Misfit
    return column


_INT, _LONG = (-(1 << 31), (1 << 31) - 1), (-(1 << 63), (1 << 63) - 1)
_MOMENTS = {
    ("int", "date"): _Whole(pa.date32(), _FIRST_DAY, _LAST_DAY),
    ("int", "time-millis"): _Whole(pa.time64("us"), 0, _DAY_MICROS // 1000 - 1, 1000),
    ("long", "time-micros"): _Whole(pa.time64("us"), 0, _DAY_MICROS - 1),
    **{
        ("long", f"{zone}timestamp-{unit}"): _Whole(
            pa.timestamp("us"),
            _FIRST_DAY * _DAY_MICROS // factor,
            (_LAST_DAY + 1) * _DAY_MICROS // factor - 1,
            factor,
        )
        for zone in ("", "local-")
        for unit, factor in (("millis", 1000), ("micros", 1))
    },
}
_PLAIN: dict[str, _Field] = {
    "boolean": _Boolean(),
    "int": _Whole(pa.int32(), *_INT),
    "long": _Whole(pa.int64(), *_LONG),
    "float": _Floating("<f4"),
    "double": _Floating("<f8"),
    "string": _Text(pa.string()),
    "bytes": _Text(pa.binary()),
}


class _Plan(Shape):
    """Chooses the readers of a schema's parts. It raises Misfit for a part without one."""

    def field(self, schema: Any) -> _Field:
        if isinstance(schema, dict) and isinstance(schema["type"], list):
            schema = schema["type"]
        null = _null_of(schema)
        if null is not None:
            return _Nullable(self.field(schema[1 - null]), null)
        schema = self.resolve(schema)
        if isinstance(schema, list):
            raise Misfit
        kind, logical = schema["type"], schema.get("logicalType", "")
        if kind == "record" and schema["fields"]:
            return _Record([(field["name"], self.field(field["type"])) for field in schema["fields"]])
        if kind == "enum":
            return _Enum(schema["symbols"])
        found = _MOMENTS.get((kind, logical)) or (None if logical else _PLAIN.get(kind))
        if found is None:
            raise Misfit
        return found


def _null_of(schema: Any) -> int | None:
    """Return the index of the null branch in a union of two; None for a schema that is no union."""
    if not isinstance(schema, list):
        return None
    nulls = [index for index, branch in enumerate(schema) if is_null(branch)]
    if len(schema) != 2 or len(nulls) != 1:
        raise Misfit
    return nulls[0]
