"""TableConfig, under the name of PyFlink's module."""

from penstock.table.api.config import TableConfig

__all__ = [
    "TableConfig",
]
