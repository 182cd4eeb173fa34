"""SQL databases: PostgreSQL, SQLite and, for plain statements and queries, every database that SQLAlchemy knows.

Delivery: `JdbcSink.sink` and `JdbcSink.upsert` write at least once; a repeated upsert changes nothing.
`JdbcSink.exactly_once_sink` writes exactly once: the records of a checkpoint are part of it, and once it is complete
they are written in one transaction together with a marker. `JdbcSource` reads every row once into the state of the job.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from penstock.base.arguments import check_arguments
from penstock.common.typeinfo import RowTypeInfo, TypeInformation
from penstock.connectors.jdbc.jdbc_options import (
    JdbcConnectionOptions,
    JdbcExactlyOnceOptions,
    JdbcExecutionOptions,
)
from penstock.connectors.jdbc.jdbc_source import JdbcNumericBetweenParametersProvider, JdbcSource, JdbcSplit
from penstock.connectors.jdbc.jdbc_statements import Sql, Statement, Upsert, UserStatement
from penstock.connectors.jdbc.jdbc_writers import BatchingWriter, OnceCommitter, OnceWriter, Records, arity
from penstock.connectors.jdbc.lookup import JdbcLookup
from penstock.connectors.source_api import Committer, Sink, SinkWriter, WriterContext
from penstock.errors import UnsupportedOperation

__all__ = [
    "JdbcConnectionOptions",
    "JdbcExactlyOnceOptions",
    "JdbcExecutionOptions",
    "JdbcLookup",
    "JdbcNumericBetweenParametersProvider",
    "JdbcSink",
    "JdbcSource",
    "JdbcSplit",
]

_OWN_SQL = ("postgresql", "sqlite")
"""Databases for which this module writes its own SQL."""


@check_arguments
@dataclass(frozen=True)
class JdbcSink(Sink):
    """Writes records into a database. Programs make it with `sink`, `exactly_once_sink` or `upsert`."""

    statement: Statement
    type_info: TypeInformation | None
    connection_options: JdbcConnectionOptions
    execution_options: JdbcExecutionOptions
    exactly_once_options: JdbcExactlyOnceOptions | None = None

    def __post_init__(self) -> None:
        _expect("jdbc_connection_options", self.connection_options, JdbcConnectionOptions)
        _expect("jdbc_execution_options", self.execution_options, JdbcExecutionOptions)
        if self.type_info is not None:
            _expect("type_info", self.type_info, TypeInformation)
            if arity(self.type_info) != self.statement.width:
                raise ValueError(
                    f"{self.type_info.notation} does not have one field for each of the {self.statement.width} "
                    "placeholders of the statement"
                )
        if self.exactly_once_options is not None:
            _expect("exactly_once_options", self.exactly_once_options, JdbcExactlyOnceOptions)
            self._require_own_sql("exactly-once delivery")

    def _require_own_sql(self, what: str) -> None:
        if self.connection_options.dialect not in _OWN_SQL:
            raise UnsupportedOperation(
                f"{what} is available for PostgreSQL and SQLite, not for {self.connection_options.dialect}"
            )

    @staticmethod
    def sink(
        sql: str,
        type_info: TypeInformation | None,
        jdbc_connection_options: JdbcConnectionOptions,
        jdbc_execution_options: JdbcExecutionOptions | None = None,
    ) -> JdbcSink:
        """Execute a statement for each record, at least once. The record's fields fill its `?` in order."""
        statement = UserStatement(Sql.parse(sql))
        return JdbcSink(statement, type_info, jdbc_connection_options, jdbc_execution_options or JdbcExecutionOptions())

    @staticmethod
    def exactly_once_sink(
        sql: str,
        type_info: TypeInformation | None,
        jdbc_connection_options: JdbcConnectionOptions,
        jdbc_execution_options: JdbcExecutionOptions | None = None,
        exactly_once_options: JdbcExactlyOnceOptions | None = None,
    ) -> JdbcSink:
        """Execute a statement for each record exactly once, when the checkpoint behind it is complete.

        The batch size and interval of the execution options have no effect here: all records of a checkpoint are
        written in one transaction.
        """
        statement = UserStatement(Sql.parse(sql))
        execution = jdbc_execution_options or JdbcExecutionOptions()
        once = exactly_once_options or JdbcExactlyOnceOptions()
        return JdbcSink(statement, type_info, jdbc_connection_options, execution, once)

    @staticmethod
    def upsert(
        table: str,
        columns: Sequence[str] | None,
        key_columns: Sequence[str],
        type_info: TypeInformation | None,
        jdbc_connection_options: JdbcConnectionOptions,
        jdbc_execution_options: JdbcExecutionOptions | None = None,
        *,
        exactly_once_options: JdbcExactlyOnceOptions | None = None,
    ) -> JdbcSink:
        """Keep the last record of each key in a table that has a unique index on `key_columns`.

        The columns are filled in order; by default they are the fields of `type_info`. Rows of kind DELETE delete their
        key, rows of kind UPDATE_BEFORE are skipped.
        """
        for name, value in (("columns", columns), ("key_columns", key_columns)):
            if isinstance(value, str):
                raise TypeError(f"{name} is a list of names, not {value!r}")
        if columns is None:
            if not isinstance(type_info, RowTypeInfo):
                raise ValueError("without columns an upsert needs a row type that names them")
            columns = type_info.get_field_names()
        statement = Upsert(table, tuple(columns), tuple(key_columns))
        execution = jdbc_execution_options or JdbcExecutionOptions()
        sink = JdbcSink(statement, type_info, jdbc_connection_options, execution, exactly_once_options)
        sink._require_own_sql("an upsert")
        return sink

    def create_writer(self, context: WriterContext, restored: list[Any]) -> SinkWriter:
        records = Records(self.statement, self.type_info)
        if self.exactly_once_options is None:
            return BatchingWriter(records, self.connection_options, self.execution_options, context)
        # This reports a database that refuses connections at the start, not at the first checkpoint.
        committer = OnceCommitter(self.statement, self.connection_options, self.exactly_once_options)
        committer.markers()
        committer.close()
        return OnceWriter(records, context)

    def create_committer(self) -> Committer | None:
        if self.exactly_once_options is None:
            return None
        return OnceCommitter(self.statement, self.connection_options, self.exactly_once_options)


def _expect(name: str, value: Any, kind: type) -> None:
    if not isinstance(value, kind):
        raise TypeError(f"{name} must be {kind.__name__}, not {value!r}")
