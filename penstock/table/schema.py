"""Schema, under the name of PyFlink's module."""

from penstock.table.catalogs.table_declaration import Schema

__all__ = [
    "Schema",
]
