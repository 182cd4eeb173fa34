"""Statement sets, under the name of PyFlink's module."""

from penstock.table.api.statement_sets import StatementSet, TablePipeline

__all__ = [
    "StatementSet",
    "TablePipeline",
]
