"""Records as columns: an Arrow record batch, with the event time of its rows beside it.

Arrow, and the module that knows its types, are imported only when there are columns.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

from penstock.api.functions.key_selectors import ColumnKeys, FieldKey, SeveralKeys
from penstock.common.composite_types import RowTypeInfo
from penstock.common.type_information import TypeInformation
from penstock.common.types import Row, rows_to_columns
from penstock.engine.records.elements import Timestamps, Values
from penstock.engine.state.key_groups import hashes_of_numbers, hashes_of_tuples, stable_hash
from penstock.errors import SchemaMismatch, TypeMismatch
from penstock.formats.format_libraries import pyarrow

if TYPE_CHECKING:
    from penstock.formats.batch_of_rows import GatheredRows
    from penstock.formats.columnar import Projection

RecordBatch = Any
"""A pyarrow.RecordBatch."""
Array = Any
"""A pyarrow.Array."""


class Keys(NamedTuple):
    """The keys of some rows. `distinct` holds each key once."""

    distinct: Sequence[Any]
    which: Array
    """The position of each row's key in `distinct`."""

    def codes(self) -> Any:
        """Return the position of each row's key in `distinct`, as a numpy array."""
        return self.which.to_numpy(zero_copy_only=False)

    def spread(self, of_distinct: list[int]) -> Array:
        """Return, for each row, the entry of this list that belongs to its key."""
        return pyarrow().array(of_distinct).take(self.which)


