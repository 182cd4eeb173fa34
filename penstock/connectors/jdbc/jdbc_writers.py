"""The two halves of a JdbcSink: writers that write batches at once, and committers that leave a marker."""

from __future__ import annotations

import json
import reprlib
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from penstock.api.functions.source_functions import SinkFunction
from penstock.common.typeinfo import RowTypeInfo, TupleTypeInfo, TypeInformation
from penstock.connectors.committing.prepared_records import MARKERS_KEPT, Prepared, PreparingWriter
from penstock.connectors.jdbc.database import Database, take_turn
from penstock.connectors.jdbc.jdbc_options import (
    JdbcConnectionOptions,
    JdbcExactlyOnceOptions,
    JdbcExecutionOptions,
)
from penstock.connectors.jdbc.jdbc_statements import Statement
from penstock.connectors.retrying import Retries
from penstock.connectors.source_api import Committer, SinkWriter, WriterContext
from penstock.errors import ConnectorError, TypeMismatch

if TYPE_CHECKING:
    from sqlalchemy import Column, Connection, Table

_short = reprlib.Repr()
_short.maxstring = _short.maxother = 60
_short.maxtuple = 12


def arity(type_info: TypeInformation) -> int:
    """Return the number of fields of a type; 1 if it has none."""
    return type_info.get_arity() if isinstance(type_info, (RowTypeInfo, TupleTypeInfo)) else 1


@dataclass(frozen=True)
class Records:
    """Makes records for a statement from the values of a stream."""

    statement: Statement
    type_info: TypeInformation | None

    def of(self, values: list[Any]) -> list[Any]:
        if self.type_info is None:
            self._check(values)
            return [self.statement.record(value) for value in values]
        fitted = self.type_info.fit(values)
        if not isinstance(self.type_info, (RowTypeInfo, TupleTypeInfo)):
            fitted = [(value,) for value in fitted]
        return [self.statement.record(value) for value in fitted]

    def _check(self, values: list[Any]) -> None:
        for value in values:
            if isinstance(value, (str, bytes, dict)) or not hasattr(value, "__len__"):
                raise TypeMismatch(f"expected a row or a tuple, not {_short.repr(value)}")
            if len(value) != self.statement.width:
                raise TypeMismatch(f"expected {self.statement.width} fields, not {_short.repr(value)}")


class BatchingWriter(SinkWriter):
    """Writes batches, each in its own transaction. Records after the last checkpoint may be written again."""

    def __init__(
        self,
        records: Records,
        connection: JdbcConnectionOptions,
        execution: JdbcExecutionOptions,
        context: WriterContext,
    ) -> None:
        self._make = records
        self._execution = execution
        self._context = context
        self._batch: list[Any] = []
        self._due: int | None = None
        self._database = Database(connection, Retries(execution.max_retries + 1))
        self._database.run(lambda connection: None, "connecting to")

    def write(self, value: Any, context: SinkFunction.Context) -> None:
        self._take([value])

    def write_all(self, values: list[Any], timestamps: list[int | None] | None, context: SinkFunction.Context) -> bool:
        self._take(values)
        return True

    def _take(self, values: list[Any]) -> None:
        if not self._batch and self._execution.batch_interval_ms:
            self._due = self._context.now + self._execution.batch_interval_ms
        self._batch.extend(self._make.of(values))
        size = self._execution.batch_size
        while size and len(self._batch) >= size:
            self._write(size)

    def _write(self, count: int) -> None:
        batch, statement = self._batch[:count], self._make.statement
        try:
            self._database.run(lambda connection: statement.execute(connection, batch), "writing to")
        except ConnectorError as error:
            raise _with_culprit(error, self._database, statement, batch) from error
        del self._batch[:count]

    def flush(self, end_of_input: bool) -> None:
        if self._batch:
            self._write(len(self._batch))
        self._due = None

    def end_epoch(self, now: int) -> None:
        if self._due is not None and now >= self._due:
            self.flush(False)

    def next_due(self) -> int | None:
        return self._due if self._batch else None

    def close(self) -> None:
        self._database.close()


