"""Parquet files, as rows or as generic Avro records.

A file is read in pieces: a group of rows belongs to the piece in which its first byte lies. Decimals have up to 38
digits, 18 of them behind the point, unless a `DECIMAL` says otherwise. Times are written as they are; a time with a
zone is written and read as of UTC.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import IO, Any

from penstock.common.composite_types import RowTypeInfo
from penstock.common.serialization import BulkWriter, BulkWriterFactory
from penstock.common.type_information import TypeInformation, mismatch
from penstock.datastream.connectors.file_formats import BulkFormat, FormatReader, Reject, StreamFormat
from penstock.datastream.formats._arrow_types import arrow_type_of
from penstock.datastream.formats._avro_parquet import RecordsInParquet
from penstock.datastream.formats._columnar import (
    ColumnarWriter,
    GroupsReader,
    Projection,
    checked_row_type,
    schema_of,
)
from penstock.datastream.formats._libraries import pyarrow
from penstock.datastream.formats._watched import WatchedFile
from penstock.datastream.formats.avro import AvroSchema, GenericRecordAvroTypeInfo
from penstock.datastream.formats.decimals import produced_type

__all__ = [
    "AvroParquetReaders",
    "AvroParquetWriters",
    "ParquetBulkWriters",
    "ParquetColumnarRowInputFormat",
]


@dataclass(frozen=True)
class ParquetColumnarRowInputFormat(BulkFormat):
    """Parquet files as rows with the columns of a row type; all columns, if none is given.

    `hadoop_config` and `is_utc_timestamp` are there for PyFlink programs and change nothing: there is no Hadoop, and no
    time is ever converted to a local zone.
    """

    row_type: RowTypeInfo | None = None
    hadoop_config: Any = None
    batch_size: int = 2048
    is_utc_timestamp: bool = False
    is_case_sensitive: bool = True
    splittable = True

    def __post_init__(self) -> None:
        if self.row_type is not None:
            arrow_type_of(checked_row_type(self.row_type))
        if self.batch_size < 1:
            raise ValueError(f"the batch size must be at least 1, but is {self.batch_size}")

    def open(self, file: IO[bytes], start: int, end: int, position: Any, reject: Reject) -> FormatReader:
        opened = _Opened(file)
        projection = Projection(opened.schema, self.row_type, self.is_case_sensitive)
        return _ParquetReader(opened, projection, opened.groups(start, end), position, self.batch_size)

    def get_produced_type(self) -> TypeInformation | None:
        return None if self.row_type is None else produced_type(self.row_type)


class _Opened:
    """A file whose metadata has been read."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = WatchedFile(file)
        with self._file.undecodable("not a Parquet file, or a broken one"):
            self._parquet = pyarrow("pyarrow.parquet").ParquetFile(self._file)
            self.schema = self._parquet.schema_arrow

    def groups(self, start: int, end: int) -> list[int]:
        """The groups of rows that begin between two bytes of the file."""
        metadata = self._parquet.metadata
        groups = (metadata.row_group(index) for index in range(metadata.num_row_groups))
        return [index for index, group in enumerate(groups) if start <= _first_byte(group) < end]

    def batches(self, group: int, columns: list[str], most: int) -> Iterator[Any]:
        batches = self._parquet.iter_batches(most, row_groups=[group], columns=columns)
        while True:
            with self._file.undecodable(f"row group {group} of the Parquet file is broken"):
                batch = next(batches, None)
            if batch is None:
                return
            yield batch


def _first_byte(group: Any) -> int:
    columns = (group.column(index) for index in range(group.num_columns))
    pages = ((column.dictionary_page_offset, column.data_page_offset) for column in columns)
    return min(int(offset) for offsets in pages for offset in offsets if offset is not None)


class _ParquetReader(GroupsReader):
    def __init__(
        self, file: _Opened, projection: Projection, groups: list[int], position: Any, batch_size: int
    ) -> None:
        self._file = file
        self._projection = projection
        self._batch_size = batch_size
        super().__init__(groups, position)

    def batches(self, group: int) -> Iterator[list[Any]]:
        return map(self._projection.rows, self._file.batches(group, self._projection.columns, self._batch_size))


