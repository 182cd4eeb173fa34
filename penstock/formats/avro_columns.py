"""Many messages of one Avro record each, read as columns: field by field for all messages at once.

The fields of a record follow each other without names or lengths. So the place of a field is known for every message
once all fields before it have been read, and a few calls of NumPy read it in all messages. What a schema may have is
limited to plain fields, records within records, and null beside them. A message that is not exactly one record of the
schema, and a value that Python would not take, is left to the reader of single messages.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np
import pyarrow as pa

from penstock.formats.avro_types import Shape, is_null, parsed

Places = np.ndarray[Any, np.dtype[np.int64]]
_DAY_MICROS = 86_400_000_000
_FIRST_DAY, _LAST_DAY = -719_162, 2_932_896
"""From the year 1 to the year 9999, in days since 1970."""


class Misfit(Exception):
    """Some message must be looked at by itself."""


class AvroColumns:
    """Reads messages of a schema."""

    def __init__(self, root: _Record) -> None:
        self._root = root

    @staticmethod
    def of(schema: str) -> AvroColumns | None:
        """None if there is something in the schema that is not read this way."""
        try:
            root = _Plan(parsed(schema)).field(parsed(schema))
        except Misfit:
            return None
        return AvroColumns(root) if isinstance(root, _Record) else None

    def read(self, messages: list[bytes]) -> pa.RecordBatch | None:
        """The records of the messages as a batch; None if the messages must be looked at one by one."""
        ends = np.cumsum(np.fromiter(map(len, messages), np.int64, len(messages)))
        input = _Input(np.frombuffer(b"".join(messages), np.uint8), ends)
        starts = np.concatenate(([0], ends[:-1]))
        try:
            record, behind = self._root.read(input, starts, ends)
        except (Misfit, pa.ArrowInvalid):
            return None
        if not np.array_equal(behind, ends):
            return None
        return pa.RecordBatch.from_struct_array(record)


class _Input:
    """The bytes of all messages, one after the other."""

    def __init__(self, data: Any, ends: Places) -> None:
        self.data = data
        self.ends = ends

    def bytes_at(self, at: Places, end: Places) -> Any:
        if (at >= end).any():
            raise Misfit
        return self.data[at]

    def longs(self, at: Places, end: Places) -> tuple[Places, Places]:
        """Numbers of variable length, and where they end."""
        lowest = self.bytes_at(at, end)
        found = (lowest & 0x7F).astype(np.uint64)
        behind = at + 1
        longer, shift = np.flatnonzero(lowest & 0x80), 7
        while longer.size:
            part = self.bytes_at(behind[longer], end[longer])
            if shift > 63 or (shift == 63 and (part > 1).any()):
                raise Misfit
            found[longer] |= (part & 0x7F).astype(np.uint64) << np.uint64(shift)
            behind[longer] += 1
            longer, shift = longer[(part & 0x80) != 0], shift + 7
        negative = -(found & np.uint64(1)).astype(np.int64)
        return (found >> np.uint64(1)).astype(np.int64) ^ negative, behind

    def wide(self, at: Places, end: Places, kind: str) -> tuple[Any, Places]:
        """Numbers of a fixed width."""
        width = np.dtype(kind).itemsize
        behind = at + width
        if (behind > end).any():
            raise Misfit
        return self.data[at[:, None] + np.arange(width)].view(kind).reshape(-1), behind

    def runs(self, at: Places, lengths: Places, end: Places) -> tuple[pa.Buffer, pa.Buffer, Places]:
        """Bytes from places on: offsets, the bytes themselves, and where they end."""
        behind = at + lengths
        if (lengths < 0).any() or (behind > end).any() or (behind < at).any():
            raise Misfit
        offsets = np.zeros(len(at) + 1, np.int64)
        np.cumsum(lengths, out=offsets[1:])
        total = int(offsets[-1])
        if total >= 1 << 31:
            raise Misfit
        places = np.repeat(at - offsets[:-1], lengths) + np.arange(total)
        return pa.py_buffer(offsets.astype(np.int32)), pa.py_buffer(self.data[places]), behind


class _Field(ABC):
    """How one part of a schema is read from places in the input."""

    @abstractmethod
    def read(self, input: _Input, at: Places, end: Places) -> tuple[pa.Array, Places]: ...


class _Whole(_Field):
    """A whole number, or a moment that is one; what is out of range is not taken."""

    def __init__(self, kind: pa.DataType, lowest: int, highest: int, factor: int = 1) -> None:
        self._kind, self._lowest, self._highest, self._factor = kind, lowest, highest, factor

    def read(self, input: _Input, at: Places, end: Places) -> tuple[pa.Array, Places]:
        found, behind = input.longs(at, end)
        if found.size and (found.min() < self._lowest or found.max() > self._highest):
            raise Misfit
        numbers = pa.array(found * self._factor)
        return (numbers.cast(pa.int32()) if self._kind.bit_width == 32 else numbers).cast(self._kind), behind


class _Floating(_Field):
    def __init__(self, kind: str) -> None:
        self._kind = kind

    def read(self, input: _Input, at: Places, end: Places) -> tuple[pa.Array, Places]:
        found, behind = input.wide(at, end, self._kind)
        return pa.array(found), behind


class _Boolean(_Field):
    def read(self, input: _Input, at: Places, end: Places) -> tuple[pa.Array, Places]:
        found = input.bytes_at(at, end)
        if (found > 1).any():
            raise Misfit
        return pa.array(found == 1), at + 1


class _Text(_Field):
    def __init__(self, kind: pa.DataType) -> None:
        self._kind = kind

    def read(self, input: _Input, at: Places, end: Places) -> tuple[pa.Array, Places]:
        lengths, begin = input.longs(at, end)
        offsets, data, behind = input.runs(begin, lengths, end)
        found = pa.Array.from_buffers(self._kind, len(at), [None, offsets, data])
        found.validate(full=True)  # that a text is UTF-8
        return found, behind


class _Enum(_Field):
    def __init__(self, symbols: list[str]) -> None:
        self._symbols = pa.array(symbols, pa.string())

    def read(self, input: _Input, at: Places, end: Places) -> tuple[pa.Array, Places]:
        found, behind = input.longs(at, end)
        if found.size and (found.min() < 0 or found.max() >= len(self._symbols)):
            raise Misfit
        return self._symbols.take(pa.array(found)), behind


class _Nullable(_Field):
    def __init__(self, field: _Field, null: int) -> None:
        self._field = field
        self._null = null
        """Which branch of the union is null."""

    def read(self, input: _Input, at: Places, end: Places) -> tuple[pa.Array, Places]:
        branch, behind = input.longs(at, end)
        if ((branch != 0) & (branch != 1)).any():
            raise Misfit
        there = branch != self._null
        if there.all():
            return self._field.read(input, behind, end)
        found, behind[there] = self._field.read(input, behind[there], end[there])
        return found.take(pa.array(np.cumsum(there) - 1, mask=~there)), behind


class _Record(_Field):
    def __init__(self, fields: list[tuple[str, _Field]]) -> None:
        self._fields = fields

    def read(self, input: _Input, at: Places, end: Places) -> tuple[pa.Array, Places]:
        columns = []
        for _, field in self._fields:
            column, at = field.read(input, at, end)
            columns.append(column)
        return pa.StructArray.from_arrays(columns, [name for name, _ in self._fields]), at


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
    """Finds how the parts of a schema are read; Misfit if there is one that is not."""

    def field(self, schema: Any) -> _Field:
        if isinstance(schema, dict) and isinstance(schema["type"], list):
            schema = schema["type"]
        null = _null_of(schema)
        if null is not None:
            return _Nullable(self.field(schema[1 - null]), null)
        schema = self.resolved(schema)
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
    """Which branch of a union of two is null."""
    if not isinstance(schema, list):
        return None
    nulls = [index for index, branch in enumerate(schema) if is_null(branch)]
    if len(schema) != 2 or len(nulls) != 1:
        raise Misfit
    return nulls[0]
