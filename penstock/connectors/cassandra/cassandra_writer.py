"""Sending statements to Cassandra, many at a time, and treating those that fail."""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from penstock.api.functions.contexts import RuntimeContext
from penstock.api.functions.source_functions import SinkFunction
from penstock.api.settings.values import check_kind
from penstock.base.arguments import check_arguments
from penstock.connectors.cassandra.cassandra_client import (
    RETRIES,
    ClusterBuilder,
    Connection,
    explain_error,
    is_transient,
)
from penstock.connectors.cassandra.cassandra_statements import (
    MapperOptions,
    ObjectStatements,
    QueryStatements,
    Statements,
)
from penstock.connectors.committing.prepared_records import MARKERS_KEPT
from penstock.connectors.committing.write_ahead_sink import CheckpointCommitter, GenericWriteAheadSink
from penstock.connectors.source_api import Sink, SinkWriter, WriterContext
from penstock.errors import ConnectorError

AUXILIARY_KEY_SPACE = "penstock_auxiliary"


class CassandraFailureHandler(ABC):
    """Decides about a record that cannot be written.

    `on_failure` raises to fail the job, or returns to drop the record.
    """

    @abstractmethod
    def on_failure(self, failure: Exception) -> None:
        """Return to drop the record, or raise to fail the job."""

    @staticmethod
    def no_op() -> CassandraFailureHandler:
        """Return the default handler: every failure fails the job."""
        return _Fail()


class _Fail(CassandraFailureHandler):
    def on_failure(self, failure: Exception) -> None:
        raise failure


@dataclass(frozen=True)
class Settings:
    """The settings that a builder collected."""

    builder: ClusterBuilder
    query: str | None
    options: MapperOptions
    handler: CassandraFailureHandler
    ignore_nulls: bool
    most_requests: int
    patience: float
    """Time, in seconds, that a record may wait for open requests to end."""


@dataclass(eq=False)
class Request:
    """A record's statement, with the time of its write and the error of the last attempt."""

    record: Any
    statement: Any
    stamp: int
    error: Exception | None = None

    @property
    def may_work(self) -> bool:
        """True if another attempt may succeed."""
        return self.error is not None and is_transient(self.error)


