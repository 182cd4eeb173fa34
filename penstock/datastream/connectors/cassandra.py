"""Cassandra tables as sinks."""

from penstock.connectors.cassandra.sinks import (
    CassandraCommitter,
    CassandraFailureHandler,
    CassandraSink,
    ClusterBuilder,
    ConsistencyLevel,
    MapperOptions,
)

__all__ = [
    "CassandraCommitter",
    "CassandraFailureHandler",
    "CassandraSink",
    "ClusterBuilder",
    "ConsistencyLevel",
    "MapperOptions",
]
