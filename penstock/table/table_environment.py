"""The environments, under the name of PyFlink's module."""

from penstock.table.environments.environment import TableEnvironment
from penstock.table.environments.stream_environment import StreamTableEnvironment

__all__ = ["StreamTableEnvironment", "TableEnvironment"]
