"""Cassandra tables as sinks."""

from penstock.connectors.cassandra.sinks import *  # noqa: F403
from penstock.connectors.cassandra.sinks import __all__  # noqa: F401
