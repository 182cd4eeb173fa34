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
    "TableAlreadyExistException",
    "TableException",
    "TableNotExistException",
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
