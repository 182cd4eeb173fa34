"""ORC files, as rows.

A file is read in pieces of whole stripes: of n stripes, the i-th belongs to the piece that holds the byte i/n of the
way through the file. ORC has no type for a time of day.

Some versions of Arrow lose the values after a row that is None inside another row. With these versions such rows are
refused.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from io import BytesIO
from typing import IO, Any

from penstock.base.arguments import check_arguments
from penstock.common.composite_types import RowTypeInfo
from penstock.common.serialization import BulkWriterFactory
from penstock.errors import UnsupportedOperation
from penstock.formats.arrow_types import holds_times
from penstock.formats.bulk_writers import WriterFactory
from penstock.formats.columnar import (
    ColumnarFile,
    ColumnarFormat,
    ColumnarWriter,
    check_row_type,
    schema_of,
)
from penstock.formats.file_errors import WatchedFile
from penstock.formats.format_libraries import pyarrow

__all__ = ["OrcBulkWriters", "OrcColumnarRowInputFormat"]

_STRIPE_BYTES = 64 << 20


class OrcColumnarRowInputFormat(ColumnarFormat):
    """ORC files as rows with the columns of a row type; with all columns if none is given."""

    def check_type(self, row_type: RowTypeInfo) -> None:
        _check(row_type)

    def read_metadata(self, file: IO[bytes]) -> ColumnarFile:
        return _OrcFile(file)


def _check(row_type: Any) -> RowTypeInfo:
    checked = check_row_type(row_type)
    if holds_times(checked):
        raise TypeError(f"ORC has no type for a time of day, and {checked} has one")
    return checked


class _OrcFile(ColumnarFile):
    def __init__(self, file: IO[bytes]) -> None:
        self._file = WatchedFile(file)
        with self._file.undecodable("not an ORC file, or a broken one"):
            self._orc = pyarrow("pyarrow.orc").ORCFile(self._file)
            self.schema = self._orc.schema

    def groups(self, start: int, end: int) -> list[int]:
        """Return the stripes of a piece. Their positions are unknown, so all stripes are taken to be of one size."""
        count, size = self._orc.nstripes, self._orc.file_length
        return [stripe for stripe in range(count) if start <= stripe * size // count < end]

    def batches(self, group: int, columns: list[str], most: int) -> Iterator[Any]:
        with self._file.undecodable(f"stripe {group} of the ORC file is broken"):
            stripe = self._orc.read_stripe(group, columns=columns)
        return (stripe.slice(begin, most) for begin in range(0, stripe.num_rows, most))


@check_arguments
class OrcBulkWriters:
    """Makes writers of ORC files."""

    @staticmethod
    def for_row_type(
        row_type: RowTypeInfo, writer_properties: Any = None, hadoop_config: Any = None
    ) -> BulkWriterFactory:
        """Write rows of a type. The writer properties `orc.compress` and `orc.stripe.size` have an effect."""
        properties = _properties(writer_properties)
        compression = _compression(properties.get("orc.compress", "ZLIB"))
        stripe_bytes = int(properties.get("orc.stripe.size", _STRIPE_BYTES))
        return WriterFactory(_OrcWriter, (_check(row_type), compression, stripe_bytes))


def _properties(given: Any) -> dict[str, str]:
    if given is None:
        return {}
    return dict(given if isinstance(given, dict) else given.to_dict())


def _compression(name: str) -> str:
    allowed = {"NONE": "uncompressed", "ZLIB": "zlib", "SNAPPY": "snappy", "LZ4": "lz4", "ZSTD": "zstd"}
    if name.upper() not in allowed:
        raise ValueError(f"orc.compress must be one of {', '.join(allowed)}, not {name!r}")
    return allowed[name.upper()]


class _OrcWriter(ColumnarWriter):
    def __init__(self, stream: IO[bytes], row_type: RowTypeInfo, compression: str, stripe_bytes: int) -> None:
        super().__init__(row_type, schema_of(row_type))
        self._writer = pyarrow("pyarrow.orc").ORCWriter(stream, compression=compression, stripe_size=stripe_bytes)
        self._empty = True

    def add_batch(self, batch: Any) -> bool:
        """Take a batch.

        Slices of nested rows are copied first, because Arrow would write them as if they were whole.
        """
        nested = any(map(pyarrow().types.is_nested, batch.schema.types))
        return super().add_batch(batch.take(pyarrow().array(range(batch.num_rows))) if nested else batch)

    def write_group(self, table: Any) -> None:
        self._empty = False
        _refuse_what_would_be_lost(table)
        self._writer.write(table)

    def finish(self) -> None:
        self.flush()
        if self._empty:
            self._writer.write(self._schema.empty_table())
        self._writer.close()


# --- rows that are None ---
def _refuse_what_would_be_lost(table: Any) -> None:
    for name, column in zip(table.column_names, table.columns, strict=True):
        for chunk in column.chunks:
            if _has_null_row(chunk, inside=False) and _loses_values():
                raise UnsupportedOperation(
                    f"field '{name}' has a row that is None inside another row. This version of pyarrow "
                    f"({pyarrow().__version__}) would lose the values behind it in an ORC file: write a row of Nones "
                    "instead, or Parquet"
                )


def _has_null_row(array: Any, inside: bool) -> bool:
    """Return True if a null row is `inside` another row, directly or in a list or map."""
    kinds = pyarrow().types
    if kinds.is_struct(array.type):
        if inside and array.null_count:
            return True
        there = array.filter(array.is_valid())
        return any(_has_null_row(part, inside=True) for part in there.flatten())
    if kinds.is_map(array.type):
        return _has_null_row(array.items, inside)
    if kinds.is_list(array.type):
        return _has_null_row(array.flatten(), inside)
    return False


@cache
def _loses_values() -> bool:
    """Find out by a trial, because later versions may not have this fault."""
    arrow, orc, file = pyarrow(), pyarrow("pyarrow.orc"), BytesIO()
    table = arrow.table({"outer": [{"inner": None}, {"inner": {"value": "there"}}]})
    orc.write_table(table, file)
    return bool(orc.ORCFile(BytesIO(file.getvalue())).read() != table)