class Requests:
    """The open requests of one subtask. Their results arrive in threads of the driver."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._connection = Connection(settings.builder)
        self._statements = self._make_statements()
        self._changed = threading.Condition()
        self._under_way = 0
        self._failed: list[Request] = []
        self._last_stamp = 0

    def _make_statements(self) -> Statements:
        settings = self._settings
        try:
            if settings.query is not None:
                return QueryStatements(self._connection, settings.query, settings.ignore_nulls)
            return ObjectStatements(self._connection, settings.options, settings.ignore_nulls)
        except Exception:
            self._connection.close()
            raise

    def write(self, record: Any, stamp: int | None = None) -> None:
        """Begin to write a record. `stamp` is the time of the write, in microseconds: by default, now."""
        if stamp is None:
            stamp = max(self._last_stamp + 1, self._connection.next_stamp())
        self._last_stamp = stamp
        self._begin(Request(record, self._statements.bind(record), stamp))
        if self._failed:
            self.settle()

    def settle(self) -> None:
        """Wait until everything is written. Repeat failed writes with their original time."""
        self._wait(0, None)
        failed, self._failed = self._failed, []
        again = [request for request in failed if request.may_work]
        lasting = [request for request in failed if not request.may_work]
        if again:
            try:
                what = f"writing to Cassandra at {self._settings.builder.address}"
                RETRIES.call(lambda: self._again(again), what, is_transient)
            except ConnectorError:
                lasting += again
        for request in lasting:
            self._settings.handler.on_failure(self._failure(request))

    def _again(self, requests: list[Request]) -> None:
        """Send the requests again. Afterwards `requests` holds those that failed again."""
        for request in requests:
            self._begin(request)
        self._wait(0, None)
        failed, self._failed = self._failed, []
        requests[:] = failed
        if failed and failed[0].error is not None:
            raise failed[0].error

    def _begin(self, request: Request) -> None:
        self._wait(self._settings.most_requests - 1, self._settings.patience)
        with self._changed:
            self._under_way += 1
        try:
            future = self._connection.send(request.statement, request.stamp, self._statements.trace)
        except Exception as error:
            self._finish(request, error)
            return
        future.add_callbacks(lambda _: self._finish(request, None), lambda error: self._finish(request, error))

    def _finish(self, request: Request, error: Exception | None) -> None:
        with self._changed:
            self._under_way -= 1
            request.error = error
            if error is not None:
                self._failed.append(request)
            self._changed.notify_all()

    def _wait(self, most: int, patience: float | None) -> None:
        with self._changed:
            if not self._changed.wait_for(lambda: self._under_way <= most, patience):
                raise ConnectorError(
                    f"Cassandra at {self._settings.builder.address} is too slow: {self._under_way} requests are "
                    f"open, and no request was completed within {patience} s"
                )

    def _failure(self, request: Request) -> Exception:
        assert request.error is not None
        known = explain_error(request.error, self._settings.builder, self._settings.query or "")
        message = f"Cassandra could not write {_short(request.record)}: {known}"
        kind = type(known) if isinstance(known, ConnectorError) else ConnectorError
        failure = kind(message)
        failure.__cause__ = request.error
        return failure

    def close(self) -> None:
        self._connection.close()


def _short(record: Any) -> str:
    text = repr(record)
    return text if len(text) <= 200 else f"{text[:197]}..."


class CassandraWriter(SinkWriter):
    """Writes the records of one subtask as they come."""

    def __init__(self, settings: Settings) -> None:
        self._requests = Requests(settings)

    def write(self, value: Any, context: SinkFunction.Context) -> None:
        self._requests.write(value)

    def flush(self, end_of_input: bool) -> None:
        self._requests.settle()

    def close(self) -> None:
        self._requests.close()


@dataclass
class WritingSink(Sink):
    """Writes records as they come, and waits for the answers at checkpoints: at least once."""

    settings: Settings

    def create_writer(self, context: WriterContext, restored: list[Any]) -> SinkWriter:
        return CassandraWriter(self.settings)


class LoggingSink(GenericWriteAheadSink):
    """Keeps records in checkpoints and writes those of a complete one, with the same write time on every attempt."""

    def __init__(self, settings: Settings, committer: CassandraCommitter) -> None:
        super().__init__(committer)
        self.settings = settings
        self._requests: Requests | None = None

    def open(self, runtime_context: RuntimeContext) -> None:
        self._requests = Requests(self.settings)

    def send_values(self, values: Iterable[Any], checkpoint_id: int | None, timestamp: int | None) -> bool:
        assert self._requests is not None
        for index, value in enumerate(values):
            self._requests.write(value, None if timestamp is None else timestamp * 1000 + index)
        self._requests.settle()
        return True

    def close(self) -> None:
        if self._requests is not None:
            self._requests.close()
            self._requests = None


@check_arguments
class CassandraCommitter(CheckpointCommitter):
    """Records, in a table of its own key space in Cassandra, the checkpoints that have been written."""

    def __init__(self, builder: ClusterBuilder, key_space: str = AUXILIARY_KEY_SPACE) -> None:
        check_kind(ClusterBuilder, builder)
        if not key_space.isidentifier():
            raise ValueError(f"the name of a key space consists of letters, digits and underscores, not {key_space!r}")
        self.builder = builder
        self.key_space = key_space
        self._connection: Connection | None = None
        self._known: dict[int, list[int]] = {}

    @staticmethod
    def default_checkpoint_committer(builder: ClusterBuilder, key_space: str | None = None) -> CassandraCommitter:
        """Return a committer, which creates its key space and table if they do not exist."""
        return CassandraCommitter(builder) if key_space is None else CassandraCommitter(builder, key_space)

    def create_resource(self) -> None:
        connection = Connection(self.builder)
        try:
            connection.run(
                f"CREATE KEYSPACE IF NOT EXISTS {self.key_space} "
                "WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}"
            )
            connection.run(
                f"CREATE TABLE IF NOT EXISTS {self.key_space}.checkpoints (job text, operator text, subtask int, "
                "checkpoint bigint, PRIMARY KEY ((job, operator, subtask), checkpoint))"
            )
        finally:
            connection.close()

    def open(self) -> None:
        self._connection = Connection(self.builder)
        mine, table = "job = ? AND operator = ? AND subtask = ?", f"{self.key_space}.checkpoints"
        columns = "job, operator, subtask, checkpoint"
        self._insert = self._connection.prepare(f"INSERT INTO {table} ({columns}) VALUES (?, ?, ?, ?)")
        self._find = self._connection.prepare(f"SELECT checkpoint FROM {table} WHERE {mine} AND checkpoint = ?")
        self._delete = self._connection.prepare(f"DELETE FROM {table} WHERE {mine} AND checkpoint < ?")

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None
        self._known.clear()

    def commit_checkpoint(self, subtask_idx: int, checkpoint_id: int) -> None:
        known = self._known.setdefault(subtask_idx, [])
        self._run(self._insert, subtask_idx, checkpoint_id)
        known.append(checkpoint_id)
        if len(known) > MARKERS_KEPT:
            self._run(self._delete, subtask_idx, known[-MARKERS_KEPT // 2])
            del known[: -MARKERS_KEPT // 2]

    def is_checkpoint_committed(self, subtask_idx: int, checkpoint_id: int) -> bool:
        return bool(self._run(self._find, subtask_idx, checkpoint_id))

    def _run(self, statement: Any, subtask_idx: int, checkpoint_id: int) -> list[Any]:
        assert self._connection is not None, "it is used after open()"
        return list(self._connection.run(statement, (self.job_id, self.operator_id, subtask_idx, checkpoint_id)))
