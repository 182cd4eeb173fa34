"""Parquet files, as rows or as generic Avro records.

A file is read in pieces: a group of rows belongs to the piece in which its first byte lies. Decimals have up to 38
digits, 18 of them after the point, unless a `DECIMAL` says otherwise. Times are written as they are; a time with a zone
is written and read as of UTC.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import IO, Any

from penstock.api.settings.values import check_kind
from penstock.base.arguments import check_arguments
from penstock.common.composite_types import RowTypeInfo
from penstock.common.serialization import BulkWriterFactory
from penstock.common.type_information import TypeInformation, mismatch
from penstock.formats.avro.avro_format import AvroSchema, GenericRecordAvroTypeInfo
from penstock.formats.avro.avro_parquet import RecordsInParquet
from penstock.formats.bulk_writers import WriterFactory
from penstock.formats.columnar import (
    ColumnarFile,
    ColumnarFormat,
    ColumnarWriter,
    Projection,
    check_row_type,
    schema_of,
)
from penstock.formats.contracts import FormatReader, Reject, StreamFormat
from penstock.formats.file_errors import WatchedFile
from penstock.formats.format_libraries import pyarrow

__all__ = [
    "AvroParquetReaders",
    "AvroParquetWriters",
    "ParquetBulkWriters",
    "ParquetColumnarRowInputFormat",
]

_BATCH_RECORDS = 2048


class ParquetColumnarRowInputFormat(ColumnarFormat):
    """Parquet files as rows with the columns of a row type; with all columns if none is given.

    `hadoop_config` and `is_utc_timestamp` are there for PyFlink programs and have no effect: there is no Hadoop, and no
    time is ever converted to a local zone.
    """

    def read_metadata(self, file: IO[bytes]) -> ColumnarFile:
        return _ParquetFile(file)


class _ParquetFile(ColumnarFile):
    def __init__(self, file: IO[bytes]) -> None:
        self._file = WatchedFile(file)
        with self._file.undecodable("not a Parquet file, or a broken one"):
            self._parquet = pyarrow("pyarrow.parquet").ParquetFile(self._file)
            self.schema = self._parquet.schema_arrow

    def groups(self, start: int, end: int) -> list[int]:
        """Return the groups of rows that begin between two bytes of the file."""
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


@check_arguments
class ParquetBulkWriters:
    """Makes writers of Parquet files."""

    @staticmethod
    def for_row_type(
        row_type: RowTypeInfo, hadoop_config: Any = None, utc_timestamp: bool = False
    ) -> BulkWriterFactory:
        """Write rows of a type. If `utc_timestamp`, timestamps are marked as being of UTC for other readers."""
        return WriterFactory(_ParquetWriter, (check_row_type(row_type), utc_timestamp))


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
@check_arguments
class AvroParquetReaders:
    """Reads Parquet files as generic Avro records."""

    @staticmethod
    def for_generic_record(schema: AvroSchema) -> StreamFormat:
        """Read the fields of a schema, as dicts."""
        return _GenericRecordFormat(_in_columns(schema))


def _in_columns(schema: Any) -> AvroSchema:
    checked: AvroSchema = check_kind(AvroSchema, schema)
    check_row_type(RecordsInParquet(checked.schema_string).row_type)
    return checked


@dataclass(frozen=True)
class _GenericRecordFormat(StreamFormat):
    schema: AvroSchema
    splittable = True

    def open(self, file: IO[bytes], start: int, end: int, position: Any, reject: Reject) -> FormatReader:
        opened = _ParquetFile(file)
        projection = _RecordProjection(opened.schema, RecordsInParquet(self.schema.schema_string))
        return opened.reader(projection, opened.groups(start, end), position, _BATCH_RECORDS)

    def get_produced_type(self) -> TypeInformation:
        return GenericRecordAvroTypeInfo(self.schema)


class _RecordProjection(Projection):
    """Reads rows as generic records."""

    def __init__(self, schema: Any, records: RecordsInParquet) -> None:
        super().__init__(schema, records.row_type)
        self._to_record = records.to_record

    def rows(self, batch: Any) -> list[Any]:
        return list(map(self._to_record, super().rows(batch)))

    def records(self, batch: Any) -> list[Any]:
        return self.rows(batch)


@check_arguments
class AvroParquetWriters:
    """Makes writers of Parquet files that take generic Avro records."""

    @staticmethod
    def for_generic_record(schema: AvroSchema) -> BulkWriterFactory:
        """Write dicts with the fields of a schema. A missing field is None."""
        return WriterFactory(_GenericRecordWriter, (_in_columns(schema),))


class _GenericRecordWriter(_ParquetWriter):
    def __init__(self, stream: IO[bytes], schema: AvroSchema) -> None:
        records = RecordsInParquet(schema.schema_string)
        noted = {"parquet.avro.schema": schema.schema_string}  # from which Flink knows what is a union
        super().__init__(stream, records.row_type, utc=True, metadata=noted)
        self._to_row = records.to_row

    def add_element(self, element: Any) -> None:
        if not isinstance(element, dict):
            raise mismatch(element, "a generic record, which is a dict")
        super().add_element(self._to_row(element))

    def add_batch(self, batch: Any) -> bool:
        return False
