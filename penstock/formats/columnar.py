"""The common part of Parquet and ORC: files of groups of rows, read and written as batches of Arrow."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import IO, Any

from penstock.base.arguments import check_arguments
from penstock.common.composite_types import RowTypeInfo, as_row_type_info
from penstock.common.serialization import BulkWriter
from penstock.common.type_information import TypeInformation
from penstock.common.typeinfo import Types
from penstock.common.types import Row, rows_from_columns
from penstock.errors import SchemaMismatch, TypeMismatch
from penstock.formats.arrow_types import (
    arrow_type_of,
    cast_as,
    convert_column,
    from_arrow,
    holds,
    readable_as,
    to_arrow,
    type_from,
    values_as,
)
from penstock.formats.batch_of_rows import BatchOfRows
from penstock.formats.block_files import BlocksReader
from penstock.formats.contracts import BulkFormat, FormatReader, Reject
from penstock.formats.decimal_values import DecimalTypeInfo, stream_type_of
from penstock.formats.format_libraries import pyarrow

BATCH_ROWS = 8192
GROUP_BYTES = 32 << 20


def check_row_type(row_type: Any) -> RowTypeInfo:
    """Return the row type, or raise if a columnar file cannot hold such rows."""
    checked = as_row_type_info(row_type)
    if not checked.field_types:
        raise ValueError("a columnar file needs at least one column")
    arrow_type_of(checked)
    return checked


# --- reading ---
class Projection:
    """The columns of a file that are read, with their types."""

    def __init__(self, schema: Any, row_type: RowTypeInfo | None, case_sensitive: bool = True) -> None:
        declared = row_type or type_of_file(schema)
        self._names = tuple(declared.get_field_names())
        fields = _fields_by_name(schema, case_sensitive)
        self.columns: list[str] = []
        self._casts: list[Any] = []
        for name, wanted in zip(self._names, declared.field_types, strict=True):
            field = fields.get(name if case_sensitive else name.lower())
            if field is None:
                raise SchemaMismatch(
                    f"column '{name}': not there, wanted {wanted.notation}; found {', '.join(schema.names)}"
                )
            self.columns.append(field.name)
            self._casts.append(readable_as(field.type, wanted, name))
        self._converts = [from_arrow(part) for part in declared.field_types]
        self._schema = self._schema_of_batches(schema, declared)

    def _schema_of_batches(self, schema: Any, declared: RowTypeInfo) -> Any | None:
        """Return the schema of batches that hold the same as `rows`; None if Arrow's types cannot express it."""
        said = zip(self.columns, declared.field_types, self._casts, strict=True)
        if not all(_says_all(schema.field(name).type, wanted, cast) for name, wanted, cast in said):
            return None
        return pyarrow().schema(list(zip(self._names, self._casts, strict=True)))

    def records(self, batch: Any) -> Sequence[Row]:
        """Return the same rows as `rows`, as a batch if that is possible."""
        return self.rows(batch) if self._schema is None else BatchOfRows(self._fit(batch, self._schema))

    def _fit(self, batch: Any, schema: Any) -> Any:
        arrays = [cast_as(batch.column(name), cast) for name, cast in zip(self.columns, self._casts, strict=True)]
        return pyarrow().RecordBatch.from_arrays(arrays, schema=schema)

    def rows(self, batch: Any) -> list[Row]:
        """Return the rows of a batch that has the columns in `columns`."""
        columns = [
            convert_column(values_as(batch.column(name), cast), convert)
            for name, cast, convert in zip(self.columns, self._casts, self._converts, strict=True)
        ]
        return rows_from_columns((self._names, None, columns))


def _says_all(found: Any, wanted: TypeInformation, cast: Any) -> bool:
    """Return True if values read by their column's type alone equal values of the wanted type."""
    try:
        said = type_from(cast, "")
    except SchemaMismatch:
        return False
    exact = not holds(wanted, DecimalTypeInfo) or found == arrow_type_of(wanted)
    return exact and said == stream_type_of(wanted)


def type_of_file(schema: Any) -> RowTypeInfo:
    """Return the row type of a file from its schema, if none is declared."""
    return Types.ROW_NAMED(schema.names, [type_from(field.type, field.name) for field in schema])


def _fields_by_name(schema: Any, case_sensitive: bool) -> dict[str, Any]:
    fields: dict[str, Any] = {}
    for field in schema:
        name = field.name if case_sensitive else field.name.lower()
        if name in fields:
            raise SchemaMismatch(f"column '{field.name}': found more than once")
        fields[name] = field
    return fields


class ColumnarFile(ABC):
    """A file whose metadata has been read. Its groups of rows are numbered from 0."""

    schema: Any

    @abstractmethod
    def groups(self, start: int, end: int) -> list[int]:
        """Return the groups that belong to the piece of the file between two bytes."""

    @abstractmethod
    def batches(self, group: int, columns: list[str], most: int) -> Iterator[Any]:
        """Return some columns of a group, as Arrow batches with at most this many rows."""

    def reader(self, projection: Projection, groups: list[int], position: Any, batch_size: int) -> FormatReader:
        """Return a reader of some groups. A position is (the group, the number of its rows that were read)."""
        first, taken = (groups[0] if groups else 0, 0) if position is None else position
        blocks = ((group, self._records(group, projection, batch_size)) for group in groups if group >= first)
        return BlocksReader(blocks, (first, taken))

    def _records(self, group: int, projection: Projection, batch_size: int) -> Iterator[Sequence[Any]]:
        return map(projection.records, self.batches(group, projection.columns, batch_size))


