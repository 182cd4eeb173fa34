"""Records of Kafka as rows of a table: their keys, their values, and their metadata."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Sequence
from typing import Any

import pyarrow as pa

from penstock.common.serialization import SerializationSchema
from penstock.common.types import Row, RowKind
from penstock.connectors.kafka.decoding import BatchDeserializationSchema, Messages
from penstock.connectors.kafka.kafka_source import KafkaRecord
from penstock.engine.operators.functions.map_and_filter import FlatMapOperator
from penstock.engine.records.elements import Chunk
from penstock.errors import ValidationException
from penstock.formats.batch_of_rows import BatchOfRows
from penstock.formats.message_batches import Trying, WritesTogether
from penstock.table.connectors.contract import Declared
from penstock.table.connectors.message_columns import READING_FAILS, MessageColumns
from penstock.table.connectors.message_formats import Decode, Encode
from penstock.table.logical.nodes import Columns
from penstock.table.operators.io.row_conversions import millis_column
from penstock.table.types import data_types as t
from penstock.table.types.arrow_forms import array_of, arrow_schema

METADATA = ("topic", "partition", "offset", "timestamp", "timestamp-type", "headers", "leader-epoch")
LEAST_ROWS = 2
"""Least number of records that are read together."""
_FIRST_MILLIS, _LAST_MILLIS = -62_135_596_800_000, 253_402_300_799_999
"""Range of moments in Python, the years 1 to 9999, in milliseconds since 1970."""


_EPOCH = datetime.datetime.fromtimestamp(0, datetime.UTC)


# --- reading ---
def rows_of_record(rows: list[Row]) -> list[Row]:
    """Return the rows that a record became, for EachRow."""
    return rows


class EachRow(FlatMapOperator):
    """Emits the rows in the lists that records become. Columns pass unchanged."""

    def chunk(self, chunk: Chunk) -> None:
        if chunk.columns is None:
            super().chunk(chunk)
        else:
            self.emit_chunk(chunk)


class Part:
    """The key of a record, or its value: the decoder, and the columns in it."""

    def __init__(self, decode: Decode | None, columns: Columns) -> None:
        self.decode = decode
        self.names = [column.name for column in columns]
        self.columns: MessageColumns | None = getattr(decode, "columns", None)


class Reading(BatchDeserializationSchema):
    """Reads all columns of a record: those of its key, its value, and its metadata."""

    def __init__(self, table: Declared, key: Part, value: Part, upserts: bool) -> None:
        self._columns = table.columns
        self._names = [column.name for column in table.columns]
        self._make = Row(*self._names)
        self._metadata = [(table.columns[index].name, name) for index, name in table.metadata]
        self._key, self._value, self._upserts = key, value, upserts
        self._trying = Trying()
        unknown = [name for _, name in self._metadata if name not in METADATA]
        if unknown:
            known = ", ".join(METADATA)
            raise ValidationException(f"table {table.name}: Kafka has no metadata '{unknown[0]}'; there are: {known}")

    # --- one by one ---
    def deserialize(self, record: KafkaRecord) -> list[Row]:
        keys: dict[str, Any] = {}
        if self._key.decode is not None and record.key is not None:
            keys = dict(zip(self._key.names, self._key.decode(record.key)[0], strict=True))
        if not record.value:
            return [self._row(keys, {}, record, RowKind.DELETE)] if self._upserts and record.value is None else []
        assert self._value.decode is not None
        return [
            self._row(keys, value.as_dict(), record, RowKind.UPDATE_AFTER if self._upserts else value.get_row_kind())
            for value in self._value.decode(record.value)
        ]

    def _row(self, keys: dict[str, Any], values: dict[str, Any], record: KafkaRecord, kind: RowKind) -> Row:
        found = {**values, **keys, **{name: _about(record, what) for name, what in self._metadata}}
        row: Row = self._make(*[found.get(name) for name in self._names])
        row.set_row_kind(kind)
        return row

    # --- all at once ---
    def deserialize_batch(self, messages: Messages) -> BatchOfRows | None:
        if self._value.columns is None or len(messages) < LEAST_ROWS or not self._trying.is_worth_it():
            return None
        batch = self._batch(messages)
        if batch is None:
            self._trying.note_failure()
            return None
        self._trying.note_success()
        return BatchOfRows(batch)

    def _batch(self, messages: Messages) -> pa.RecordBatch | None:
        """Return the rows of the messages; None if they do not fit columns. For upserts, the rows have kinds."""
        keys = self._keys(messages)
        if keys is None:
            return None
        if not self._upserts and not all(messages.values):
            if keys:
                return None
            messages = messages.with_some_value()
        values = self._values(messages)
        if values is None:
            return None
        try:
            found = {**values, **keys, **self._metadata_columns(messages)}
            arrays = [self._array(found, column, len(messages)) for column in self._columns]
        except READING_FAILS:
            return None
        if self._upserts:
            arrays.append(pa.array([_kind(value) for value in messages.values], pa.int8()))
        return pa.RecordBatch.from_arrays(arrays, schema=arrow_schema(self._columns, self._upserts))

    def _array(self, found: dict[str, pa.Array], column: Any, count: int) -> pa.Array:
        return found[column.name] if column.name in found else array_of([None] * count, column.type)

    def _keys(self, messages: Messages) -> dict[str, pa.Array] | None:
        """Return the columns of the keys, or None if they do not fit.

        The result is empty if no key is read or no record has a key.
        """
        if self._key.decode is None or messages.keys.count(None) == len(messages):
            return {}
        if self._key.columns is None or None in messages.keys:
            return None
        arrays = self._key.columns.arrays(messages.keys)  # type: ignore[arg-type]
        return None if arrays is None else dict(zip(self._key.names, arrays, strict=True))

    def _values(self, messages: Messages) -> dict[str, pa.Array] | None:
        """Return the columns of the values; None if they do not fit.

        A record without a value, which deletes, has nulls.
        """
        assert self._value.columns is not None
        given = [value for value in messages.values if value is not None]
        if not all(given):
            return None
        arrays = self._value.columns.arrays(given)
        if arrays is None:
            return None
        if len(given) < len(messages):
            numbers = iter(range(len(given)))
            places = pa.array([None if value is None else next(numbers) for value in messages.values], pa.int64())
            arrays = [array.take(places) for array in arrays]
        return dict(zip(self._value.names, arrays, strict=True))

    def _metadata_columns(self, messages: Messages) -> dict[str, pa.Array]:
        """Return the columns of metadata."""
        types = {column.name: column.type for column in self._columns}
        return {name: _column_about(messages, what, types[name]) for name, what in self._metadata}


def _kind(value: bytes | None) -> int:
    return int((RowKind.DELETE if value is None else RowKind.UPDATE_AFTER).value)


def _about(record: KafkaRecord, what: str) -> Any:
    if what == "timestamp":
        return datetime.datetime.fromtimestamp(record.timestamp / 1000, datetime.UTC)
    if what == "timestamp-type":
        return "CreateTime"
    if what == "headers":
        return dict(record.headers)
    if what == "leader-epoch":
        return None
    return getattr(record, what)


def _column_about(messages: Messages, what: str, declared: t.DataType) -> pa.Array:
    if what == "timestamp" and isinstance(declared, t.TimestampType | t.LocalZonedTimestampType):
        stamps = messages.timestamps
        if min(stamps, default=0) >= _FIRST_MILLIS and max(stamps, default=0) <= _LAST_MILLIS:
            return millis_column(pa.array(stamps, pa.int64()), declared)
    values: Sequence[Any] = messages.offsets if what == "offset" else [_about(one, what) for one in messages.records()]
    return array_of(values, declared)


# --- writing ---
class Written(SerializationSchema, WritesTogether):
    """Writes some columns of a row. For a topic with one record per key, a deleted row has no value."""

    def __init__(self, write: Encode, columns: Columns, written: Columns, deletes: bool) -> None:
        """Take `written`, the columns under their names in the message."""
        self._write: Callable[[Row], bytes | None] = write
        self._names = [column.name for column in columns]
        self._written = [column.name for column in written]
        self._make = Row(*self._written)
        self._deletes = deletes

    def serialize(self, value: Row) -> Any:
        if self._deletes and value.get_row_kind() is RowKind.DELETE:
            return None
        row: Row = self._make(*value.get_fields_by_names(self._names))
        row.set_row_kind(value.get_row_kind())
        return self._write(row)

    def write_batch(self, batch: pa.RecordBatch) -> list[bytes] | None:
        """Return the messages of rows that are all inserts; None if the rows must be written one by one."""
        write: WritesTogether | None = getattr(self._write, "columns", None)
        if write is None or self._deletes or any(batch.schema.names.count(name) != 1 for name in self._names):
            return None
        return write.write_batch(batch.select(self._names).rename_columns(self._written))


def metadata_writers(table: Declared) -> dict[str, Any]:
    """Return the functions for a record's timestamp and headers, if the table has columns for them."""
    columns = {what: table.columns[index].name for index, what in table.metadata}
    fixed = sorted(set(columns) - {"timestamp", "headers"})
    if fixed:
        raise ValidationException(
            f"table {table.name}: the metadata '{fixed[0]}' cannot be written: declare the column VIRTUAL, or leave it "
            "out; 'timestamp' and 'headers' can be"
        )
    made: dict[str, Any] = {}
    if "timestamp" in columns:
        made["timestamp"] = _Millis(columns["timestamp"])
    if "headers" in columns:
        made["header_provider"] = _Headers(columns["headers"])
    return made


class _Millis:
    """The timestamp of a record from a column. Kafka sets the time if the column is NULL."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __call__(self, row: Row, _: int | None) -> int | None:
        moment: datetime.datetime | None = row[self._name]
        if moment is None:
            return None
        aware = moment if moment.tzinfo is not None else moment.replace(tzinfo=datetime.UTC)
        return (aware - _EPOCH) // datetime.timedelta(milliseconds=1)


class _Headers:
    """The headers of a record from a column."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __call__(self, row: Row) -> list[tuple[str, bytes]]:
        return [(name, value) for name, value in (row[self._name] or {}).items() if value is not None]