class Columns:
    """A record batch that never changes, the timestamps of its rows, and their declared type.

    Its rows are Rows with the names of the columns; they are made on demand.
    """

    __slots__ = ("batch", "row_type", "times")

    def __init__(self, batch: RecordBatch, times: Array | None = None, row_type: RowTypeInfo | None = None) -> None:
        """Create columns.

        `times` are 64-bit milliseconds, null for a row without a timestamp. They are None if no row has one.
        """
        self.batch = batch
        self.times = times
        self.row_type = row_type

    @classmethod
    def of_rows(cls, rows: Values, timestamps: Timestamps, row_type: RowTypeInfo) -> Columns:
        """Turn values that fit a row type into columns. Rows that retract other rows cannot become columns."""
        from penstock.formats.arrow_types import convert_column, to_arrow

        arrow = pyarrow()
        packed = rows_to_columns(row_type.fit(rows))
        if packed is None or packed[1] is not None:
            raise TypeMismatch(f"only inserted rows with the same fields can become columns of {row_type.notation}")
        schema = _schema_of(row_type)
        arrays = [
            arrow.array(convert_column(column, to_arrow(declared)), field.type)
            for column, declared, field in zip(packed[2], row_type.field_types, schema, strict=True)
        ]
        times = None if timestamps is None else times_of(timestamps)
        return cls(arrow.RecordBatch.from_arrays(arrays, schema=schema), times, row_type)

    def __len__(self) -> int:
        return int(self.batch.num_rows)

    # --- as rows ---
    def rows(self) -> list[Row]:
        """Return the rows, in their declared form if one is declared."""
        return _rows(self.batch, self.row_type)

    def timestamps(self) -> Timestamps:
        """Return the timestamps of the rows, or None if no row has one."""
        if self.times is None or self.times.null_count == len(self.times):
            return None
        stamps: list[int | None] = self.times.to_pylist()
        return stamps

    def is_timed(self) -> bool:
        """Return True if every row has a timestamp."""
        return self.times is not None and not self.times.null_count

    def stamp_from(self, field: int | str) -> Columns | None:
        """Return the same rows with the moments in a column as timestamps.

        The result is None if the column is missing, holds no moments, or has gaps.
        """
        index = self.column_at(field)
        times = None if index is None else _millis_in(self.batch.column(index))
        return None if times is None else Columns(self.batch, times, self.row_type)

    def latest(self) -> int | None:
        """Return the latest timestamp, or None if a row has none."""
        if not self.is_timed():
            return None
        latest: int = pyarrow("pyarrow.compute").max(self.times).as_py()
        return latest

    def in_form_of(self, declared: TypeInformation) -> Columns | None:
        """Return the same columns with rows in the form of a type, or None if it is not a type of these columns."""
        if declared == self.row_type:
            return self
        if not isinstance(declared, RowTypeInfo) or declared.get_field_names() != self.batch.schema.names:
            return None
        try:
            _projection(self.batch.schema, declared)
        except SchemaMismatch:
            return None
        return Columns(self.batch, self.times, declared)

    def in_types_of(self, declared: RowTypeInfo) -> Columns:
        """Return the same columns with the Arrow types of a declared type.

        Raise SchemaMismatch if a value could be lost.
        """
        from penstock.formats.arrow_types import cast_as, readable_as

        arrow, batch, schema = pyarrow(), self.batch, _schema_of(declared)
        if batch.schema.equals(schema):
            return self if self.row_type == declared else Columns(batch, self.times, declared)
        if batch.schema.names != schema.names:
            raise SchemaMismatch(f"found the columns {batch.schema.names}, wanted {declared.notation}")
        arrays = [
            cast_as(column, readable_as(column.type, part, field.name)).cast(field.type)
            for column, part, field in zip(batch.columns, declared.field_types, schema, strict=True)
        ]
        return Columns(arrow.RecordBatch.from_arrays(arrays, schema=schema), self.times, declared)

    def own_row_type(self) -> RowTypeInfo:
        """Return the declared type of the rows, or the type that follows from the columns."""
        return _type_in(self.batch.schema) if self.row_type is None else self.row_type

    def require_rows(self) -> None:
        """Raise SchemaMismatch if a column has a type that rows cannot have."""
        _projection(self.batch.schema, self.row_type)

    # --- parts ---
    def take(self, positions: Array) -> Columns:
        """Return the rows at these positions."""
        times = None if self.times is None else self.times.take(positions)
        return Columns(self.batch.take(positions), times, self.row_type)

    def filter(self, mask: Array) -> Columns:
        """Return the rows for which the mask is true."""
        times = None if self.times is None else self.times.filter(mask)
        return Columns(self.batch.filter(mask), times, self.row_type)

    def slice(self, first: int, count: int) -> Columns:
        """Return neighbouring rows without copying them."""
        times = None if self.times is None else self.times.slice(first, count)
        return Columns(self.batch.slice(first, count), times, self.row_type)

    def with_batch(self, batch: RecordBatch) -> Columns:
        """Return other columns for the same rows."""
        return Columns(batch, self.times)

    def scatter(self, targets: Sequence[int] | Array) -> Iterator[tuple[int, Columns]]:
        """Iterate over (target, its rows in their order) for each target that a row has."""
        compute, targets = pyarrow("pyarrow.compute"), pyarrow().array(targets)
        found = sorted(compute.value_counts(targets).to_pylist(), key=lambda counted: counted["values"])
        if len(found) == 1:
            yield found[0]["values"], self
            return
        in_order, first = self.take(compute.array_sort_indices(targets)), 0
        for counted in found:
            yield counted["values"], in_order.slice(first, counted["counts"])
            first += counted["counts"]

    # --- keys ---
    def keys(self, selector: Callable[[Any], Any]) -> Keys | None:
        """Return the keys of the rows, or None if the selector does not name columns."""
        if isinstance(selector, ColumnKeys):
            return _together([_encode_keys(self.batch.column(index)) for index in selector.positions], len(self))
        if isinstance(selector, SeveralKeys):
            found = [self._column_of(part) for part in selector.parts]
            named = [self._keys_in(index) for index in found if index is not None]
            return _tuples(named) if len(named) == len(found) else None
        index = self._column_of(selector)
        return None if index is None else self._keys_in(index)

    def key_hashes(self, selector: Callable[[Any], Any]) -> Any | None:
        """Return the stable hash of each row's key, as a numpy array.

        The result is None if the selector names no columns of a table.
        """
        if not isinstance(selector, ColumnKeys) or not selector.positions:
            return None
        hashes = [_hashes(self.batch.column(index)) for index in selector.positions]
        return hashes[0] if len(hashes) == 1 else hashes_of_tuples(hashes)

    def _keys_in(self, index: int) -> Keys:
        encoded = self.batch.column(index).dictionary_encode("encode")
        declared = None if self.row_type is None else self.row_type.field_types[index]
        return Keys(_values(encoded.dictionary, declared), encoded.indices)

    def _column_of(self, selector: Callable[[Any], Any]) -> int | None:
        if not isinstance(selector, FieldKey) or len(selector.path) != 1:
            return None
        index = self.column_at(selector.path[0])
        return None if index is None or _is_encoded(self.batch.schema.field(index).type) else index

    def column_at(self, field: int | str) -> int | None:
        """Return the position of a field, or None if there is no such column."""
        index = field if isinstance(field, int) else self.batch.schema.get_field_index(field)
        return index if 0 <= index < len(self.batch.schema) else None