@check_arguments
@dataclass(frozen=True)
class ColumnarFormat(BulkFormat):
    """Files as rows with the columns of a row type; with all columns if none is given.

    `hadoop_config` and `is_utc_timestamp` are there for PyFlink programs and have no effect: there is no Hadoop, and no
    time is ever converted to a local zone.
    """

    row_type: RowTypeInfo | None = None
    hadoop_config: Any = None
    batch_size: int = 4096
    is_utc_timestamp: bool = False
    is_case_sensitive: bool = True
    splittable = True

    def __post_init__(self) -> None:
        if self.row_type is not None:
            object.__setattr__(self, "row_type", check_row_type(self.row_type))
            self.check_type(self.row_type)
        if self.batch_size < 1:
            raise ValueError(f"the batch size must be at least 1, but is {self.batch_size}")

    def check_type(self, row_type: RowTypeInfo) -> None:
        """Raise if files of this format cannot hold such rows."""
        check_row_type(row_type)

    @abstractmethod
    def read_metadata(self, file: IO[bytes]) -> ColumnarFile:
        """Read the schema of a file and the places of its groups of rows."""

    def open(self, file: IO[bytes], start: int, end: int, position: Any, reject: Reject) -> FormatReader:
        opened = self.read_metadata(file)
        projection = Projection(opened.schema, self.row_type, self.is_case_sensitive)
        return opened.reader(projection, opened.groups(start, end), position, self.batch_size)

    def get_produced_type(self) -> TypeInformation | None:
        return None if self.row_type is None else stream_type_of(self.row_type)


# --- writing ---
class ColumnarWriter(BulkWriter):
    """Gathers rows into batches, and batches into groups."""

    def __init__(self, row_type: RowTypeInfo, schema: Any) -> None:
        self._row_type = row_type
        self._converts = [to_arrow(part) for part in row_type.field_types]
        self._schema = schema
        self._rows: list[Any] = []
        self._batches: list[Any] = []
        self._bytes = 0

    @abstractmethod
    def write_group(self, table: Any) -> None:
        """Write a table into the file."""

    def add_element(self, element: Any) -> None:
        self._rows.append(element)
        if len(self._rows) >= BATCH_ROWS:
            self._make_batch()

    def add_batch(self, batch: Any) -> bool:
        """Take a batch if its columns have the declared names and fit the declared types.

        Otherwise its rows are added.
        """
        fitted = self._fit(batch)
        if fitted is None:
            return False
        self._make_batch()
        self._keep(fitted)
        return True

    def _fit(self, batch: Any) -> Any | None:
        arrow, declared = pyarrow(), self._row_type
        if batch.schema.names != declared.get_field_names():
            return None
        try:
            given = zip(batch.columns, declared.field_types, self._schema, strict=True)
            arrays = [_cast_to_field(column, part, field) for column, part, field in given]
        except (SchemaMismatch, arrow.ArrowException):
            return None
        return arrow.RecordBatch.from_arrays(arrays, schema=self._schema)

    def flush(self) -> None:
        self._make_batch()
        self._write_batches()

    def _write_batches(self) -> None:
        if self._batches:
            batches, self._batches, self._bytes = self._batches, [], 0
            self.write_group(pyarrow().Table.from_batches(batches))

    def _make_batch(self) -> None:
        if not self._rows:
            return
        rows, self._rows = self._rows, []
        columns = zip(*self._row_type.fit(rows), strict=True)
        arrays = [
            self._array(field, convert_column(column, convert))
            for field, column, convert in zip(self._schema, columns, self._converts, strict=True)
        ]
        self._keep(pyarrow().RecordBatch.from_arrays(arrays, schema=self._schema))

    def _keep(self, batch: Any) -> None:
        self._batches.append(batch)
        self._bytes += batch.nbytes
        if self._bytes >= GROUP_BYTES:
            self._write_batches()

    @staticmethod
    def _array(field: Any, values: Sequence[Any]) -> Any:
        arrow = pyarrow()
        try:
            return arrow.array(values, field.type)
        except (arrow.ArrowException, OverflowError, ValueError, TypeError) as error:
            raise TypeMismatch(f"column '{field.name}' cannot be written as {field.type}: {error}") from None


def _cast_to_field(column: Any, declared: TypeInformation, field: Any) -> Any:
    """Cast a column to the form in which the values of its rows would be written."""
    if holds(declared, DecimalTypeInfo) and column.type != field.type:
        raise SchemaMismatch(f"column '{field.name}': decimals are rounded one by one")
    return cast_as(column, readable_as(column.type, declared, field.name)).cast(field.type)


def schema_of(row_type: RowTypeInfo, utc: bool = False) -> Any:
    """Return the Arrow schema of a row type. If `utc`, times are marked as being of UTC."""
    fields = zip(row_type.get_field_names(), row_type.field_types, strict=True)
    return pyarrow().schema([(name, arrow_type_of(declared, utc)) for name, declared in fields])
