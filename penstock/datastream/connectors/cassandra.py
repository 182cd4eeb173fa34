"""Cassandra tables as sinks."""

from penstock.connectors.cassandra.cassandra_sinks import *  # noqa: F403
from penstock.connectors.cassandra.cassandra_sinks import __all__  # noqa: F401
