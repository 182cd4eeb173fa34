"""Messages of a table as columns, and columns as messages, with the same result as through rows."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

import pyarrow as pa

from penstock.formats.message_batches import ReadsTogether, WritesTogether
from penstock.table.connectors.table_formats import Texts, moment_text
from penstock.table.logical.nodes import Columns
from penstock.table.types import data_types as t
from penstock.table.types.arrow_forms import array_of, arrow_type

LEAST_BATCH = 50
"""Smallest number of messages that are read as a record batch.

Each call of a record batch costs as much as a hundred values.
"""
READING_FAILS = (pa.ArrowException, ValueError, TypeError, KeyError, ArithmeticError, AttributeError)
"""Errors of a value that does not fit its column. Reading row by row identifies the value."""
_WHOLE = (t.TinyIntType, t.SmallIntType, t.IntType, t.BigIntType)


class MessageColumns(ABC):
    """Reads messages as the columns of a table."""

    @abstractmethod
    def arrays(self, messages: list[bytes]) -> list[pa.Array] | None:
        """Return the columns of the table, with a value for each message; None if the rows must be read one by one."""


class SchemaColumns(MessageColumns):
    """Reads messages with a deserialization schema."""

    def __init__(self, schema: ReadsTogether, columns: Columns) -> None:
        self._schema = schema
        self._types = [column.type for column in columns]

    def arrays(self, messages: list[bytes]) -> list[pa.Array] | None:
        if not messages:
            return [array_of([], declared) for declared in self._types]
        try:
            return self._of_batch(messages) or self._of_lists(messages)
        except READING_FAILS:
            return None

    def _of_batch(self, messages: list[bytes]) -> list[pa.Array] | None:
        batch = self._schema.read_batch(messages) if len(messages) >= LEAST_BATCH else None
        if batch is None:
            return None
        return [_fit(column, declared) for column, declared in zip(batch.columns, self._types, strict=True)]

    def _of_lists(self, messages: list[bytes]) -> list[pa.Array] | None:
        found = self._schema.read_columns(messages)
        if found is None:
            return None
        return [array_of(values, declared) for values, declared in zip(found, self._types, strict=True)]


def _fit(column: pa.Array, declared: t.DataType) -> pa.Array:
    """Cast a column to the form of its type. Only casts that keep every value are allowed."""
    wanted = arrow_type(declared)
    if column.type == wanted:
        return column
    if isinstance(declared, _WHOLE) and pa.types.is_signed_integer(column.type):
        return column.cast(wanted)
    if isinstance(declared, t.LocalZonedTimestampType) and column.type == pa.timestamp("us"):
        return column.cast(wanted)
    raise ValueError(f"{column.type} is not {wanted}")


class RawColumn(MessageColumns):
    """Reads messages that are one text or some bytes each."""

    def __init__(self, declared: t.DataType) -> None:
        self._type = arrow_type(declared)

    def arrays(self, messages: list[bytes]) -> list[pa.Array] | None:
        try:
            return [pa.array(messages, pa.binary()).cast(self._type)]
        except pa.ArrowException:
            return None


# --- writing ---
PLAIN = (
    *(pa.bool_(), pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.float64(), pa.string()),
    *(pa.date32(), pa.timestamp("us")),
)
"""Types of columns whose values equal those of rows made from them."""


class TextColumns(WritesTogether):
    """Writes rows as texts, with moments in SQL's form."""

    def __init__(self, write: Callable[[list[list[Any]]], list[bytes] | None], texts: Texts) -> None:
        self._write = write
        self._texts = texts

    def write_batch(self, batch: pa.RecordBatch) -> list[bytes] | None:
        if any(field.type not in PLAIN for field in batch.schema):
            return None
        columns = [column.to_pylist() for column in batch.columns]
        for place, form, precision in self._texts.places:
            moments = columns[place]
            columns[place] = [None if one is None else moment_text(one, form, precision) for one in moments]
        found = self._write(columns)
        return None if found is None else [message.rstrip(b"\n") for message in found]