class GatheredColumns(Columns):
    """Columns of rows whose fields are in lists. They make a batch or rows only on demand."""

    __slots__ = ("_gathered", "_stamps", "_times")

    def __init__(self, gathered: GatheredRows, stamps: Timestamps) -> None:
        self._gathered = gathered
        self._stamps = stamps
        self._times: Array | None = None
        self.row_type = gathered.row_type

    def __len__(self) -> int:
        return len(self._gathered)

    @property
    def batch(self) -> RecordBatch:
        return self._gathered.batch

    @property
    def times(self) -> Array | None:  # type: ignore[override]
        if self._times is None and self._stamps is not None:
            self._times = times_of(self._stamps)
        return self._times

    def rows(self) -> list[Row]:
        return self._gathered.row_type.fit(self._gathered.rows())

    def timestamps(self) -> Timestamps:
        return self._stamps


def times_of(stamps: Sequence[int | None]) -> Array:
    """Return timestamps as a column."""
    return pyarrow().array(stamps, pyarrow().int64())


def _millis_in(column: Array) -> Array | None:
    """Return moments as whole milliseconds, rounded down.

    The result is None if the column holds no moments, or has gaps.
    """
    arrow, compute, kind = pyarrow(), pyarrow("pyarrow.compute"), column.type
    if column.null_count:
        return None
    if arrow.types.is_signed_integer(kind):
        return column.cast(arrow.int64())
    if not arrow.types.is_timestamp(kind):
        return None
    return compute.floor_temporal(column, unit="millisecond").cast(arrow.timestamp("ms")).cast(arrow.int64())


def _is_encoded(kind: Any) -> bool:
    types = pyarrow().types
    return bool(types.is_dictionary(kind) or types.is_nested(kind))


def _together(parts: list[Keys], rows: int) -> Keys:
    if len(parts) == 1:
        return parts[0]
    return _tuples(parts) if parts else Keys([()], pyarrow().array([0] * rows))


def _tuples(parts: list[Keys]) -> Keys:
    """Return the keys of several columns.

    Each column is already encoded as numbers; this function encodes the tuples of these numbers.
    """
    codes = parts[0].which.to_numpy(zero_copy_only=False)
    places: list[Any] = []  # for each column: the positions of its values, by key
    for part in parts[1:]:
        width = len(part.distinct)
        combined = codes.astype("int64") * width + part.which.to_numpy(zero_copy_only=False)
        encoded = pyarrow().array(combined).dictionary_encode()
        left, right = divmod(encoded.dictionary.to_numpy(), width)
        places = [*([own[left] for own in places] or [left]), right]
        codes = encoded.indices.to_numpy(zero_copy_only=False)
    if not places:
        return Keys([(key,) for key in parts[0].distinct], parts[0].which)
    values = [map(part.distinct.__getitem__, own.tolist()) for part, own in zip(parts, places, strict=True)]
    return Keys(list(zip(*values, strict=True)), pyarrow().array(codes))


# --- values of tables ---
def _encode_keys(column: Array) -> Keys:
    if not _is_encoded(column.type):
        encoded = column.dictionary_encode("encode")
        return Keys(state_values(encoded.dictionary), encoded.indices)
    numbers: dict[Any, int] = {}
    which = [numbers.setdefault(key, len(numbers)) for key in state_values(column)]
    return Keys(list(numbers), pyarrow().array(which, pyarrow().int32()))


def _hashes(column: Array) -> Any:
    """Return the stable hashes of the values of a column.

    Each value is looked at, unless all are whole numbers.
    """
    if pyarrow().types.is_signed_integer(column.type) and not column.null_count:
        found = hashes_of_numbers(column.cast(pyarrow().int64()).to_numpy())
        if found is not None:
            return found
    keys = _encode_keys(column)
    return keys.spread(list(map(stable_hash, keys.distinct))).to_numpy()


