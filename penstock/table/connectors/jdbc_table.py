"""The connector 'jdbc': tables of SQL databases."""

from __future__ import annotations

from typing import Any

from penstock.common.watermark_strategy import WatermarkStrategy
from penstock.connectors.jdbc.jdbc_options import JdbcConnectionOptions, JdbcExactlyOnceOptions, JdbcExecutionOptions
from penstock.connectors.jdbc.jdbc_sink import JdbcSink
from penstock.connectors.jdbc.jdbc_source import JdbcSource
from penstock.connectors.jdbc.lookup import JdbcLookup
from penstock.datastream.data_stream import DataStream
from penstock.datastream.stream_execution_environment import StreamExecutionEnvironment
from penstock.errors import ValidationException
from penstock.table.connectors.contract import Connector, Declared, Options
from penstock.table.connectors.table_formats import row_type
from penstock.table.logical.nodes import Columns


class Jdbc(Connector):
    """Reads a table once, writes rows or upserts, and answers lookups."""

    name = "jdbc"

    def source(self, env: StreamExecutionEnvironment, table: Declared) -> DataStream:
        options = table.options
        connection, name = _connection(options), options.require("table-name")
        partition = options.text("scan.partition.column")
        count = options.whole("scan.partition.num") or 1
        size = options.whole("scan.fetch-size") or 1000
        _allow_options(options)
        options.refuse_unknown()
        key: Any = partition or [table.columns[index].name for index in table.key]
        if not key:
            raise ValidationException(
                f"table {table.name}: the connector must read the rows in an order that survives a restart: "
                "declare a PRIMARY KEY ... NOT "
                "ENFORCED, or set 'scan.partition.column'"
            )
        query = f"SELECT {_column_list(table.columns)} FROM {name}"
        source = JdbcSource(
            connection,
            query,
            row_type(table.columns),
            key=key,
            partitions=count if partition else 1,
            fetch_size=max(size, 1),
        )
        return env.from_source(source, WatermarkStrategy.no_watermarks(), f"jdbc {table.name}")

    def takes_changes(self, table: Declared) -> bool:
        return bool(table.key)

    def is_upsert_sink(self, table: Declared, changelog: bool) -> bool:
        return bool(table.key)

    def sink(self, stream: DataStream, table: Declared, changelog: bool) -> None:
        options = table.options
        connection, name = _connection(options), options.require("table-name")
        execution = JdbcExecutionOptions(
            batch_interval_ms=options.millis("sink.buffer-flush.interval", 1000) or 0,
            batch_size=options.whole("sink.buffer-flush.max-rows", 100) or 1,
            max_retries=options.whole("sink.max-retries", 3) or 0,
        )
        guarantee = options.choice("sink.delivery-guarantee", ("at-least-once", "exactly-once"), "at-least-once")
        _allow_options(options)
        options.refuse_unknown()
        kinds, names = row_type(table.columns), [column.name for column in table.columns]
        once = JdbcExactlyOnceOptions() if guarantee == "exactly-once" else None
        if table.key:
            keys = [names[index] for index in table.key]
            sink = JdbcSink.upsert(name, names, keys, kinds, connection, execution, exactly_once_options=once)
        else:
            places = ", ".join("?" for _ in names)
            insert = f"INSERT INTO {name} ({_column_list(table.columns)}) VALUES ({places})"
            sink = (
                JdbcSink.sink(insert, kinds, connection, execution)
                if once is None
                else JdbcSink.exactly_once_sink(insert, kinds, connection, execution, once)
            )
        stream.sink_to(sink).name(f"jdbc {table.name}")

    def lookup(self, table: Declared, keys: tuple[int, ...]) -> _Lookup:
        options = table.options
        connection, name = _connection(options), options.require("table-name")
        retries = options.whole("lookup.max-retries", 3) or 0
        cached = options.whole("lookup.partial-cache.max-rows") or options.whole("lookup.cache.max-rows") or 0
        _allow_options(options)
        options.refuse_unknown()
        where = " AND ".join(f"{_quote(table.columns[index].name)} = ?" for index in keys)
        query = f"SELECT {_column_list(table.columns)} FROM {name} WHERE {where}"
        return _Lookup(JdbcLookup(connection, query, row_type(table.columns), max_retries=retries), cached)


class _Lookup:
    """Looks rows up by their key. It can remember the last answers."""

    def __init__(self, jdbc: JdbcLookup, most: int) -> None:
        self._jdbc = jdbc
        self._most = most
        self._cached: dict[tuple[Any, ...], list[Any]] = {}

    def open(self) -> None:
        self._cached = {}

    def lookup(self, key: tuple[Any, ...]) -> list[Any]:
        if key in self._cached:
            return self._cached[key]
        found = self._jdbc.lookup_now(*key)
        if self._most:
            while len(self._cached) >= self._most:
                self._cached.pop(next(iter(self._cached)))
            self._cached[key] = found
        return found

    def close(self) -> None:
        self._jdbc.close()


def _connection(options: Options) -> JdbcConnectionOptions:
    builder = JdbcConnectionOptions.JdbcConnectionOptionsBuilder().with_url(options.require("url"))
    user, password = options.text("username"), options.text("password")
    driver = options.text("driver")
    if driver:
        builder = builder.with_driver_name(driver)
    if user:
        builder = builder.with_user_name(user)
    if password:
        builder = builder.with_password(password)
    return builder.build()


def _allow_options(options: Options) -> None:
    options.below("lookup.")
    options.below("scan.")
    options.below("sink.")
    options.below("connection.")


def _column_list(columns: Columns) -> str:
    return ", ".join(_quote(column.name) for column in columns)


def _quote(name: str) -> str:
    return '"' + name.replace('"', '""') + '"' if not name.isidentifier() or name != name.lower() else name
