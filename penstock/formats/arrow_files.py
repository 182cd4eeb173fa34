"""Arrow files (Arrow's IPC file format, also called Feather version 2), as rows.

A file is read in pieces of whole record batches: of n batches, the i-th belongs to the piece that holds the byte i/n of
the way through the file.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import IO, Any

from penstock.base.arguments import check_arguments
from penstock.common.composite_types import RowTypeInfo
from penstock.common.serialization import BulkWriterFactory
from penstock.formats.bulk_writers import WriterFactory
from penstock.formats.columnar import ColumnarFile, ColumnarFormat, ColumnarWriter, check_row_type, schema_of
from penstock.formats.file_errors import WatchedFile
from penstock.formats.format_libraries import pyarrow

__all__ = ["ArrowBulkWriters", "ArrowColumnarRowInputFormat"]

_COMPRESSIONS = (None, "lz4", "zstd")


class ArrowColumnarRowInputFormat(ColumnarFormat):
    """Arrow files as rows with the columns of a row type; with all columns if none is given."""

    def read_metadata(self, file: IO[bytes]) -> ColumnarFile:
        return _ArrowFile(file)


class _ArrowFile(ColumnarFile):
    def __init__(self, file: IO[bytes]) -> None:
        self._file = WatchedFile(file)
        self._size = self._file.seek(0, 2)
        self._file.seek(0)
        with self._file.undecodable("not an Arrow file, or a broken one"):
            self._arrow = pyarrow("pyarrow.ipc").open_file(self._file)
            self.schema = self._arrow.schema

    def groups(self, start: int, end: int) -> list[int]:
        """Return the batches of a piece. Their positions are unknown, so all batches are taken to be of one size."""
        count, size = self._arrow.num_record_batches, self._size
        return [batch for batch in range(count) if start <= batch * size // count < end]

    def batches(self, group: int, columns: list[str], most: int) -> Iterator[Any]:
        with self._file.undecodable(f"batch {group} of the Arrow file is broken"):
            batch = self._arrow.get_batch(group).select(columns)
        return (batch.slice(begin, most) for begin in range(0, batch.num_rows, most))


@check_arguments
class ArrowBulkWriters:
    """Makes writers of Arrow files."""

    @staticmethod
    def for_row_type(row_type: RowTypeInfo, compression: str | None = None) -> BulkWriterFactory:
        """Write rows of a type; `compression` is lz4, zstd or None."""
        if compression not in _COMPRESSIONS:
            raise ValueError(f"the compression of an Arrow file is lz4, zstd or None, not {compression!r}")
        return WriterFactory(_ArrowWriter, (check_row_type(row_type), compression))


class _ArrowWriter(ColumnarWriter):
    def __init__(self, stream: IO[bytes], row_type: RowTypeInfo, compression: str | None) -> None:
        super().__init__(row_type, schema_of(row_type))
        ipc = pyarrow("pyarrow.ipc")
        self._writer = ipc.new_file(stream, self._schema, options=ipc.IpcWriteOptions(compression=compression))

    def write_group(self, table: Any) -> None:
        self._writer.write_table(table.combine_chunks())

    def finish(self) -> None:
        self.flush()
        self._writer.close()