def state_values(column: Array) -> list[Any]:
    """Return the values of a column in the form of keys and state of tables.

    Moments become numbers, and nested values become tuples.
    """
    types, kind = pyarrow().types, column.type
    if types.is_dictionary(kind):
        return state_values(column.dictionary_decode())
    if types.is_date32(kind):
        column = column.cast(pyarrow().int32())
    elif types.is_timestamp(kind) or types.is_time64(kind) or types.is_duration(kind):
        column = column.cast(pyarrow().int64())
    values: list[Any] = column.to_pylist()
    return list(map(frozen_nested, values)) if types.is_nested(kind) else values


def frozen_nested(value: Any) -> Any:
    """Turn a nested value into a tuple: a struct by its fields, a list by its elements, a map by its pairs."""
    if isinstance(value, dict):
        return tuple(map(frozen_nested, value.values()))
    return tuple(map(frozen_nested, value)) if isinstance(value, list | tuple) else value


@lru_cache(maxsize=128)
def _schema_of(row_type: RowTypeInfo) -> Any:
    from penstock.formats.columnar import schema_of

    return schema_of(row_type)


@lru_cache(maxsize=128)
def _type_in(schema: Any) -> RowTypeInfo:
    from penstock.formats.columnar import type_of_file

    return type_of_file(schema)


@lru_cache(maxsize=128)
def _projection(schema: Any, row_type: RowTypeInfo | None) -> Projection:
    from penstock.formats.columnar import Projection

    return Projection(schema, row_type)


def _rows(batch: RecordBatch, row_type: RowTypeInfo | None) -> list[Row]:
    rows = _projection(batch.schema, row_type).rows(batch)
    return rows if row_type is None else row_type.fit(rows)


def _values(column: Array, declared: TypeInformation | None) -> Sequence[Any]:
    """Return the values that the rows would have in this column."""
    from penstock.formats.arrow_types import convert_column, from_arrow, readable_as, type_from, values_as

    wanted = type_from(column.type, "key") if declared is None else declared
    values = convert_column(values_as(column, readable_as(column.type, wanted, "key")), from_arrow(wanted))
    return values if declared is None else declared.fit_column(values)


# --- on their way to another slot ---
def pack_columns(columns: Sequence[Columns]) -> bytes:
    """Pack neighbouring columns that go together into bytes in Arrow's format, mostly as one batch.

    Timestamps are the last column.
    """
    arrow, ipc = pyarrow(), pyarrow("pyarrow.ipc")
    batches = [_with_times(one) for one in columns]
    if len(batches) > 1:
        batches = arrow.Table.from_batches(batches).combine_chunks().to_batches()
    stream = arrow.BufferOutputStream()
    with ipc.new_stream(stream, batches[0].schema) as writer:
        for batch in batches:
            writer.write_batch(batch)
    made: bytes = stream.getvalue().to_pybytes()
    return made


def go_together(left: Columns, right: Columns) -> bool:
    """Return True if two chunks of columns can be packed into one."""
    same_form = left.row_type == right.row_type and (left.times is None) is (right.times is None)
    return same_form and bool(left.batch.schema.equals(right.batch.schema, check_metadata=True))


def unpack_columns(data: bytes, timed: bool, row_type: RowTypeInfo | None) -> Iterator[Columns]:
    """Iterate over the columns that `pack_columns` put into these bytes."""
    reader = pyarrow("pyarrow.ipc").open_stream(data)
    schema = reader.schema.remove(len(reader.schema) - 1) if timed else reader.schema
    for batch in reader:
        arrays = batch.columns
        times = arrays.pop() if timed else None
        yield Columns(pyarrow().RecordBatch.from_arrays(arrays, schema=schema), times, row_type)


def _with_times(columns: Columns) -> RecordBatch:
    if columns.times is None:
        return columns.batch
    arrow, batch = pyarrow(), columns.batch
    schema = batch.schema.append(arrow.field("event time", arrow.int64()))
    return arrow.RecordBatch.from_arrays([*batch.columns, columns.times], schema=schema)
