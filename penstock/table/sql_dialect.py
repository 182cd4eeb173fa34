"""SqlDialect: the SQL dialect of a program."""

from enum import Enum

__all__ = ["SqlDialect"]


class SqlDialect(Enum):
    """Dialects; HIVE is known by name only."""

    DEFAULT = 0
    HIVE = 1
