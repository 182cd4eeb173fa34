"""Catalogs: databases with their tables, views and functions, in memory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from penstock.base.arguments import check_arguments
from penstock.common.configuration import Configuration
from penstock.errors import ValidationException
from penstock.table.catalogs.catalog_parts import CatalogModel, CatalogPartition, CatalogPartitionSpec, Described
from penstock.table.catalogs.plugins import CATALOGS, make, offers
from penstock.table.catalogs.resolved_columns import (
    Column,
    ComputedColumn,
    Constraint,
    MetadataColumn,
    PhysicalColumn,
    UniqueConstraint,
    WatermarkSpec,
)
from penstock.table.catalogs.resolved_schema import ResolvedSchema, TableSchema
from penstock.table.catalogs.table_declaration import Schema
from penstock.table.logical.nodes import Relation
from penstock.util.exceptions import (
    DatabaseAlreadyExistException,
    DatabaseNotEmptyException,
    DatabaseNotExistException,
    FunctionAlreadyExistException,
    FunctionNotExistException,
    ModelAlreadyExistException,
    ModelNotExistException,
    PartitionAlreadyExistsException,
    PartitionNotExistException,
    PartitionSpecInvalidException,
    TableAlreadyExistException,
    TableNotExistException,
    TableNotPartitionedException,
)

__all__ = [
    "Catalog",
    "CatalogBaseTable",
    "CatalogDatabase",
    "CatalogDescriptor",
    "CatalogFunction",
    "CatalogModel",
    "CatalogPartition",
    "CatalogPartitionSpec",
    "Column",
    "ComputedColumn",
    "Constraint",
    "GenericInMemoryCatalog",
    "MetadataColumn",
    "ObjectIdentifier",
    "ObjectPath",
    "PhysicalColumn",
    "ResolvedSchema",
    "UniqueConstraint",
    "WatermarkSpec",
]


@check_arguments
@dataclass(frozen=True, order=True)
class ObjectPath:
    """A table or function within a catalog."""

    database_name: str
    object_name: str

    @staticmethod
    def from_string(full_name: str) -> ObjectPath:
        """Return the path that is written `database.name`."""
        database, dot, name = full_name.partition(".")
        if not dot or not database or not name:
            raise ValueError(f"a path must have the form database.name, not {full_name!r}")
        return ObjectPath(database, name)

    def get_database_name(self) -> str:
        """Return the name of the database."""
        return self.database_name

    def get_object_name(self) -> str:
        """Return the name within the database."""
        return self.object_name

    def get_full_name(self) -> str:
        """Return the path as `database.name`."""
        return f"{self.database_name}.{self.object_name}"

    def __str__(self) -> str:
        return self.get_full_name()


@check_arguments
@dataclass(frozen=True)
class ObjectIdentifier:
    """A table or function with its catalog."""

    catalog_name: str
    database_name: str
    object_name: str

    @staticmethod
    def of(catalog_name: str, database_name: str, object_name: str) -> ObjectIdentifier:
        """Return the identifier of a table or function."""
        return ObjectIdentifier(catalog_name, database_name, object_name)

    def get_catalog_name(self) -> str:
        """Return the name of the catalog."""
        return self.catalog_name

    def get_database_name(self) -> str:
        """Return the name of the database."""
        return self.database_name

    def get_object_name(self) -> str:
        """Return the name within the database."""
        return self.object_name

    def to_list(self) -> list[str]:
        """Return the names of catalog, database and object."""
        return [self.catalog_name, self.database_name, self.object_name]

    def to_object_path(self) -> ObjectPath:
        """Return the path within the catalog."""
        return ObjectPath(self.database_name, self.object_name)

    def as_summary_string(self) -> str:
        """Return the three names, joined by dots."""
        return ".".join(self.to_list())

    def as_serializable_string(self) -> str:
        """Return the three names in backquotes, joined by dots."""
        return ".".join(f"`{part}`" for part in self.to_list())

    __str__ = as_summary_string


@check_arguments
@dataclass(frozen=True)
class CatalogBaseTable:
    """A table with a connector, or a view with its query."""

    schema: Schema
    options: Mapping[str, str] = field(default_factory=dict)
    partition_keys: tuple[str, ...] = ()
    comment: str | None = None
    query: str | None = None
    """Text of a view."""
    relation: Relation | None = field(default=None, compare=False)
    """Plan of a view."""

    @staticmethod
    def create_table(
        schema: Schema | TableSchema,
        partition_keys: Sequence[str] = (),
        properties: Mapping[str, str] | None = None,
        comment: str | None = None,
    ) -> CatalogBaseTable:
        """Return a table. Its properties are the options of its connector."""
        return CatalogBaseTable(_schema(schema), dict(properties or {}), tuple(partition_keys), comment)

    @staticmethod
    def create_view(
        original_query: str,
        expanded_query: str,
        schema: Schema | TableSchema,
        properties: Mapping[str, str],
        comment: str | None = None,
    ) -> CatalogBaseTable:
        """Return a view. Its query is `expanded_query`."""
        return CatalogBaseTable(_schema(schema), dict(properties), (), comment, query=expanded_query)

    @property
    def is_view(self) -> bool:
        """True if the table is a view."""
        return self.query is not None or self.relation is not None

    def get_options(self) -> dict[str, str]:
        """Return the options of the connector."""
        return dict(self.options)

    def get_unresolved_schema(self) -> Schema:
        """Return the declared schema."""
        return self.schema

    def get_comment(self) -> str | None:
        """Return the comment."""
        return self.comment

    def get_description(self) -> str | None:
        """Return the comment."""
        return self.comment

    def get_detailed_description(self) -> str | None:
        """Return the comment."""
        return self.comment

    def copy(self) -> CatalogBaseTable:
        """Return a copy."""
        return replace(self)


def _schema(given: Schema | TableSchema) -> Schema:
    if isinstance(given, Schema):
        return given
    return Schema.new_builder().from_fields(given.get_field_names(), given.get_field_data_types()).build()


@check_arguments
@dataclass(frozen=True)
class CatalogFunction:
    """A function: the object itself, or the name of a Python object, `module.name`."""

    class_name: str
    language: str = "PYTHON"
    function: Any = field(default=None, compare=False)
    resources: tuple[str, ...] = ()
    """Resources after USING, such as `ResourceUri{resourceType=JAR, uri='f.jar'}`. They are never loaded."""

    @staticmethod
    def create_instance(class_name: str, function_language: str = "PYTHON") -> CatalogFunction:
        """Return a function by the name of its Python object, `module.name`."""
        return CatalogFunction(class_name, function_language)

    def get_class_name(self) -> str:
        """Return the name of the Python object."""
        return self.class_name

    def get_function_language(self) -> str:
        """Return the language of the function."""
        return self.language


@check_arguments
@dataclass
class CatalogDatabase(Described):
    """A database: a name space with properties."""

    properties: dict[str, str] = field(default_factory=dict)
    comment: str | None = None
    tables: dict[str, CatalogBaseTable] = field(default_factory=dict)
    functions: dict[str, CatalogFunction] = field(default_factory=dict)
    partitions: dict[str, dict[CatalogPartitionSpec, CatalogPartition]] = field(default_factory=dict)
    """Partitions of each table, by the table's name."""
    models: dict[str, CatalogModel] = field(default_factory=dict)

    @staticmethod
    def create_instance(properties: Mapping[str, str], comment: str | None = None) -> CatalogDatabase:
        """Return an empty database."""
        return CatalogDatabase(dict(properties), comment)

    def copy(self) -> CatalogDatabase:
        """Return a copy with its own properties and the same tables and functions."""
        return replace(self, properties=dict(self.properties))


