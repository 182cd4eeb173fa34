"""ORC files, as rows.

A file is read in pieces of whole stripes: of n stripes, the i-th belongs to the piece that holds the byte i/n of the
way through the file. ORC has no type for a time of day.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import IO, Any

from penstock.common.composite_types import RowTypeInfo
from penstock.common.serialization import BulkWriter, BulkWriterFactory
from penstock.common.type_information import TypeInformation
from penstock.datastream.connectors.file_formats import BulkFormat, FormatReader, Reject
from penstock.datastream.formats._arrow_types import arrow_type_of, holds_times
from penstock.datastream.formats._columnar import (
    ColumnarWriter,
    GroupsReader,
    Projection,
    checked_row_type,
    schema_of,
)
from penstock.datastream.formats._libraries import pyarrow
from penstock.datastream.formats._watched import WatchedFile
from penstock.datastream.formats.decimals import produced_type

__all__ = ["OrcBulkWriters", "OrcColumnarRowInputFormat"]

_STRIPE_BYTES = 64 << 20


@dataclass(frozen=True)
class OrcColumnarRowInputFormat(BulkFormat):
    """ORC files as rows with the columns of a row type; all columns, if none is given."""

    row_type: RowTypeInfo | None = None
    hadoop_config: Any = None
    batch_size: int = 2048
    is_utc_timestamp: bool = False
    is_case_sensitive: bool = True
    splittable = True

    def __post_init__(self) -> None:
        if self.row_type is not None:
            _checked(self.row_type)
        if self.batch_size < 1:
            raise ValueError(f"the batch size must be at least 1, but is {self.batch_size}")

    def open(self, file: IO[bytes], start: int, end: int, position: Any, reject: Reject) -> FormatReader:
        opened = _Opened(file)
        projection = Projection(opened.schema, self.row_type, self.is_case_sensitive)
        return _OrcReader(opened, projection, opened.stripes(start, end), position, self.batch_size)

    def get_produced_type(self) -> TypeInformation | None:
        return None if self.row_type is None else produced_type(self.row_type)


def _checked(row_type: Any) -> RowTypeInfo:
    checked = checked_row_type(row_type)
    arrow_type_of(checked)
    if holds_times(checked):
        raise TypeError(f"ORC has no type for a time of day, and {checked} has one")
    return checked


class _Opened:
    """A file whose metadata has been read."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = WatchedFile(file)
        with self._file.undecodable("not an ORC file, or a broken one"):
            self._orc = pyarrow("pyarrow.orc").ORCFile(self._file)
            self.schema = self._orc.schema

    def stripes(self, start: int, end: int) -> list[int]:
        """The stripes of a piece. Where a stripe begins is not told, so they are taken to be of one size."""
        count, size = self._orc.nstripes, self._orc.file_length
        return [stripe for stripe in range(count) if start <= stripe * size // count < end]

    def read(self, stripe: int, columns: list[str]) -> Any:
        with self._file.undecodable(f"stripe {stripe} of the ORC file is broken"):
            return self._orc.read_stripe(stripe, columns=columns)


class _OrcReader(GroupsReader):
    def __init__(
        self, file: _Opened, projection: Projection, stripes: list[int], position: Any, batch_size: int
    ) -> None:
        self._file = file
        self._projection = projection
        self._batch_size = batch_size
        super().__init__(stripes, position)

    def batches(self, group: int) -> Iterator[list[Any]]:
        stripe = self._file.read(group, self._projection.columns)
        for begin in range(0, stripe.num_rows, self._batch_size):
            yield self._projection.rows(stripe.slice(begin, self._batch_size))


class OrcBulkWriters:
    """Makes writers of ORC files."""

    @staticmethod
    def for_row_type(
        row_type: RowTypeInfo, writer_properties: Any = None, hadoop_config: Any = None
    ) -> BulkWriterFactory:
        """Write rows of a type. Of the writer properties, `orc.compress` and `orc.stripe.size` are understood."""
        properties = _properties(writer_properties)
        return _OrcWriterFactory(
            _checked(row_type),
            _compression(properties.get("orc.compress", "ZLIB")),
            int(properties.get("orc.stripe.size", _STRIPE_BYTES)),
        )


def _properties(given: Any) -> dict[str, str]:
    if given is None:
        return {}
    return dict(given if isinstance(given, dict) else given.to_dict())


def _compression(name: str) -> str:
    allowed = {"NONE": "uncompressed", "ZLIB": "zlib", "SNAPPY": "snappy", "LZ4": "lz4", "ZSTD": "zstd"}
    if name.upper() not in allowed:
        raise ValueError(f"orc.compress must be one of {', '.join(allowed)}, not {name!r}")
    return allowed[name.upper()]


@dataclass(frozen=True)
class _OrcWriterFactory(BulkWriterFactory):
    row_type: RowTypeInfo
    compression: str = "zlib"
    stripe_bytes: int = _STRIPE_BYTES

    def create(self, stream: IO[bytes]) -> BulkWriter:
        return _OrcWriter(stream, self)


class _OrcWriter(ColumnarWriter):
    def __init__(self, stream: IO[bytes], factory: _OrcWriterFactory) -> None:
        schema = schema_of(factory.row_type)
        super().__init__(factory.row_type, schema)
        orc = pyarrow("pyarrow.orc")
        self._writer = orc.ORCWriter(stream, compression=factory.compression, stripe_size=factory.stripe_bytes)
        self._empty = True

    def write_group(self, table: Any) -> None:
        self._empty = False
        self._writer.write(table)

    def finish(self) -> None:
        self.flush()
        if self._empty:
            self._writer.write(self._schema.empty_table())
        self._writer.close()
