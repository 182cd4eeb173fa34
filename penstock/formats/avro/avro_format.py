"""Avro: container files of generic records, and messages of one record each.

A generic record is a dict, as fastavro reads and writes it: times have a zone, and a time without one is local time.
Rows have times without a zone, as of UTC. Files are read in pieces: a block belongs to the piece in which its first
byte lies.
"""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import IO, TYPE_CHECKING, Any

from penstock.api.settings.values import check_kind
from penstock.base.arguments import check_arguments
from penstock.common.composite_types import RowTypeInfo
from penstock.common.serialization import BulkWriter, BulkWriterFactory, DeserializationSchema, SerializationSchema
from penstock.common.type_information import TypeInformation, mismatch
from penstock.common.types import Row
from penstock.errors import SchemaMismatch, UndecodableRecord
from penstock.formats.avro.avro_types import around_none, from_rows, parse_schema, row_type_of, to_fields, to_rows
from penstock.formats.block_files import Block, BlocksReader
from penstock.formats.bulk_writers import WriterFactory
from penstock.formats.contracts import BulkFormat, FormatReader, Reject
from penstock.formats.file_errors import WatchedFile, describe
from penstock.formats.format_libraries import fastavro, has_arrow
from penstock.formats.message_batches import ReadsTogether, WritesTogether

if TYPE_CHECKING:
    from penstock.formats.avro.avro_columns import AvroColumns
    from penstock.formats.batch_of_rows import RecordBatch

__all__ = [
    "AvroBulkWriters",
    "AvroFormat",
    "AvroInputFormat",
    "AvroRowDeserializationSchema",
    "AvroRowSerializationSchema",
    "AvroSchema",
    "GenericRecordAvroTypeInfo",
]

_SYNC_BYTES = 16
_SEARCH_BYTES = 1 << 16
LEAST_WRITTEN = 50
"""Least number of rows that are written as columns. Columns take tens of calls, each as costly as many values."""


@check_arguments
@dataclass(frozen=True)
class AvroSchema:
    """A schema in the form of JSON."""

    schema_string: str

    def __post_init__(self) -> None:
        parse_schema(self.schema_string)

    @staticmethod
    def parse_string(json_schema: str) -> AvroSchema:
        """Return the schema that a JSON text describes."""
        return AvroSchema(json_schema)

    @staticmethod
    def parse_file(file_path: str) -> AvroSchema:
        """Read a schema from a local file."""
        with open(file_path, encoding="utf-8") as file:
            return AvroSchema(file.read())

    def row_type(self) -> RowTypeInfo:
        """Return the type of the rows that hold the same values as the schema's records."""
        return row_type_of(self.schema_string)

    def __str__(self) -> str:
        return self.schema_string


@check_arguments
@dataclass(frozen=True, repr=False)
class GenericRecordAvroTypeInfo(TypeInformation):
    """Generic records: dicts with the fields of a schema. Their content is checked when they are written."""

    schema: AvroSchema

    def _fit_all(self, column: Sequence[Any]) -> Sequence[Any]:
        if not all(issubclass(kind, dict) for kind in set(map(type, column))):
            raise TypeError
        return column

    def __repr__(self) -> str:
        return f"GENERIC_RECORD({parse_schema(self.schema.schema_string).get('name', '')})"


# --- files ---
@check_arguments
@dataclass(frozen=True)
class AvroFormat(BulkFormat):
    """Container files of generic records. With a schema, records are converted to that schema when they are read."""

    schema: AvroSchema | None = None
    splittable = True

    def open(self, file: IO[bytes], start: int, end: int, position: Any, reject: Reject) -> FormatReader:
        wanted = None if self.schema is None else parse_schema(self.schema.schema_string)
        watched = WatchedFile(file)
        file.seek(0)
        with watched.undecodable("not an Avro file, or a broken one"):
            blocks = fastavro().block_reader(watched, reader_schema=wanted)
        first = file.tell()
        begin, taken = (_first_block(file, first, start), 0) if position is None else position
        file.seek(begin)
        return BlocksReader(_blocks(watched, blocks, begin, end), (begin, taken))

    def get_produced_type(self) -> TypeInformation | None:
        return None if self.schema is None else GenericRecordAvroTypeInfo(self.schema)


@contextmanager
def _translate_schema_errors() -> Iterator[None]:
    try:
        yield
    except fastavro().read.SchemaResolutionError as error:
        raise SchemaMismatch(f"the records of the Avro file do not fit the schema that is wanted: {error}") from None


def _first_block(file: IO[bytes], first: int, start: int) -> int:
    """Return the position of the first block at or after `start`. A block begins directly after a sync marker."""
    if start <= first:
        return first
    file.seek(first - _SYNC_BYTES)
    marker = file.read(_SYNC_BYTES)
    at = start - _SYNC_BYTES
    file.seek(at)
    window = b""
    while block := file.read(_SEARCH_BYTES):
        window += block
        found = window.find(marker)
        if found >= 0:
            return at + found + _SYNC_BYTES
        passed = max(len(window) - _SYNC_BYTES + 1, 0)
        at += passed
        window = window[passed:]
    return at + len(window)


def _blocks(file: WatchedFile, blocks: Any, begin: int, end: int) -> Iterator[Block]:
    """Yield the blocks that begin before the end, each with the byte at which it begins."""
    while begin < end:
        with file.undecodable(f"the block at byte {begin} of the Avro file is broken"), _translate_schema_errors():
            block = next(blocks, None)
            if block is None:
                return
            records = list(block)
        yield block.offset, iter([records])
        begin = block.offset + block.size


