"""Catalogs: databases with their tables, views and functions, in memory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from penstock.table.plan.nodes import Relation
from penstock.table.resolved_schema import ResolvedColumn, ResolvedSchema
from penstock.table.schema import Schema
from penstock.util.exceptions import (
    DatabaseAlreadyExistException,
    DatabaseNotEmptyException,
    DatabaseNotExistException,
    FunctionAlreadyExistException,
    FunctionNotExistException,
    TableAlreadyExistException,
    TableNotExistException,
)

__all__ = [
    "Catalog",
    "CatalogBaseTable",
    "CatalogDatabase",
    "CatalogDescriptor",
    "CatalogFunction",
    "Column",
    "GenericInMemoryCatalog",
    "ObjectIdentifier",
    "ObjectPath",
    "ResolvedSchema",
]

Column = ResolvedColumn


@dataclass(frozen=True, order=True)
class ObjectPath:
    """A table or function within a catalog."""

    database_name: str
    object_name: str

    @staticmethod
    def from_string(full_name: str) -> ObjectPath:
        database, dot, name = full_name.partition(".")
        if not dot or not database or not name:
            raise ValueError(f"a path is written database.name, not {full_name!r}")
        return ObjectPath(database, name)

    def get_database_name(self) -> str:
        return self.database_name

    def get_object_name(self) -> str:
        return self.object_name

    def get_full_name(self) -> str:
        return f"{self.database_name}.{self.object_name}"

    def __str__(self) -> str:
        return self.get_full_name()


@dataclass(frozen=True)
class ObjectIdentifier:
    """A table or function with its catalog."""

    catalog_name: str
    database_name: str
    object_name: str

    @staticmethod
    def of(catalog_name: str, database_name: str, object_name: str) -> ObjectIdentifier:
        return ObjectIdentifier(catalog_name, database_name, object_name)

    def get_catalog_name(self) -> str:
        return self.catalog_name

    def get_database_name(self) -> str:
        return self.database_name

    def get_object_name(self) -> str:
        return self.object_name

    def to_list(self) -> list[str]:
        return [self.catalog_name, self.database_name, self.object_name]

    def to_object_path(self) -> ObjectPath:
        return ObjectPath(self.database_name, self.object_name)

    def as_summary_string(self) -> str:
        return ".".join(self.to_list())

    def as_serializable_string(self) -> str:
        return ".".join(f"`{part}`" for part in self.to_list())

    __str__ = as_summary_string


@dataclass(frozen=True)
class CatalogBaseTable:
    """A table with a connector, or a view with its query."""

    schema: Schema
    options: Mapping[str, str] = field(default_factory=dict)
    partition_keys: tuple[str, ...] = ()
    comment: str | None = None
    query: str | None = None
    """Of a view: its text."""
    relation: Relation | None = field(default=None, compare=False)
    """Of a view: its plan."""

    @staticmethod
    def create_table(
        schema: Schema,
        partition_keys: Sequence[str] = (),
        properties: Mapping[str, str] | None = None,
        comment: str | None = None,
    ) -> CatalogBaseTable:
        return CatalogBaseTable(schema, dict(properties or {}), tuple(partition_keys), comment)

    @staticmethod
    def create_view(
        original_query: str,
        expanded_query: str,
        schema: Schema,
        properties: Mapping[str, str],
        comment: str | None = None,
    ) -> CatalogBaseTable:
        return CatalogBaseTable(schema, dict(properties), (), comment, query=expanded_query)

    @property
    def is_view(self) -> bool:
        return self.query is not None or self.relation is not None

    def get_options(self) -> dict[str, str]:
        return dict(self.options)

    def get_unresolved_schema(self) -> Schema:
        return self.schema

    def get_comment(self) -> str | None:
        return self.comment

    def get_description(self) -> str | None:
        return self.comment

    def get_detailed_description(self) -> str | None:
        return self.comment

    def copy(self) -> CatalogBaseTable:
        return replace(self)


@dataclass(frozen=True)
class CatalogFunction:
    """A function: the object itself, or the name of a Python object, `module.name`."""

    class_name: str
    language: str = "PYTHON"
    function: Any = field(default=None, compare=False)

    @staticmethod
    def create_instance(class_name: str, function_language: str = "PYTHON") -> CatalogFunction:
        return CatalogFunction(class_name, function_language)

    def get_class_name(self) -> str:
        return self.class_name

    def get_function_language(self) -> str:
        return self.language


@dataclass
class CatalogDatabase:
    """A database: a name space with properties."""

    properties: dict[str, str] = field(default_factory=dict)
    comment: str | None = None
    tables: dict[str, CatalogBaseTable] = field(default_factory=dict)
    functions: dict[str, CatalogFunction] = field(default_factory=dict)

    @staticmethod
    def create_instance(properties: Mapping[str, str], comment: str | None = None) -> CatalogDatabase:
        return CatalogDatabase(dict(properties), comment)

    def get_properties(self) -> dict[str, str]:
        return dict(self.properties)

    def get_comment(self) -> str | None:
        return self.comment

    def copy(self) -> CatalogDatabase:
        return replace(self, properties=dict(self.properties))


@dataclass(frozen=True)
class CatalogDescriptor:
    """What CREATE CATALOG says, in Python."""

    catalog_name: str
    configuration: Any
    comment: str | None = None

    @staticmethod
    def of(catalog_name: str, configuration: Any, comment: str | None = None) -> CatalogDescriptor:
        return CatalogDescriptor(catalog_name, configuration, comment)


class Catalog:
    """Databases by name. This one keeps everything in memory; subclasses may look elsewhere."""

    def __init__(self, default_database: str = "default") -> None:
        self._default = default_database
        self._databases: dict[str, CatalogDatabase] = {default_database: CatalogDatabase()}

    # --- databases ---
    def get_default_database(self) -> str:
        return self._default

    def list_databases(self) -> list[str]:
        return list(self._databases)

    def database_exists(self, database_name: str) -> bool:
        return database_name in self._databases

    def get_database(self, database_name: str) -> CatalogDatabase:
        database = self._databases.get(database_name)
        if database is None:
            known = ", ".join(self._databases)
            raise DatabaseNotExistException(f"there is no database {database_name}; there are: {known}")
        return database

    def create_database(self, name: str, database: CatalogDatabase, ignore_if_exists: bool = False) -> None:
        if name not in self._databases:
            self._databases[name] = database
        elif not ignore_if_exists:
            raise DatabaseAlreadyExistException(f"there is a database {name} already")

    def drop_database(self, name: str, ignore_if_exists: bool = False, cascade: bool = False) -> None:
        if name not in self._databases and ignore_if_exists:
            return
        database = self.get_database(name)
        if (database.tables or database.functions) and not cascade:
            held = ", ".join([*database.tables, *database.functions])
            raise DatabaseNotEmptyException(f"database {name} is not empty: {held}; drop it with CASCADE")
        del self._databases[name]

    def alter_database(self, name: str, new_database: CatalogDatabase, ignore_if_not_exists: bool = False) -> None:
        if name not in self._databases and ignore_if_not_exists:
            return
        database = self.get_database(name)
        database.properties, database.comment = dict(new_database.properties), new_database.comment

    # --- tables and views ---
    def list_tables(self, database_name: str) -> list[str]:
        """The names of tables and views."""
        return sorted(self.get_database(database_name).tables)

    def list_views(self, database_name: str) -> list[str]:
        return sorted(name for name, table in self.get_database(database_name).tables.items() if table.is_view)

    def table_exists(self, table_path: ObjectPath) -> bool:
        database = self._databases.get(table_path.database_name)
        return database is not None and table_path.object_name in database.tables

    def get_table(self, table_path: ObjectPath) -> CatalogBaseTable:
        table = self.get_database(table_path.database_name).tables.get(table_path.object_name)
        if table is None:
            raise TableNotExistException(f"there is no table {table_path}")
        return table

    def create_table(self, table_path: ObjectPath, table: CatalogBaseTable, ignore_if_exists: bool = False) -> None:
        tables = self.get_database(table_path.database_name).tables
        if table_path.object_name not in tables:
            tables[table_path.object_name] = table
        elif not ignore_if_exists:
            raise TableAlreadyExistException(f"there is a table or view {table_path} already")

    def drop_table(self, table_path: ObjectPath, ignore_if_not_exists: bool = False) -> None:
        if self.table_exists(table_path):
            del self.get_database(table_path.database_name).tables[table_path.object_name]
        elif not ignore_if_not_exists:
            raise TableNotExistException(f"there is no table {table_path}")

    def rename_table(self, table_path: ObjectPath, new_table_name: str, ignore_if_not_exists: bool = False) -> None:
        if not self.table_exists(table_path) and ignore_if_not_exists:
            return
        table = self.get_table(table_path)
        self.create_table(ObjectPath(table_path.database_name, new_table_name), table)
        self.drop_table(table_path)

    def alter_table(
        self, table_path: ObjectPath, new_table: CatalogBaseTable, ignore_if_not_exists: bool = False
    ) -> None:
        if not self.table_exists(table_path) and ignore_if_not_exists:
            return
        self.get_table(table_path)
        self.get_database(table_path.database_name).tables[table_path.object_name] = new_table

    # --- functions ---
    def list_functions(self, database_name: str) -> list[str]:
        return sorted(self.get_database(database_name).functions)

    def function_exists(self, function_path: ObjectPath) -> bool:
        database = self._databases.get(function_path.database_name)
        return database is not None and function_path.object_name.lower() in database.functions

    def get_function(self, function_path: ObjectPath) -> CatalogFunction:
        functions = self.get_database(function_path.database_name).functions
        found = functions.get(function_path.object_name.lower())
        if found is None:
            raise FunctionNotExistException(f"there is no function {function_path}")
        return found

    def create_function(
        self, function_path: ObjectPath, function: CatalogFunction, ignore_if_exists: bool = False
    ) -> None:
        functions, name = self.get_database(function_path.database_name).functions, function_path.object_name.lower()
        if name not in functions:
            functions[name] = function
        elif not ignore_if_exists:
            raise FunctionAlreadyExistException(f"there is a function {function_path} already")

    def alter_function(
        self, function_path: ObjectPath, new_function: CatalogFunction, ignore_if_not_exists: bool = False
    ) -> None:
        if not self.function_exists(function_path) and ignore_if_not_exists:
            return
        self.get_function(function_path)
        name = function_path.object_name.lower()
        self.get_database(function_path.database_name).functions[name] = new_function

    def drop_function(self, function_path: ObjectPath, ignore_if_not_exists: bool = False) -> None:
        if self.function_exists(function_path):
            del self.get_database(function_path.database_name).functions[function_path.object_name.lower()]
        elif not ignore_if_not_exists:
            raise FunctionNotExistException(f"there is no function {function_path}")


class GenericInMemoryCatalog(Catalog):
    """A catalog in memory, by the name that CREATE CATALOG with 'type' = 'generic_in_memory' makes."""
