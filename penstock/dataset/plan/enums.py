"""The choices that methods of DataSet take."""

from __future__ import annotations

from enum import Enum


class Order(Enum):
    """The direction of a sort."""

    NONE = 0
    ANY = 1
    ASCENDING = 2
    DESCENDING = 3


class Aggregations(Enum):
    """Aggregations of one field of tuples."""

    SUM = "sum"
    MIN = "min"
    MAX = "max"


class JoinHint(Enum):
    """The strategy of a join: which side is broadcast into a table, or that both are sorted by key."""

    OPTIMIZER_CHOOSES = 0
    BROADCAST_HASH_FIRST = 1
    BROADCAST_HASH_SECOND = 2
    REPARTITION_HASH_FIRST = 3
    REPARTITION_HASH_SECOND = 4
    REPARTITION_SORT_MERGE = 5


class CombineHint(Enum):
    """Ways to combine elements before the exchange of a reduce. Penstock always keeps a table of keys."""

    OPTIMIZER_CHOOSES = 0
    SORT = 1
    HASH = 2
    NONE = 3


class WriteMode(Enum):
    """Treatment of a file that exists already."""

    NO_OVERWRITE = 0
    OVERWRITE = 1
