"""Avro container files as rows whose fields are found by name."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import IO, Any

from penstock.common.serialization import BulkWriter, BulkWriterFactory
from penstock.common.types import make_row
from penstock.errors import SchemaMismatch
from penstock.formats.avro.avro_format import AvroFormat, AvroSchema, AvroWriter
from penstock.formats.avro.avro_types import from_rows
from penstock.formats.contracts import BulkFormat, FormatReader, Reject

CODECS = ("null", "deflate", "bzip2", "xz", "snappy", "zstandard")
"""Compressions of blocks. The last two need a library that fastavro names."""


@dataclass(frozen=True)
class AvroRowFormat(BulkFormat):
    """Rows with some fields of the records."""

    names: tuple[str, ...]
    splittable = True

    def open(self, file: IO[bytes], start: int, end: int, position: Any, reject: Reject) -> FormatReader:
        return _Rows(AvroFormat().open(file, start, end, position, reject), self.names)


class _Rows(FormatReader):
    def __init__(self, records: FormatReader, names: tuple[str, ...]) -> None:
        self._records = records
        self._names = names

    @property
    def finished(self) -> bool:  # type: ignore[override]
        return self._records.finished

    def read(self, most: int) -> list[Any]:
        names = self._names
        return [make_row(names, tuple(self._values(record))) for record in self._records.read(most)]

    def _values(self, record: dict[str, Any]) -> Iterator[Any]:
        for name in self._names:
            if name not in record:
                raise SchemaMismatch(f"the records of the Avro file have no field {name}, only {', '.join(record)}")
            yield record[name]

    def position(self) -> Any:
        return self._records.position()

    def close(self) -> None:
        self._records.close()


@dataclass(frozen=True)
class AvroRowWriters(BulkWriterFactory):
    """Writes rows as records of a schema."""

    schema: str
    codec: str = "deflate"

    def create(self, stream: IO[bytes]) -> BulkWriter:
        return _RowWriter(stream, self.schema, self.codec)


class _RowWriter(AvroWriter):
    def __init__(self, stream: IO[bytes], schema: str, codec: str) -> None:
        super().__init__(stream, AvroSchema(schema), codec)
        self._convert = from_rows(schema)

    def add_element(self, element: Any) -> None:
        super().add_element(self._convert(element))
