"""TablePipeline, under the name of PyFlink's module."""

from penstock.table.api.statement_sets import TablePipeline

__all__ = ["TablePipeline"]
