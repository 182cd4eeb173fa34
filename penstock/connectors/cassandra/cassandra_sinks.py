"""Cassandra tables as sinks.

Delivery: at least once with checkpoints. Cassandra's writes are upserts, so that a row written twice is still one row;
the exceptions are counters and lists that grow. With the write-ahead log, records are written once the checkpoint that
holds them is complete. So a program that computes other results after a failure leaves nothing of its first attempt.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.api.settings.values import check_kind
from penstock.base.arguments import check_arguments
from penstock.common.time import Duration
from penstock.connectors.cassandra.cassandra_client import DEFAULT_PORT, ClusterBuilder, ConsistencyLevel
from penstock.connectors.cassandra.cassandra_statements import MapperOptions, check_options
from penstock.connectors.cassandra.cassandra_writer import (
    CassandraCommitter,
    CassandraFailureHandler,
    LoggingSink,
    Settings,
    WritingSink,
)
from penstock.connectors.source_api import Sink

if TYPE_CHECKING:
    from penstock.datastream.data_stream import DataStream, DataStreamSink

__all__ = [
    "CassandraCommitter",
    "CassandraFailureHandler",
    "CassandraSink",
    "ClusterBuilder",
    "ConsistencyLevel",
    "MapperOptions",
]

MOST_REQUESTS = 1024


@check_arguments
class CassandraSink:
    """A stream that ends in Cassandra, with the settings of any sink."""

    def __init__(self, sink: DataStreamSink) -> None:
        self._sink = sink

    @staticmethod
    def add_sink(input: DataStream) -> CassandraSinkBuilder:
        """Begin to describe how a stream is written. `build` adds the sink to the stream."""
        if not callable(getattr(input, "sink_to", None)):
            raise TypeError(f"CassandraSink.add_sink takes a DataStream, not {input!r}")
        return CassandraSinkBuilder(input)

    def name(self, name: str) -> CassandraSink:
        """Set the sink's name in plans, logs and errors."""
        self._sink.name(name)
        return self

    def uid(self, uid: str) -> CassandraSink:
        """Set the sink's identity across versions of the program, by which its state is found."""
        self._sink.uid(uid)
        return self

    def set_uid_hash(self, uid_hash: str) -> CassandraSink:
        """Set the identity that an earlier version generated, to take over its state."""
        self._sink.set_uid_hash(uid_hash)
        return self

    def set_parallelism(self, parallelism: int) -> CassandraSink:
        """Set the number of subtasks of the sink."""
        self._sink.set_parallelism(parallelism)
        return self

    def disable_chaining(self) -> CassandraSink:
        """Do not chain the sink with its neighbours."""
        self._sink.disable_chaining()
        return self

    def slot_sharing_group(self, slot_sharing_group: str) -> CassandraSink:
        """Set the name of a group of operators. Operators of different groups are not chained."""
        self._sink.slot_sharing_group(slot_sharing_group)
        return self


@check_arguments
class CassandraSinkBuilder:
    """Describes how a stream is written to Cassandra."""

    def __init__(self, input: DataStream) -> None:
        self._input = input
        self._query: str | None = None
        self._builder: ClusterBuilder | None = None
        self._options: MapperOptions | None = None
        self._handler = CassandraFailureHandler.no_op()
        self._ignore_nulls = False
        self._most_requests = MOST_REQUESTS
        self._patience = 60.0
        self._committer: CassandraCommitter | None = None
        self._writes_ahead = False

    def set_query(self, query: str) -> CassandraSinkBuilder:
        """Set the statement for every record, with a `?` for each of its fields. Without one, records are objects."""
        if not isinstance(query, str) or not query.strip():
            raise ValueError(f"the query is a CQL statement, not {query!r}")
        self._query = query
        return self

    def set_host(self, host: str, port: int = DEFAULT_PORT) -> CassandraSinkBuilder:
        """Set the address of one node, from which the client finds the cluster. It excludes `set_cluster_builder`."""
        if self._builder is not None:
            raise ValueError("set_host and set_cluster_builder exclude each other")
        self._builder = ClusterBuilder(host, port=port)
        return self

    def set_cluster_builder(self, builder: ClusterBuilder) -> CassandraSinkBuilder:
        """Set the description of the connection to a cluster. It excludes `set_host`."""
        if self._builder is not None:
            raise ValueError("set_host and set_cluster_builder exclude each other")
        self._builder = check_kind(ClusterBuilder, builder)
        return self

    def enable_write_ahead_log(self, committer: CassandraCommitter | None = None) -> CassandraSinkBuilder:
        """Keep records in checkpoints, and write those of a checkpoint once it is complete."""
        self._committer = None if committer is None else check_kind(CassandraCommitter, committer)
        self._writes_ahead = True
        return self

    def set_mapper_options(self, options: MapperOptions) -> CassandraSinkBuilder:
        """Set the options for saving objects. They have no effect on records that are written by a query."""
        self._options = check_kind(MapperOptions, options)
        return self

    def set_failure_handler(self, failure_handler: CassandraFailureHandler) -> CassandraSinkBuilder:
        """Set the handler of records that cannot be written. By default they fail the job."""
        self._handler = check_kind(CassandraFailureHandler, failure_handler)
        return self

    def set_max_concurrent_requests(
        self, max_concurrent_requests: int, duration: Duration | None = None
    ) -> CassandraSinkBuilder:
        """Set the largest number of open requests of a subtask, and the time that a record may wait for its turn."""
        if max_concurrent_requests < 1:
            raise ValueError(f"at least one request must be allowed, not {max_concurrent_requests!r}")
        self._most_requests = max_concurrent_requests
        if duration is not None:
            self._patience = duration.to_millis() / 1000
        return self

    def enable_ignore_null_fields(self) -> CassandraSinkBuilder:
        """Leave columns unchanged for which a record has None."""
        self._ignore_nulls = True
        return self

    def build(self) -> CassandraSink:
        """Add the sink to the stream."""
        return CassandraSink(self._input.sink_to(self._make_sink()).name("Cassandra Sink"))

    def _make_sink(self) -> Sink:
        if self._builder is None:
            raise ValueError("a Cassandra sink needs set_host or set_cluster_builder")
        options = self._options or MapperOptions()
        check_options(options)
        settings = Settings(
            self._builder,
            self._query,
            options,
            self._handler,
            self._ignore_nulls,
            self._most_requests,
            self._patience,
        )
        if not self._writes_ahead:
            return WritingSink(settings)
        return LoggingSink(settings, self._committer or CassandraCommitter(self._builder))


CassandraSink.CassandraSinkBuilder = CassandraSinkBuilder  # type: ignore[attr-defined]
