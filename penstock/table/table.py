"""Tables, under the name of PyFlink's module."""

from penstock.table.api.grouped_table import (
    AggregatedTable,
    GroupedTable,
    GroupWindowedTable,
    OverWindowedTable,
    WindowGroupedTable,
)
from penstock.table.api.table_api import Table

__all__ = [
    "AggregatedTable",
    "GroupWindowedTable",
    "GroupedTable",
    "OverWindowedTable",
    "Table",
    "WindowGroupedTable",
]
