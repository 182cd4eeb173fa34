"""TableEnvironment: tables by name, and the statements and queries over them."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import count
from typing import TYPE_CHECKING, Any, TypeAlias

from penstock.base.arguments import check_arguments
from penstock.common.configuration import Configuration
from penstock.datastream.data_stream import DataStream
from penstock.datastream.stream_execution_environment import StreamExecutionEnvironment
from penstock.errors import ValidationException
from penstock.table.api.config import TableConfig
from penstock.table.api.functions_of_user import as_function, function_entry
from penstock.table.api.results import TableResult
from penstock.table.api.selecting import FieldLike
from penstock.table.api.statement_sets import StatementSet
from penstock.table.api.table_api import Table
from penstock.table.api.temporal_function import TemporalTableFunction
from penstock.table.api.value_types import as_rows, plain_values, row_type
from penstock.table.api.verification import verify_rows
from penstock.table.catalogs.catalog_manager import Catalogs
from penstock.table.catalogs.definitions import table_entry
from penstock.table.catalogs.function_modules import Module, ModuleEntry, Modules
from penstock.table.catalogs.memory_catalog import (
    Catalog,
    CatalogBaseTable,
    CatalogDescriptor,
    CatalogFunction,
    catalog_of,
)
from penstock.table.catalogs.resolving import Resolver
from penstock.table.catalogs.table_declaration import Schema
from penstock.table.catalogs.table_descriptors import TableDescriptor
from penstock.table.display.environment_displays import ShowsCatalog
from penstock.table.environment_settings import CATALOG, DATABASE, EnvironmentSettings
from penstock.table.explain_detail import ExplainDetail
from penstock.table.expression.function_declarations import UserDefinedFunction, UserDefinedFunctionWrapper
from penstock.table.logical.nodes import Column, Insert, Relation, Values
from penstock.table.statements.execution import Execution
from penstock.table.statements.statement_runner import Statements
from penstock.table.statements.table_session import EnvironmentSession
from penstock.table.types.data_types import RowType

__all__ = ["TableEnvironment"]


if TYPE_CHECKING:
    import pandas

RegisteredFunction: TypeAlias = UserDefinedFunctionWrapper | UserDefinedFunction | TemporalTableFunction


@check_arguments
class TableEnvironment(ShowsCatalog):
    """Catalogs, and the execution of statements and queries over them."""

    def __init__(self, env: StreamExecutionEnvironment, settings: EnvironmentSettings | None = None) -> None:
        settings = settings or EnvironmentSettings.new_instance().build()
        self._env = env
        self._config = TableConfig(Configuration().add_all(settings.get_configuration()), env.settings)
        self._config.is_batch()  # refuses a mode that tables do not have
        first, database = self._config.get(CATALOG, "default_catalog"), self._config.get(DATABASE, "default_database")
        self.catalogs = Catalogs(first, database)
        self._modules = Modules()
        self.session = EnvironmentSession(self.catalogs, self._config, self._modules)
        self.execution = Execution(env, self._config)
        self.statements = Statements(self._config, self.catalogs, self._modules, self.session, self.execution)
        self._unnamed = count()

    @staticmethod
    def create(environment_settings: EnvironmentSettings | Configuration) -> TableEnvironment:
        """Return a new environment, on the active Spark session or a local one."""
        if isinstance(environment_settings, Configuration):
            environment_settings = EnvironmentSettings.new_instance().with_configuration(environment_settings).build()
        env = StreamExecutionEnvironment(environment_settings.get_configuration())
        return TableEnvironment(env, environment_settings)

    @property
    def is_batch(self) -> bool:
        """True in BATCH mode."""
        return self._config.is_batch()

    @property
    def _resolver(self) -> Resolver:
        return self.session.resolver

    # --- SQL ---
    def execute_sql(self, stmt: str) -> TableResult:
        """Run one statement: a query, an INSERT, or a definition."""
        return self.statements.execute(stmt)

    def sql_query(self, query: str) -> Table:
        """Return a query as a Table."""
        return Table(self.statements.query(query), self)

    def explain_sql(self, stmt: str, *extra_details: ExplainDetail) -> str:
        """Return the plan of a query or an INSERT."""
        return self.execution.explain([self.statements.plan(stmt)], extra_details)

    def create_statement_set(self) -> StatementSet:
        """Return a set of inserts that run as one job."""
        return StatementSet(self)

    # --- tables from values ---
    def from_elements(self, elements: Iterable[Any], schema: Any = None, verify_schema: bool = True) -> Table:
        """Make a table of Python values: rows, tuples, dicts or single values.

        `schema` is a ROW type or a list of names; without one the types are inferred. Values that do not fit declared
        types are refused, unless `verify_schema` is false.
        """
        held = [plain_values(element) for element in elements]
        declared = row_type(held, schema)
        rows = as_rows(held, declared)
        if verify_schema:
            verify_rows(rows, declared)
        return Table(values(declared, rows), self)

    def from_pandas(self, pdf: pandas.DataFrame, schema: Any = None, splits_num: int = 1) -> Table:
        """Make a table of the rows of a pandas DataFrame.

        `schema` is a ROW type, a list of types or a list of names, one for each column.
        """
        from penstock.table.api.dataframes import from_pandas

        declared, rows = from_pandas(pdf, schema)
        return Table(values(declared, as_rows(rows, declared)), self)

    # --- tables by name ---
    def from_path(self, path: str) -> Table:
        """Return a table or view of a catalog."""
        parts = self.session.parse_path(path)
        relation, found = self.session.relation(parts), self.catalogs.find(parts)
        if relation is None or found is None:
            raise ValidationException(f"there is no table or view {path}{self.catalogs.suggestion(parts[-1])}")
        return Table(relation, self, found[1].schema)

    def from_descriptor(self, descriptor: TableDescriptor) -> Table:
        """Return a table without a name."""
        path = self._register_anonymous(descriptor)
        relation = self.session.relation(path)
        assert relation is not None
        return Table(relation, self, descriptor.get_schema())

    def create_table(self, path: str, descriptor: TableDescriptor, ignoreIfExists: bool = False) -> bool:  # noqa: N803
        """Create a table. Return True if it is new."""
        return self._create(path, _entry(descriptor), False, ignoreIfExists)

    def create_temporary_table(
        self,
        path: str,
        descriptor: TableDescriptor,
        ignoreIfExists: bool = False,  # noqa: N803
    ) -> None:
        """Create a temporary table."""
        self._create(path, _entry(descriptor), True, ignoreIfExists)

    def create_view(self, view_path: str, table: Table | str, ignore_if_exists: bool = False) -> bool:
        """Create a view. Return True if it is new."""
        return self._create(view_path, self._view_entry(table), False, ignore_if_exists)

    def create_temporary_view(
        self, view_path: str, table_or_data_stream: Table | DataStream | str, *fields_or_schema: Schema | FieldLike
    ) -> None:
        """Give a name to a Table."""
        self._create(view_path, self._view_entry(table_or_data_stream, *fields_or_schema), True, False)

    register_table = create_temporary_view

    def _view_entry(self, table: Any, *fields_or_schema: Any) -> CatalogBaseTable:
        if isinstance(table, str):
            table = self.sql_query(table)
        if not isinstance(table, Table):
            raise TypeError(f"a view must be created from a Table, not from {table!r}")
        return table_entry(table.relation, table._declared)

    def _create(self, path: str, entry: CatalogBaseTable, temporary: bool, ignore_if_exists: bool) -> bool:
        parts = self.session.parse_path(path)
        before = self.catalogs.find(parts)
        self.catalogs.create(parts, entry, temporary, ignore_if_exists)
        return before is None

    def drop_table(self, table_path: str, ignore_if_not_exists: bool = True) -> bool:
        """Drop a table. Return True if there was one."""
        return self._drop(table_path, view=False, temporary=False, ignore=ignore_if_not_exists)

    def drop_view(self, view_path: str, ignore_if_not_exists: bool = True) -> bool:
        """Drop a view. Return True if there was one."""
        return self._drop(view_path, view=True, temporary=False, ignore=ignore_if_not_exists)

    def drop_temporary_table(self, table_path: str) -> bool:
        """Drop a temporary table. Return True if there was one."""
        return self._drop(table_path, view=False, temporary=True, ignore=True)

    def drop_temporary_view(self, view_path: str) -> bool:
        """Drop a temporary view. Return True if there was one."""
        return self._drop(view_path, view=True, temporary=True, ignore=True)

    def _drop(self, path: str, view: bool, temporary: bool, ignore: bool) -> bool:
        return self.catalogs.drop_table(self.session.parse_path(path), view, temporary, ignore)

    def list_tables(self) -> list[str]:
        """Return the names of tables and views of the current database."""
        return self.catalogs.table_names()

    def list_views(self) -> list[str]:
        """Return the names of views of the current database."""
        return self.catalogs.table_names(views=True)

    def list_temporary_tables(self) -> list[str]:
        """Return the names of temporary tables and views."""
        return sorted([*self.catalogs.temporary_names(views=False), *self.catalogs.temporary_names(views=True)])

    def list_temporary_views(self) -> list[str]:
        """Return the names of temporary views."""
        return self.catalogs.temporary_names(views=True)

    # --- catalogs and databases ---
    def register_catalog(self, catalog_name: str, catalog: Catalog) -> None:
        """Add a catalog under a name."""
        self.catalogs.register(catalog_name, catalog)

    def create_catalog(self, catalog_name: str, catalog_descriptor: CatalogDescriptor) -> None:
        """Create a catalog. The only type is 'generic_in_memory'."""
        options = catalog_descriptor.configuration.to_dict()
        self.catalogs.register(catalog_name, catalog_of(options), descriptor=catalog_descriptor)

    def get_catalog(self, catalog_name: str) -> Catalog | None:
        """Return a catalog by its name; None if there is no such catalog."""
        return self.catalogs.get(catalog_name)

    def use_catalog(self, catalog_name: str) -> None:
        """Make a catalog the current one."""
        self.catalogs.use(catalog_name)

    def use_database(self, database_name: str) -> None:
        """Make a database of the current catalog the current one."""
        self.catalogs.use_database((database_name,))

    def get_current_catalog(self) -> str:
        """Return the name of the current catalog."""
        return self.catalogs.current

    def get_current_database(self) -> str:
        """Return the name of the current database."""
        return self.catalogs.database

    def list_catalogs(self) -> list[str]:
        """Return the names of catalogs."""
        return self.catalogs.names()

    def list_databases(self) -> list[str]:
        """Return the names of databases of the current catalog."""
        return self.catalogs.catalog().list_databases()

    def load_module(self, module_name: str, module: Module) -> None:
        """Load a module and use it, as the last one."""
        self._modules.load(module_name, module)

    def unload_module(self, module_name: str) -> None:
        """Unload a module, whose functions are then no longer found."""
        self._modules.unload(module_name)

    def list_modules(self) -> list[str]:
        """Return the modules in use, in the order in which functions are searched in them."""
        return self._modules.names()

    def list_full_modules(self) -> list[ModuleEntry]:
        """Return all loaded modules, those in use first."""
        return self._modules.entries()

    def use_modules(self, *module_names: str) -> None:
        """Use only these modules, in this order."""
        self._modules.use(module_names)

    def list_materialized_tables(self) -> list[str]:
        """Return no names, because there are no materialized tables."""
        return []

    def list_models(self) -> list[str]:
        """Return no names, because there are no models."""
        return []

    def list_temporary_models(self) -> list[str]:
        """Return no names, because there are no models."""
        return []

    # --- functions ---
    def create_temporary_system_function(self, name: str, function: RegisteredFunction) -> None:
        """Create a function with a name that is known everywhere, before those of catalogs."""
        self._add_function(name, function, "system")

    def create_temporary_function(self, path: str, function: RegisteredFunction) -> None:
        """Create a function of the current or a named database, for this environment."""
        self._add_function(path, function, "temporary")

    register_function = create_temporary_system_function

    def _add_function(self, path: str, function: Any, kind: str) -> None:
        parts = self.session.parse_path(path)
        if isinstance(function, TemporalTableFunction):
            self.catalogs.create_function(parts, CatalogFunction(parts[-1], "PYTHON", function), kind)
            return
        wrapped = as_function(function, parts[-1])
        self.catalogs.create_function(parts, CatalogFunction(wrapped.name, "PYTHON", wrapped), kind)

    def drop_temporary_system_function(self, name: str) -> bool:
        """Drop a temporary system function. Return True if there was one."""
        return self.catalogs.drop_function(self.session.parse_path(name), "system", ignore_if_not_exists=True)

    def drop_temporary_function(self, path: str) -> bool:
        """Drop a temporary function. Return True if there was one."""
        return self.catalogs.drop_function(self.session.parse_path(path), "temporary", ignore_if_not_exists=True)

    def drop_function(self, path: str) -> bool:
        """Drop a function of a catalog. Return True if there was one."""
        return self.catalogs.drop_function(self.session.parse_path(path), ignore_if_not_exists=True)

    def list_user_defined_functions(self) -> list[str]:
        """Return the names of functions that programs created."""
        return self.catalogs.function_names()

    def list_functions(self) -> list[str]:
        """Return the names of all functions."""
        return sorted({*self.session.function_names(), *self.catalogs.function_names()})

    def create_java_function(self, path: str, function_class_name: str, ignore_if_exists: bool = False) -> None:
        """Add the name of a Java class to the catalog, with a warning. Queries that call it are refused."""
        parts = self.session.parse_path(path)
        entry = function_entry(path, function_class_name, "JAVA")
        self.catalogs.create_function(parts, entry, ignore_if_exists=ignore_if_exists)

    def create_java_temporary_function(self, path: str, function_class_name: str) -> None:
        """Add the name of a Java class, with a warning. Queries that call it are refused."""
        entry = function_entry(path, function_class_name, "JAVA")
        self.catalogs.create_function(self.session.parse_path(path), entry, "temporary")

    def create_java_temporary_system_function(self, name: str, function_class_name: str) -> None:
        """Add the name of a Java class, with a warning. Queries that call it are refused."""
        self.catalogs.create_function((name,), function_entry(name, function_class_name, "JAVA"), "system")

    # --- settings ---
    def get_config(self) -> TableConfig:
        """Return the options of this environment."""
        return self._config

    def add_python_file(self, file_path: str) -> None:
        """Add a module, package folder or zip that functions import."""
        self._env.add_python_file(file_path)

    def set_python_requirements(self, requirements_file_path: str, requirements_cache_dir: str | None = None) -> None:
        """Set a requirements.txt to install for the slots; with a folder of packages, without any index."""
        self._env.set_python_requirements(requirements_file_path, requirements_cache_dir)

    def add_python_archive(self, archive_path: str, target_dir: str | None = None) -> None:
        """Add an archive to unpack into the slots' working directory, under `target_dir` or its own name."""
        self._env.add_python_archive(archive_path, target_dir)

    # --- running: for Table, StatementSet and statements ---
    def _table(self, relation: Relation) -> Table:
        return Table(relation, self)

    def make_insert(self, relation: Relation, target: str | TableDescriptor, overwrite: bool) -> Insert:
        """Return the plan that writes the rows of a query into a table."""
        path = (
            self._register_anonymous(target)
            if isinstance(target, TableDescriptor)
            else (self.session.parse_path(target))
        )
        return self.session.insert(relation, path, overwrite=overwrite)

    def create_unnamed_view(self, table: Table) -> str:
        """Create a view of a table under a new name, and return the name."""
        name = f"UnnamedTable${next(self._unnamed)}"
        self._create(name, self._view_entry(table), True, False)
        return name

    def _register_anonymous(self, descriptor: TableDescriptor) -> tuple[str, ...]:
        path = (f"*anonymous_{descriptor.options.get('connector', 'table')}${len(self.catalogs.temporary) + 1}*",)
        self.catalogs.create(path, _entry(descriptor), temporary=True)
        return path


def values(declared: RowType, rows: tuple[tuple[Any, ...], ...]) -> Values:
    """Return a relation of Python values."""
    return Values(tuple(Column(field.name, field.data_type) for field in declared.fields), rows)


def _entry(descriptor: TableDescriptor) -> CatalogBaseTable:
    if not isinstance(descriptor, TableDescriptor):
        raise TypeError(f"a table must be created from a TableDescriptor, not from {descriptor!r}")
    schema = descriptor.declared or Schema()
    return CatalogBaseTable(schema, descriptor.options, descriptor.partition_keys, descriptor.comment)