class OnceWriter(PreparingWriter):
    """Keeps records for the committer."""

    def __init__(self, records: Records, context: WriterContext) -> None:
        super().__init__(context, "jdbc")
        self._make = records

    def to_record(self, value: Any, context: SinkFunction.Context) -> Any:
        return self._make.of([value])[0]

    def write_all(self, values: list[Any], timestamps: list[int | None] | None, context: SinkFunction.Context) -> bool:
        self._records.extend(self._make.of(values))
        return True


class OnceCommitter(Committer):
    """Writes the records of a checkpoint and a marker in one transaction.

    Records with a marker are not written again.
    """

    def __init__(
        self, statement: Statement, connection: JdbcConnectionOptions, exactly_once: JdbcExactlyOnceOptions
    ) -> None:
        self._statement = statement
        self._database = Database(connection, Retries(exactly_once.max_commit_attempts))
        self._options = exactly_once
        self._markers: Table | None = None

    def commit(self, committables: list[Prepared]) -> None:
        for prepared in committables:
            self._commit(prepared)

    def _commit(self, prepared: Prepared) -> None:
        markers = self.markers()
        try:
            self._database.run(lambda c: self._commit_once(c, markers, prepared), "committing to")
        except ConnectorError as error:
            raise _with_culprit(error, self._database, self._statement, prepared.records) from error

    def _commit_once(self, connection: Connection, markers: Table, prepared: Prepared) -> None:
        """Write records and marker, unless the marker exists.

        Only the last markers of an origin are kept, but enough of them that a very late commit still finds its own.
        """
        take_turn(connection, prepared.origin, self._options.timeout_sec, self.check_owner)
        ids = _lock_ids(connection, markers, prepared.origin)
        if prepared.id not in ids:
            self.check_owner()
            self._statement.execute(connection, prepared.records)
            _mark(connection, markers, prepared.origin, [*ids, prepared.id][-MARKERS_KEPT:])

    def markers(self) -> Table:
        """Return the table of markers, created if it does not exist."""
        if self._markers is None:
            self._markers = self._database.own_table(self._options.marker_table, _marker_columns)
        return self._markers

    def close(self) -> None:
        self._database.close()


def _marker_columns() -> list[Column[Any]]:
    from sqlalchemy import Column, DateTime, String, Text

    return [
        Column("origin", String(500), primary_key=True),
        Column("ids", Text, nullable=False),
        Column("time", DateTime(timezone=True), nullable=False),
    ]


def _lock_ids(connection: Connection, markers: Table, origin: str) -> list[str]:
    """Return the last ids that were committed for an origin, and lock them until this transaction ends."""
    import sqlalchemy
    from sqlalchemy.dialects import postgresql, sqlite

    insert = postgresql.insert if connection.dialect.name == "postgresql" else sqlite.insert
    now = datetime.now(UTC)
    # The transaction begins with a write, even if it changes nothing. On SQLite it takes the lock, which a read would
    # not get later.
    connection.execute(insert(markers).values(origin=origin, ids="[]", time=now).on_conflict_do_nothing())
    mine = markers.c.origin == origin
    known = connection.execute(sqlalchemy.select(markers.c.ids).where(mine).with_for_update()).scalar_one()
    return list(json.loads(known))


def _mark(connection: Connection, markers: Table, origin: str, ids: list[str]) -> None:
    import sqlalchemy

    mine = markers.c.origin == origin
    connection.execute(sqlalchemy.update(markers).where(mine).values(ids=json.dumps(ids), time=datetime.now(UTC)))


class _NothingWrong(Exception):
    """Ends a transaction without any effect."""


def _with_culprit(
    error: ConnectorError, database: Database, statement: Statement, records: Sequence[Any]
) -> ConnectorError:
    """Return the error with the record that caused it.

    The record is found by writing the records one by one in a transaction that is rolled back.
    """
    from sqlalchemy.exc import DBAPIError

    if not isinstance(error.__cause__, DBAPIError):
        return error
    culprit: list[Any] = []

    def try_each(connection: Connection) -> None:
        for record in records:
            culprit[:] = [record]
            statement.execute(connection, [record])
        raise _NothingWrong

    try:
        database.run(try_each, "writing to")
    except _NothingWrong:
        return error
    except ConnectorError as again:
        if type(again) is type(error) and isinstance(again.__cause__, DBAPIError):
            return type(again)(f"{again}, with the record {_short.repr(culprit[0])}")
    return error
