"""What Parquet and ORC have in common: files of groups of rows, read and written as batches of Arrow."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from typing import Any

from penstock.common.composite_types import RowTypeInfo
from penstock.common.serialization import BulkWriter
from penstock.common.typeinfo import Types
from penstock.common.types import Row, rows_from_columns
from penstock.datastream.connectors.file_formats import FormatReader
from penstock.datastream.formats._arrow_types import (
    arrow_type_of,
    converted,
    from_arrow,
    readable_as,
    to_arrow,
    type_from,
    values_as,
)
from penstock.datastream.formats._libraries import pyarrow
from penstock.errors import SchemaMismatch, TypeMismatch

BATCH_ROWS = 8192
GROUP_BYTES = 32 << 20


def checked_row_type(row_type: Any) -> RowTypeInfo:
    if not isinstance(row_type, RowTypeInfo):
        raise TypeError(f"expected the type of a row, such as Types.ROW_NAMED(...), not {row_type!r}")
    if not row_type.field_types:
        raise ValueError("a columnar file needs at least one column")
    return row_type


# --- reading ---
class Projection:
    """Which columns of a file are read, and as what."""

    def __init__(self, schema: Any, row_type: RowTypeInfo | None, case_sensitive: bool = True) -> None:
        declared = row_type or _type_of_file(schema)
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

    def rows(self, batch: Any) -> list[Row]:
        """The rows of a batch that has the columns in `columns`."""
        columns = [
            converted(values_as(batch.column(name), cast), convert)
            for name, cast, convert in zip(self.columns, self._casts, self._converts, strict=True)
        ]
        return rows_from_columns((self._names, None, columns))


def _type_of_file(schema: Any) -> RowTypeInfo:
    return Types.ROW_NAMED(schema.names, [type_from(field.type, field.name) for field in schema])


def _fields_by_name(schema: Any, case_sensitive: bool) -> dict[str, Any]:
    fields: dict[str, Any] = {}
    for field in schema:
        name = field.name if case_sensitive else field.name.lower()
        if name in fields:
            raise SchemaMismatch(f"column '{field.name}': found more than once")
        fields[name] = field
    return fields


class GroupsReader(FormatReader):
    """Reads groups of rows one after the other; a position is (the group, how many of its rows were read)."""

    def __init__(self, groups: Sequence[int], position: Any) -> None:
        group, taken = (groups[0] if groups else 0, 0) if position is None else position
        self._groups = [index for index in groups if index >= group]
        self._group, self._taken = group, taken
        self._rows: list[Any] = []
        self._next = 0
        self._batches: Iterator[Any] | None = None
        self._skip = taken
        self._fill()

    @abstractmethod
    def batches(self, group: int) -> Iterator[list[Any]]:
        """The rows of a group, in parts."""

    def read(self, most: int) -> list[Any]:
        rows = self._rows[self._next : self._next + most]
        self._next += len(rows)
        self._taken += len(rows)
        self._fill()
        return rows

    def position(self) -> tuple[int, int]:
        return self._group, self._taken

    def _fill(self) -> None:
        """Have at least one row at hand, or be finished."""
        while self._next >= len(self._rows) and not self.finished:
            if self._batches is None:
                if not self._groups:
                    self._rows, self._next, self.finished = [], 0, True
                    return
                self._begin_group()
            self._next_batch()

    def _begin_group(self) -> None:
        if self._groups[0] != self._group:
            self._group, self._taken, self._skip = self._groups[0], 0, 0
        self._batches = self.batches(self._group)

    def _next_batch(self) -> None:
        assert self._batches is not None
        rows = next(self._batches, None)
        if rows is None:
            self._batches = None
            del self._groups[0]
        else:
            self._rows, self._next = rows, min(self._skip, len(rows))
            self._skip -= self._next


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
            if self._bytes >= GROUP_BYTES:
                self.flush()

    def flush(self) -> None:
        self._make_batch()
        if self._batches:
            batches, self._batches, self._bytes = self._batches, [], 0
            self.write_group(pyarrow().Table.from_batches(batches))

    def _make_batch(self) -> None:
        if not self._rows:
            return
        rows, self._rows = self._rows, []
        columns = zip(*self._row_type.fit(rows), strict=True)
        arrays = [
            self._array(field, converted(column, convert))
            for field, column, convert in zip(self._schema, columns, self._converts, strict=True)
        ]
        batch = pyarrow().RecordBatch.from_arrays(arrays, schema=self._schema)
        self._batches.append(batch)
        self._bytes += batch.nbytes

    @staticmethod
    def _array(field: Any, values: Sequence[Any]) -> Any:
        arrow = pyarrow()
        try:
            return arrow.array(values, field.type)
        except (arrow.ArrowException, OverflowError, ValueError, TypeError) as error:
            raise TypeMismatch(f"column '{field.name}' cannot be written as {field.type}: {error}") from None


def schema_of(row_type: RowTypeInfo, utc: bool = False) -> Any:
    fields = zip(row_type.get_field_names(), row_type.field_types, strict=True)
    return pyarrow().schema([(name, arrow_type_of(declared, utc)) for name, declared in fields])
