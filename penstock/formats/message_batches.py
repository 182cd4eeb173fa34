"""Reading many messages at once, as columns if possible: faster than one by one, with the same result."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from penstock.common.basic_types import BigDecimalTypeInfo
from penstock.common.composite_types import RowTypeInfo
from penstock.common.types import Row, rows_from_columns
from penstock.errors import SchemaMismatch
from penstock.formats.batch_of_rows import BatchOfRows, GatheredRows, RecordBatch
from penstock.formats.format_libraries import has_arrow

LEAST_TOGETHER = 6
"""Least number of messages that are read together."""
LEAST_COLUMNS = 100
"""Least number of messages that become columns. Work on columns costs about the same for one row and for a hundred."""
LEAST_BATCH = 200
"""Least number of messages that are read as a record batch. That takes tens of calls, each as costly as many values."""
MOST_SKIPPED = 64


class ReadsTogether:
    """A deserialization schema that can read many messages at once, with the same result as one by one."""

    def read_columns(self, messages: list[bytes]) -> list[Sequence[Any]] | None:
        """Return the fields of the messages' rows, as lists; None if the messages must be read one by one."""
        return None

    def read_batch(self, messages: list[bytes]) -> RecordBatch | None:
        """Return the rows of the messages as a record batch; None if the messages must be read in another way."""
        return None


class WritesTogether:
    """A serialization schema that can write many rows at once, with the same result as one by one."""

    def write_batch(self, batch: RecordBatch) -> list[bytes] | None:
        """Return a message for each row of a batch; None if the rows must be written one by one."""
        return None


def writes_together(schema: Any) -> bool:
    """Return True if a schema can write many rows together.

    A class that overrides only `serialize` might write one row differently.
    """
    own = next((kind for kind in type(schema).__mro__ if "serialize" in vars(kind)), None)
    return own is not None and "write_batch" in vars(own)


def reads_together(schema: Any) -> bool:
    """Return True if a schema can read many messages together.

    A class that overrides only `deserialize` might read one message differently.
    """
    own = next((kind for kind in type(schema).__mro__ if "deserialize" in vars(kind)), None)
    return own is not None and any(name in vars(own) for name in ("read_columns", "read_batch"))


class Trying:
    """Decides whether to try a fast way that fails for some messages.

    After each failure in a row, it pauses for longer.
    """

    def __init__(self) -> None:
        self._skip = 0
        self._next = 1

    def is_worth_it(self) -> bool:
        """Return True if the fast way should be tried for the next messages."""
        if self._skip:
            self._skip -= 1
            return False
        return True

    def note_failure(self) -> None:
        """Pause for longer after each failure."""
        self._skip, self._next = self._next, min(2 * self._next, MOST_SKIPPED)

    def note_success(self) -> None:
        """Forget earlier failures."""
        self._next = 1


class MessagesTogether:
    """Reads messages together as the rows that a schema makes of them."""

    def __init__(self, schema: Any) -> None:
        self._schema: ReadsTogether = schema
        self._row_type: RowTypeInfo = schema.get_produced_type()
        self._trying = Trying()
        self._columnar = has_arrow() and says_all(self._row_type)
        self._gathering = Gathering(self._row_type)

    @staticmethod
    def of(schema: Any) -> MessagesTogether | None:
        """Return a reader for a schema; None if the schema reads only one message at a time."""
        declared = schema.get_produced_type() if reads_together(schema) else None
        return MessagesTogether(schema) if isinstance(declared, RowTypeInfo) and declared.field_types else None

    def rows(self, messages: list[bytes]) -> Sequence[Row] | None:
        """Return a row for each message; None if the messages must be read one by one."""
        if len(messages) < LEAST_TOGETHER or not self._trying.is_worth_it():
            return None
        found = self._read(messages)
        if found is None:
            self._trying.note_failure()
        else:
            self._trying.note_success()
        return found

    def _read(self, messages: list[bytes]) -> Sequence[Row] | None:
        batch = self._schema.read_batch(messages) if self._columnar and len(messages) >= LEAST_BATCH else None
        if batch is not None:
            return BatchOfRows(batch)
        columns = self._schema.read_columns(messages)
        return None if columns is None else self._gathering.rows(columns)


class Gathering:
    """Makes rows from fields that were read as lists. Many rows are made only on demand."""

    def __init__(self, row_type: RowTypeInfo) -> None:
        self._row_type = row_type
        self._names = tuple(row_type.get_field_names())
        # Times of day that are read one by one may have a zone, which columns cannot hold.
        self._waits = has_arrow() and bool(self._names) and says_all(row_type) and not holds_times(row_type)

    def rows(self, columns: Sequence[Sequence[Any]]) -> Sequence[Row]:
        if self._waits and len(columns[0]) >= LEAST_COLUMNS:
            return GatheredRows(self._row_type, columns)
        return rows_from_columns((self._names, None, columns))


def holds_times(row_type: RowTypeInfo) -> bool:
    """Return True if a type contains a time of day."""
    from penstock.formats import arrow_types

    return arrow_types.holds_times(row_type)


def schema_of_batches(row_type: RowTypeInfo) -> Any | None:
    """Return the schema of batches that hold exactly the rows of a type; None if there is none."""
    if not has_arrow() or not row_type.field_types or not says_all(row_type):
        return None
    from penstock.formats.columnar import schema_of

    return schema_of(row_type)


def says_all(row_type: RowTypeInfo) -> bool:
    """Return True if columns of Arrow express everything that values of the type do."""
    from penstock.formats.arrow_types import arrow_type_of, holds, type_from

    if holds(row_type, BigDecimalTypeInfo):
        return False  # a column has the same number of digits everywhere
    try:
        return type_from(arrow_type_of(row_type), "") == row_type
    except (SchemaMismatch, TypeError):
        return False
