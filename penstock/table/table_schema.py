"""TableSchema, under the name of PyFlink's module."""

from penstock.table.catalogs.resolved_schema import TableSchema

__all__ = ["TableSchema"]
