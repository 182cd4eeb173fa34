"""Descriptors of tables, under the name of PyFlink's module."""

from penstock.table.catalogs.table_descriptors import FormatDescriptor, TableDescriptor

__all__ = [
    "FormatDescriptor",
    "TableDescriptor",
]