@check_arguments
@dataclass(frozen=True)
class CatalogDescriptor:
    """The arguments of CREATE CATALOG."""

    catalog_name: str
    configuration: Configuration
    comment: str | None = None

    @staticmethod
    def of(catalog_name: str, configuration: Configuration, comment: str | None = None) -> CatalogDescriptor:
        """Return the description of a catalog."""
        return CatalogDescriptor(catalog_name, configuration, comment)


@check_arguments
class Catalog:
    """Databases by name. This catalog keeps everything in memory; subclasses may use other stores."""

    def __init__(self, default_database: str = "default") -> None:
        self._default = default_database
        self._databases: dict[str, CatalogDatabase] = {default_database: CatalogDatabase()}

    # --- databases ---
    def get_default_database(self) -> str:
        """Return the name of the default database."""
        return self._default

    def list_databases(self) -> list[str]:
        """Return the names of databases."""
        return sorted(self._databases)

    def database_exists(self, database_name: str) -> bool:
        """Return True if there is a database with this name."""
        return database_name in self._databases

    def get_database(self, database_name: str) -> CatalogDatabase:
        """Return a database. Raise DatabaseNotExistException if there is no such database."""
        database = self._databases.get(database_name)
        if database is None:
            known = ", ".join(self._databases)
            raise DatabaseNotExistException(f"there is no database {database_name}; there are: {known}")
        return database

    def create_database(self, name: str, database: CatalogDatabase, ignore_if_exists: bool = False) -> None:
        """Add a database. Raise DatabaseAlreadyExistException if the name is taken, or keep the old one on request."""
        if name not in self._databases:
            self._databases[name] = database.copy()
        elif not ignore_if_exists:
            raise DatabaseAlreadyExistException(f"a database {name} exists already")

    def drop_database(self, name: str, ignore_if_exists: bool = False, cascade: bool = False) -> None:
        """Remove a database. A database with tables or functions is only removed with `cascade`."""
        if name not in self._databases and ignore_if_exists:
            return
        database = self.get_database(name)
        if (database.tables or database.functions) and not cascade:
            held = ", ".join([*database.tables, *database.functions])
            raise DatabaseNotEmptyException(f"database {name} is not empty: {held}; drop it with CASCADE")
        del self._databases[name]

    def alter_database(self, name: str, new_database: CatalogDatabase, ignore_if_not_exists: bool = False) -> None:
        """Replace the properties and the comment of a database."""
        if name not in self._databases and ignore_if_not_exists:
            return
        database = self.get_database(name)
        database.properties, database.comment = dict(new_database.properties), new_database.comment

    # --- tables and views ---
    def list_tables(self, database_name: str) -> list[str]:
        """Return the names of tables and views."""
        return sorted(self.get_database(database_name).tables)

    def list_views(self, database_name: str) -> list[str]:
        """Return the names of views."""
        return sorted(name for name, table in self.get_database(database_name).tables.items() if table.is_view)

    def table_exists(self, table_path: ObjectPath) -> bool:
        """Return True if there is a table or view with this name."""
        database = self._databases.get(table_path.database_name)
        return database is not None and table_path.object_name in database.tables

    def get_table(self, table_path: ObjectPath) -> CatalogBaseTable:
        """Return a table or view. Raise TableNotExistException if there is none."""
        database = self._databases.get(table_path.database_name)
        table = None if database is None else database.tables.get(table_path.object_name)
        if table is None:
            raise TableNotExistException(f"there is no table {table_path}")
        return table

    def create_table(self, table_path: ObjectPath, table: CatalogBaseTable, ignore_if_exists: bool = False) -> None:
        """Add a table or view.

        Raise TableAlreadyExistException if the name is taken, or keep the old one on request.
        """
        tables = self.get_database(table_path.database_name).tables
        if table_path.object_name not in tables:
            tables[table_path.object_name] = table
        elif not ignore_if_exists:
            raise TableAlreadyExistException(f"a table or view {table_path} exists already")

    def drop_table(self, table_path: ObjectPath, ignore_if_not_exists: bool = False) -> None:
        """Remove a table or view, with its partitions."""
        if self.table_exists(table_path):
            database = self.get_database(table_path.database_name)
            del database.tables[table_path.object_name]
            database.partitions.pop(table_path.object_name, None)
        elif not ignore_if_not_exists:
            raise TableNotExistException(f"there is no table {table_path}")

    def rename_table(self, table_path: ObjectPath, new_table_name: str, ignore_if_not_exists: bool = False) -> None:
        """Give a table or view another name. Its partitions are removed."""
        if not self.table_exists(table_path) and ignore_if_not_exists:
            return
        table = self.get_table(table_path)
        self.create_table(ObjectPath(table_path.database_name, new_table_name), table)
        self.drop_table(table_path)

    def alter_table(
        self, table_path: ObjectPath, new_table: CatalogBaseTable, ignore_if_not_exists: bool = False
    ) -> None:
        """Replace a table or view."""
        if not self.table_exists(table_path) and ignore_if_not_exists:
            return
        self.get_table(table_path)
        self.get_database(table_path.database_name).tables[table_path.object_name] = new_table

    # --- functions ---
    def list_functions(self, database_name: str) -> list[str]:
        """Return the names of functions."""
        return sorted(self.get_database(database_name).functions)

    def function_exists(self, function_path: ObjectPath) -> bool:
        """Return True if there is a function with this name, in upper or lower case."""
        database = self._databases.get(function_path.database_name)
        return database is not None and function_path.object_name.lower() in database.functions

    def get_function(self, function_path: ObjectPath) -> CatalogFunction:
        """Return a function. Raise FunctionNotExistException if there is none."""
        database = self._databases.get(function_path.database_name)
        found = None if database is None else database.functions.get(function_path.object_name.lower())
        if found is None:
            raise FunctionNotExistException(f"there is no function {function_path}")
        return found

    def create_function(
        self, function_path: ObjectPath, function: CatalogFunction, ignore_if_exists: bool = False
    ) -> None:
        """Add a function. Raise FunctionAlreadyExistException if the name is taken, or keep the old one on request."""
        functions, name = self.get_database(function_path.database_name).functions, function_path.object_name.lower()
        if name not in functions:
            functions[name] = function
        elif not ignore_if_exists:
            raise FunctionAlreadyExistException(f"a function {function_path} exists already")

    def alter_function(
        self, function_path: ObjectPath, new_function: CatalogFunction, ignore_if_not_exists: bool = False
    ) -> None:
        """Replace a function."""
        if not self.function_exists(function_path) and ignore_if_not_exists:
            return
        self.get_function(function_path)
        name = function_path.object_name.lower()
        self.get_database(function_path.database_name).functions[name] = new_function

    def drop_function(self, function_path: ObjectPath, ignore_if_not_exists: bool = False) -> None:
        """Remove a function."""
        if self.function_exists(function_path):
            del self.get_database(function_path.database_name).functions[function_path.object_name.lower()]
        elif not ignore_if_not_exists:
            raise FunctionNotExistException(f"there is no function {function_path}")

    def list_materialized_tables(self, database_name: str) -> list[str]:
        """Return no names, because there are no materialized tables."""
        self.get_database(database_name)
        return []

    # --- partitions ---
    def list_partitions(
        self, table_path: ObjectPath, partition_spec: CatalogPartitionSpec | None = None
    ) -> list[CatalogPartitionSpec]:
        """Return the partitions of a table; with a spec, those that have its values."""
        wanted = {} if partition_spec is None else partition_spec.get_partition_spec()
        self._check_partitions(table_path, wanted)
        return [spec for spec in self._partitions(table_path) if wanted.items() <= spec.get_partition_spec().items()]

    def get_partition(self, table_path: ObjectPath, partition_spec: CatalogPartitionSpec) -> CatalogPartition:
        """Return a partition. Raise PartitionNotExistException if there is none."""
        found = self._partitions(table_path).get(partition_spec)
        if found is None:
            raise PartitionNotExistException(f"the table {table_path} has no partition {partition_spec}")
        return found

    def partition_exists(self, table_path: ObjectPath, partition_spec: CatalogPartitionSpec) -> bool:
        """Return True if the table has this partition."""
        return partition_spec in self._partitions(table_path)

    def create_partition(
        self,
        table_path: ObjectPath,
        partition_spec: CatalogPartitionSpec,
        partition: CatalogPartition,
        ignore_if_exists: bool = False,
    ) -> None:
        """Add a partition. Its spec has a value for every column by which the table is partitioned."""
        keys = self._check_partitions(table_path, partition_spec.get_partition_spec())
        if set(keys) != set(partition_spec.get_partition_spec()):
            raise PartitionSpecInvalidException(
                f"{partition_spec} does not have a value for every column that {table_path} is partitioned by: {keys}"
            )
        if not self.partition_exists(table_path, partition_spec):
            self._partitions(table_path)[partition_spec] = partition
        elif not ignore_if_exists:
            raise PartitionAlreadyExistsException(f"the table {table_path} already has a partition {partition_spec}")

    def drop_partition(
        self, table_path: ObjectPath, partition_spec: CatalogPartitionSpec, ignore_if_not_exists: bool = False
    ) -> None:
        """Remove a partition."""
        if self.partition_exists(table_path, partition_spec) or not ignore_if_not_exists:
            self.get_partition(table_path, partition_spec)
            del self._partitions(table_path)[partition_spec]

    def alter_partition(
        self,
        table_path: ObjectPath,
        partition_spec: CatalogPartitionSpec,
        new_partition: CatalogPartition,
        ignore_if_not_exists: bool = False,
    ) -> None:
        """Replace a partition."""
        if self.partition_exists(table_path, partition_spec) or not ignore_if_not_exists:
            self.get_partition(table_path, partition_spec)
            self._partitions(table_path)[partition_spec] = new_partition

    def _partitions(self, table_path: ObjectPath) -> dict[CatalogPartitionSpec, CatalogPartition]:
        if not self.table_exists(table_path):
            return {}
        database = self.get_database(table_path.database_name)
        return database.partitions.setdefault(table_path.object_name, {})

    def _check_partitions(self, table_path: ObjectPath, given: Mapping[str, str]) -> list[str]:
        """Return the columns by which a table is partitioned. Refuse a spec with other columns."""
        keys = list(self.get_table(table_path).partition_keys)
        if not keys:
            raise TableNotPartitionedException(f"the table {table_path} is not partitioned")
        unknown = given.keys() - set(keys)
        if unknown:
            raise PartitionSpecInvalidException(
                f"the table {table_path} is not partitioned by {', '.join(sorted(unknown))}, but by {', '.join(keys)}"
            )
        return keys

    # --- models ---
    def list_models(self, database_name: str) -> list[str]:
        """Return the names of models."""
        return sorted(self.get_database(database_name).models)

    def model_exists(self, model_path: ObjectPath) -> bool:
        """Return True if there is a model with this name."""
        database = self._databases.get(model_path.database_name)
        return database is not None and model_path.object_name in database.models

    def get_model(self, model_path: ObjectPath) -> CatalogModel:
        """Return a model. Raise ModelNotExistException if there is none."""
        if not self.model_exists(model_path):
            raise ModelNotExistException(f"there is no model {model_path}")
        return self.get_database(model_path.database_name).models[model_path.object_name]

    def create_model(self, model_path: ObjectPath, model: CatalogModel, ignore_if_exists: bool = False) -> None:
        """Add a model. Raise ModelAlreadyExistException if the name is taken, or keep the old one on request."""
        models = self.get_database(model_path.database_name).models
        if model_path.object_name not in models:
            models[model_path.object_name] = model
        elif not ignore_if_exists:
            raise ModelAlreadyExistException(f"a model {model_path} exists already")

    def drop_model(self, model_path: ObjectPath, ignore_if_not_exists: bool = False) -> None:
        """Remove a model."""
        if self.model_exists(model_path) or not ignore_if_not_exists:
            self.get_model(model_path)
            del self.get_database(model_path.database_name).models[model_path.object_name]

    def rename_model(self, model_path: ObjectPath, new_model_name: str, ignore_if_not_exists: bool = False) -> None:
        """Give a model another name."""
        if self.model_exists(model_path) or not ignore_if_not_exists:
            self.create_model(ObjectPath(model_path.database_name, new_model_name), self.get_model(model_path))
            self.drop_model(model_path)

    def alter_model(self, model_path: ObjectPath, new_model: CatalogModel, ignore_if_not_exists: bool = False) -> None:
        """Replace a model."""
        if self.model_exists(model_path) or not ignore_if_not_exists:
            self.get_model(model_path)
            self.get_database(model_path.database_name).models[model_path.object_name] = new_model


class GenericInMemoryCatalog(Catalog):
    """The catalog of CREATE CATALOG with 'type' = 'generic_in_memory'."""


IN_MEMORY = "generic_in_memory"


def catalog_of(options: dict[str, str]) -> Catalog:
    """Make a catalog from the options of CREATE CATALOG."""
    kind = options.get("type", "")
    if kind in offers(CATALOGS):
        others = {name: value for name, value in options.items() if name != "type"}
        return make(CATALOGS, kind, others, Catalog)
    if kind != IN_MEMORY:
        allowed = " or ".join(f"'{name}'" for name in (IN_MEMORY, *sorted(offers(CATALOGS))))
        raise ValidationException(f"a catalog has the type {allowed}, not '{kind}'")
    unknown = options.keys() - {"type", "default-database"}
    if unknown:
        raise ValidationException(
            f"a catalog has the options 'type' and 'default-database', not {', '.join(map(repr, sorted(unknown)))}"
        )
    return Catalog(options.get("default-database", "default"))
