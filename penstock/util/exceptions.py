"""What catalogs raise, under the names of PyFlink's module."""

from __future__ import annotations

from penstock.errors import TableException, ValidationException

__all__ = [
    "CatalogException",
    "DatabaseAlreadyExistException",
    "DatabaseNotEmptyException",
    "DatabaseNotExistException",
    "FunctionAlreadyExistException",
    "FunctionNotExistException",
    "ModelAlreadyExistException",
    "ModelNotExistException",
    "PartitionAlreadyExistsException",
    "PartitionNotExistException",
    "PartitionSpecInvalidException",
    "TableAlreadyExistException",
    "TableException",
    "TableNotExistException",
    "TableNotPartitionedException",
]


class CatalogException(ValidationException):
    """A catalog cannot do what it was asked for."""


class DatabaseAlreadyExistException(CatalogException):
    """There is a database of this name."""


class DatabaseNotExistException(CatalogException):
    """There is no database of this name."""


class DatabaseNotEmptyException(CatalogException):
    """A database that holds tables or functions is dropped only if asked for with CASCADE."""


class TableAlreadyExistException(CatalogException):
    """There is a table or view of this name."""


class TableNotExistException(CatalogException):
    """There is no table or view of this name."""


class FunctionAlreadyExistException(CatalogException):
    """There is a function of this name."""


class FunctionNotExistException(CatalogException):
    """There is no function of this name."""


class PartitionAlreadyExistsException(CatalogException):
    """The table has this partition."""


class PartitionNotExistException(CatalogException):
    """The table does not have this partition."""


class PartitionSpecInvalidException(CatalogException):
    """A partition is described by other columns than those that the table is partitioned by."""


class TableNotPartitionedException(CatalogException):
    """The table is not partitioned."""


class ModelAlreadyExistException(CatalogException):
    """A model of this name exists already."""


class ModelNotExistException(CatalogException):
    """No model of this name exists."""
