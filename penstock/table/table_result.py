"""TableResult, under the name of PyFlink's module."""

from penstock.table.api.results import CloseableIterator, TableResult

__all__ = [
    "CloseableIterator",
    "TableResult",
]