class ParquetBulkWriters:
    """Makes writers of Parquet files."""

    @staticmethod
    def for_row_type(
        row_type: RowTypeInfo, hadoop_config: Any = None, utc_timestamp: bool = False
    ) -> BulkWriterFactory:
        """Write rows of a type. If `utc_timestamp`, timestamps are marked as being of UTC for other readers."""
        arrow_type_of(checked_row_type(row_type))
        return _ParquetWriterFactory(row_type, utc_timestamp)


@dataclass(frozen=True)
class _ParquetWriterFactory(BulkWriterFactory):
    row_type: RowTypeInfo
    utc_timestamp: bool = False

    def create(self, stream: IO[bytes]) -> BulkWriter:
        return _ParquetWriter(stream, self.row_type, self.utc_timestamp)


class _ParquetWriter(ColumnarWriter):
    def __init__(
        self, stream: IO[bytes], row_type: RowTypeInfo, utc: bool, metadata: dict[str, str] | None = None
    ) -> None:
        schema = schema_of(row_type, utc).with_metadata(metadata)
        super().__init__(row_type, schema)
        self._writer = pyarrow("pyarrow.parquet").ParquetWriter(stream, schema)

    def write_group(self, table: Any) -> None:
        self._writer.write_table(table)

    def finish(self) -> None:
        self.flush()
        self._writer.close()


# --- generic records ---
class AvroParquetReaders:
    """Reads Parquet files as generic Avro records."""

    @staticmethod
    def for_generic_record(schema: AvroSchema) -> StreamFormat:
        """Read the fields of a schema, as dicts."""
        return _GenericRecordFormat(_checked_schema(schema))


def _checked_schema(schema: Any) -> AvroSchema:
    if not isinstance(schema, AvroSchema):
        raise TypeError(f"expected an AvroSchema, not {schema!r}")
    arrow_type_of(checked_row_type(RecordsInParquet(schema.schema_string).row_type))
    return schema


@dataclass(frozen=True)
class _GenericRecordFormat(StreamFormat):
    schema: AvroSchema
    splittable = True

    def open(self, file: IO[bytes], start: int, end: int, position: Any, reject: Reject) -> FormatReader:
        opened = _Opened(file)
        records = RecordsInParquet(self.schema.schema_string)
        projection = Projection(opened.schema, records.row_type)
        rows = _ParquetReader(opened, projection, opened.groups(start, end), position, 2048)
        return _GenericRecordReader(rows, records.to_record)

    def get_produced_type(self) -> TypeInformation:
        return GenericRecordAvroTypeInfo(self.schema)


class _GenericRecordReader(FormatReader):
    def __init__(self, rows: FormatReader, convert: Callable[[Any], Any]) -> None:
        self._rows = rows
        self._convert = convert
        self.finished = rows.finished

    def read(self, most: int) -> list[Any]:
        rows = self._rows.read(most)
        self.finished = self._rows.finished
        return list(map(self._convert, rows))

    def position(self) -> Any:
        return self._rows.position()


class AvroParquetWriters:
    """Makes writers of Parquet files that take generic Avro records."""

    @staticmethod
    def for_generic_record(schema: AvroSchema) -> BulkWriterFactory:
        """Write dicts with the fields of a schema; a field that is missing is None."""
        return _GenericRecordWriterFactory(_checked_schema(schema))


@dataclass(frozen=True)
class _GenericRecordWriterFactory(BulkWriterFactory):
    schema: AvroSchema

    def create(self, stream: IO[bytes]) -> BulkWriter:
        records = RecordsInParquet(self.schema.schema_string)
        noted = {"parquet.avro.schema": self.schema.schema_string}  # from which Flink knows what is a union
        writer = _ParquetWriter(stream, records.row_type, utc=True, metadata=noted)
        return _GenericRecordWriter(writer, records.to_row)


class _GenericRecordWriter(BulkWriter):
    def __init__(self, rows: BulkWriter, convert: Callable[[Any], Any]) -> None:
        self._rows = rows
        self._convert = convert

    def add_element(self, element: Any) -> None:
        if not isinstance(element, dict):
            raise mismatch(element, "a generic record, which is a dict")
        self._rows.add_element(self._convert(element))

    def flush(self) -> None:
        self._rows.flush()

    def finish(self) -> None:
        self._rows.finish()
