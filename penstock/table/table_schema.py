"""TableSchema, under the name of PyFlink's module."""

from penstock.table.resolved_schema import TableSchema

__all__ = ["TableSchema"]
