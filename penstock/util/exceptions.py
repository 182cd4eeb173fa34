"""Errors that catalogs raise, under the names of PyFlink's module."""

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
    """A catalog cannot carry out a request."""


class DatabaseAlreadyExistException(CatalogException):
    """A database with this name exists already."""


class DatabaseNotExistException(CatalogException):
    """No database with this name exists."""


class DatabaseNotEmptyException(CatalogException):
    """A database with tables or functions can only be dropped with CASCADE."""


class TableAlreadyExistException(CatalogException):
    """A table or view with this name exists already."""


class TableNotExistException(CatalogException):
    """No table or view with this name exists."""


class FunctionAlreadyExistException(CatalogException):
    """A function with this name exists already."""


class FunctionNotExistException(CatalogException):
    """No function with this name exists."""


class PartitionAlreadyExistsException(CatalogException):
    """The table has this partition."""


class PartitionNotExistException(CatalogException):
    """The table does not have this partition."""


class PartitionSpecInvalidException(CatalogException):
    """A partition is specified by other columns than the partition columns of the table."""


class TableNotPartitionedException(CatalogException):
    """The table is not partitioned."""


class ModelAlreadyExistException(CatalogException):
    """A model with this name exists already."""


class ModelNotExistException(CatalogException):
    """No model with this name exists."""
