"""TablePipeline, under the name of PyFlink's module."""

from penstock.table.statement_set import TablePipeline

__all__ = ["TablePipeline"]