@check_arguments
@dataclass(frozen=True)
class AvroInputFormat:
    """An Avro file, or the files in a directory, for `env.create_input`."""

    path: str
    schema: AvroSchema

    @property
    def format(self) -> AvroFormat:
        """Format that reads the files."""
        return AvroFormat(self.schema)

    def get_produced_type(self) -> GenericRecordAvroTypeInfo:
        """Return the type of the records."""
        return GenericRecordAvroTypeInfo(self.schema)


@check_arguments
class AvroBulkWriters:
    """Makes writers of Avro container files."""

    @staticmethod
    def for_generic_record(schema: AvroSchema) -> BulkWriterFactory:
        """Write dicts with the fields of a schema."""
        return WriterFactory(AvroWriter, (check_kind(AvroSchema, schema),))


class AvroWriter(BulkWriter):
    """Writes dicts into a container file."""

    def __init__(self, stream: IO[bytes], schema: AvroSchema, codec: str = "deflate") -> None:
        self._writer = fastavro().write.Writer(stream, parse_schema(schema.schema_string), codec=codec)

    def add_element(self, element: Any) -> None:
        try:
            self._writer.write(element)
        except (TypeError, ValueError, KeyError, AttributeError, ArithmeticError) as error:
            raise _misfit(element, error) from None

    def flush(self) -> None:
        self._writer.flush()

    def finish(self) -> None:
        self._writer.flush()


def _misfit(value: Any, error: Exception) -> Exception:
    return mismatch(value, f"the Avro schema: {describe(error)}")


# --- messages ---
@check_arguments
class AvroRowSerializationSchema(SerializationSchema, WritesTogether):
    """Rows as single Avro records in binary form, without a header."""

    def __init__(self, record_class: str | None = None, avro_schema_string: str | None = None) -> None:
        self._schema_string = _schema_string(record_class, avro_schema_string)
        self._schema = parse_schema(self._schema_string)
        row_type_of(self._schema_string)
        self._convert = from_rows(self._schema_string)
        self._write = fastavro().schemaless_writer

    def serialize(self, value: Any) -> bytes:
        stream = io.BytesIO()
        try:
            self._write(stream, self._schema, self._convert(value))
        except (TypeError, ValueError, KeyError, AttributeError, ArithmeticError) as error:
            raise _misfit(value, error) from None
        return stream.getvalue()

    def write_batch(self, batch: RecordBatch) -> list[bytes] | None:
        many = batch.num_rows >= LEAST_WRITTEN
        return self._columns.write(batch) if many and self._columns is not None else None

    @cached_property
    def _columns(self) -> AvroColumns | None:
        return _columns_of(self._schema_string)

    def __reduce__(self) -> tuple[Any, ...]:
        return AvroRowSerializationSchema, (None, self._schema_string)


@check_arguments
class AvroRowDeserializationSchema(DeserializationSchema, ReadsTogether):
    """Single Avro records in binary form, without a header, as rows."""

    def __init__(self, record_class: str | None = None, avro_schema_string: str | None = None) -> None:
        self._schema_string = _schema_string(record_class, avro_schema_string)
        self._schema = parse_schema(self._schema_string)
        self._type_info = row_type_of(self._schema_string)
        self._convert = to_rows(self._schema_string)
        self._fields = to_fields(self._schema_string)
        self._read = fastavro().schemaless_reader

    def deserialize(self, message: bytes | None) -> Row | None:
        if message is None:
            return None
        row: Row = self._convert(self._record(message))
        return row

    def _record(self, message: bytes) -> Any:
        stream = io.BytesIO(message)
        try:
            record = self._read(stream, self._schema, None)
        except Exception as error:  # the library raises what its parts do: EOFError, struct.error, IndexError
            raise UndecodableRecord(f"not a record of the Avro schema: {describe(error)}") from None
        if stream.tell() != len(message):
            raise UndecodableRecord(f"{len(message) - stream.tell()} bytes follow the record of the Avro schema")
        return record

    def read_columns(self, messages: list[bytes]) -> list[Sequence[Any]] | None:
        try:
            records = list(map(self._record, messages))
        except UndecodableRecord:
            return None
        found = [(convert, [record.get(name) for record in records]) for name, convert in self._fields]
        return [values if convert is None else list(map(around_none(convert), values)) for convert, values in found]

    def read_batch(self, messages: list[bytes]) -> RecordBatch | None:
        return None if self._columns is None else self._columns.read(messages)

    @cached_property
    def _columns(self) -> AvroColumns | None:
        return _columns_of(self._schema_string)

    def get_produced_type(self) -> TypeInformation:
        return self._type_info

    def __reduce__(self) -> tuple[Any, ...]:
        return AvroRowDeserializationSchema, (None, self._schema_string)


def _columns_of(schema: str) -> AvroColumns | None:
    """Return the reader and writer of many messages; None if the schema allows only one at a time."""
    if not has_arrow():
        return None
    from penstock.formats.avro.avro_columns import AvroColumns

    return AvroColumns.of(schema)


def _schema_string(record_class: str | None, avro_schema_string: str | None) -> str:
    if avro_schema_string is not None:
        return avro_schema_string
    if record_class is not None:
        raise TypeError(f"the Java class {record_class!r} cannot be asked for its schema; give avro_schema_string")
    raise TypeError("avro_schema_string is missing")
