"""SQL databases: PostgreSQL, SQLite and, for plain statements and queries, whatever else SQLAlchemy knows."""

from penstock.connectors.jdbc.jdbc_sink import (
    JdbcConnectionOptions,
    JdbcExactlyOnceOptions,
    JdbcExecutionOptions,
    JdbcLookup,
    JdbcNumericBetweenParametersProvider,
    JdbcSink,
    JdbcSource,
    JdbcSplit,
)

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
