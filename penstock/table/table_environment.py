"""The environments, under the name of PyFlink's module."""

from penstock.table.environment import TableEnvironment
from penstock.table.stream_environment import StreamTableEnvironment

__all__ = ["StreamTableEnvironment", "TableEnvironment"]
