"""Running statements, with a method for each kind of statement."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

from penstock.common.configuration import Configuration
from penstock.errors import TableException, ValidationException
from penstock.table import sql
from penstock.table.api.config import TableConfig
from penstock.table.api.functions_of_user import function_entry
from penstock.table.api.results import TableResult
from penstock.table.catalogs.catalog_manager import Catalogs
from penstock.table.catalogs.definitions import entry_of, merge_definitions, view_of
from penstock.table.catalogs.function_modules import CORE, Module, Modules
from penstock.table.catalogs.memory_catalog import (
    CatalogBaseTable,
    CatalogDatabase,
    CatalogDescriptor,
    catalog_of,
)
from penstock.table.catalogs.plugins import MODULES, make, offers
from penstock.table.explain_detail import ExplainDetail
from penstock.table.logical.nodes import Insert, Relation
from penstock.table.sql.parse import statements as st
from penstock.table.sql.parse.problems import IllegalArgumentException, SqlParserEOFException, of_definition
from penstock.table.statements.altering import Altering
from penstock.table.statements.execution import Execution
from penstock.table.statements.showing import Showing
from penstock.table.statements.table_session import EnvironmentSession
from penstock.table.types.data_types import DataTypes


class Statements:
    """Runs the statements of an environment."""

    def __init__(
        self,
        config: TableConfig,
        catalogs: Catalogs,
        modules: Modules,
        session: EnvironmentSession,
        execution: Execution,
    ) -> None:
        self._config = config
        self._modules = modules
        self._catalogs = catalogs
        self._session = session
        self._execution = execution
        self.jars: list[str] = []
        """Paths of ADD JAR. No classes are loaded from them, because connectors and formats are Python."""
        self._showing = Showing(catalogs, modules, session, self.jars)
        self._altering = Altering(catalogs, session)
        self._gathered: list[Insert] | None = None
        """INSERTs since BEGIN STATEMENT SET; None outside a statement set."""
        self._methods: dict[type, Callable[[Any], TableResult]] = {
            st.Query: self._query,
            st.InsertInto: self._insert_into,
            st.BeginStatementSet: lambda one: self._begin(),
            st.EndStatementSet: lambda one: self._end(),
            st.StatementSetBlock: lambda one: self._execution.inserts([self._insert(each) for each in one.inserts]),
            st.Explain: self._explain,
            st.CreateTable: self._create_table,
            st.CreateTableAs: self._create_table_as,
            st.CreateView: self._create_view,
            st.CreateFunction: self._create_function,
            st.CreateDatabase: self._create_database,
            st.CreateCatalog: self._create_catalog,
            st.Drop: self._drop,
            st.Alter: self._altering.alter,
            st.Show: self._showing.show,
            st.Describe: self._showing.describe,
            st.Use: self._use,
            st.LoadModule: self._load,
            st.UnloadModule: self._unload,
            st.Set: self._set,
            st.Reset: self._reset,
            st.Jar: self._jar,
        }

    # --- statement sets ---
    def _insert_into(self, one: st.InsertInto) -> TableResult:
        insert = self._insert(one)
        if self._gathered is None:
            return self._execution.inserts([insert])
        self._gathered.append(insert)
        return TableResult.ok()

    def _begin(self) -> TableResult:
        """Start to gather the INSERTs up to END."""
        self._gathered = []
        return TableResult.ok()

    def _end(self) -> TableResult:
        """Run the INSERTs since BEGIN STATEMENT SET as one job."""
        if self._gathered is None:
            raise TableException(
                "No Statement Set to submit. 'END' statement should be used after 'BEGIN STATEMENT SET'."
            )
        inserts, self._gathered = self._gathered, None
        return self._execution.inserts(inserts) if inserts else TableResult.ok()

    def execute(self, text: str) -> TableResult:
        """Run one statement."""
        statement = self._one(text)
        if self._gathered is not None and not isinstance(statement, st.InsertInto | st.EndStatementSet):
            raise TableException(
                "Only 'INSERT/CREATE TABLE AS' statement is allowed in Statement Set or use 'END' statement to submit "
                "Statement Set."
            )
        method = self._methods.get(type(statement))
        if method is None:
            raise TableException(f"{text.strip().splitlines()[0]}: this statement is not supported here")
        return method(statement)

    @staticmethod
    def _one(text: str) -> st.Statement:
        found = sql.parse(text)
        if not found:
            raise SqlParserEOFException("the text contains no statement")
        if len(found) != 1:
            raise IllegalArgumentException(f"expected one statement, found {len(found)}")
        return found[0]

    # --- queries ---
    def query(self, text: str) -> Relation:
        """Return the plan of a query."""
        statement = self._one(text)
        if not isinstance(statement, st.Query):
            raise ValidationException("sql_query takes a query: SELECT, VALUES or WITH; for others use execute_sql")
        return self._bind(statement.query)

    def _bind(self, query: Any) -> Relation:
        return sql.Binder(self._session).query(query)

    def plan(self, text: str) -> Relation:
        """Return the plan of a query or an INSERT."""
        return self._plan(self._one(text))

    def _plan(self, statement: st.Statement) -> Relation:
        match statement:
            case st.Query():
                return self._bind(statement.query)
            case st.InsertInto():
                return self._insert(statement)
            case st.Explain():
                return self._plan(statement.statement)
        raise TableException("only queries and INSERTs have a plan")

    def insert(self, text: str) -> Insert:
        """Return the plan of an INSERT."""
        statement = self._one(text)
        if not isinstance(statement, st.InsertInto):
            raise TableException("only INSERT statements can be added to a statement set")
        return self._insert(statement)

    def _insert(self, one: st.InsertInto) -> Insert:
        return self._session.insert(
            self._bind(one.query), one.path, one.columns, one.overwrite, one.partition, dict(one.options), one.conflict
        )

    def _query(self, one: st.Query) -> TableResult:
        return self._execution.query(self._bind(one.query))

    def _explain(self, one: st.Explain) -> TableResult:
        inner = one.statement
        plans: list[Relation] = (
            [self._insert(each) for each in inner.inserts]
            if isinstance(inner, st.StatementSetBlock)
            else [self._plan(inner)]
        )
        text = self._execution.explain(plans, [ExplainDetail[detail] for detail in one.details])
        return TableResult.of(["result"], [DataTypes.STRING()], [(text,)])

    # --- definitions ---
    def _create_table(self, one: st.CreateTable) -> TableResult:
        entry = entry_of(one, self._session.resolver)
        if one.like is not None:
            _, source = self._catalogs.get_table(one.like.path)
            entry = merge_definitions(source, entry, dict(one.like.choices))
        _check_partitions(one.path, entry)
        self._check(one.path, entry)
        self._catalogs.create(one.path, entry, one.temporary, one.if_not_exists)
        return TableResult.ok()

    def _check(self, path: tuple[str, ...], entry: CatalogBaseTable) -> None:
        """Refuse a table with invalid columns when it is declared."""
        with of_definition():
            self._session.resolver.table(self._catalogs.qualify(path), entry)

    def _create_table_as(self, one: st.CreateTableAs) -> TableResult:
        relation = self._bind(one.query)
        entry = entry_of(one.table, self._session.resolver)
        columns = view_of(relation, one.names or None).schema
        whole = CatalogBaseTable(columns, entry.options, entry.partition_keys, entry.comment)
        if one.replace:
            self._catalogs.drop_table(one.table.path, False, one.table.temporary, ignore_if_not_exists=True)
        elif self._catalogs.find(one.table.path) is not None and one.table.if_not_exists:
            return TableResult.ok()
        self._catalogs.create(one.table.path, whole, one.table.temporary)
        return self._execution.inserts([self._session.insert(relation, one.table.path)])

    def _create_view(self, one: st.CreateView) -> TableResult:
        with of_definition():
            relation = self._bind(one.query)
        text = self._session.expand_query(one.query, one.query_text, relation)
        entry = view_of(relation, one.columns, text, one.comment)
        self._catalogs.create(one.path, entry, one.temporary, one.if_not_exists)
        return TableResult.ok()

    def _create_function(self, one: st.CreateFunction) -> TableResult:
        kind = "system" if one.system else "temporary" if one.temporary else ""
        function = function_entry(".".join(one.path), one.target, one.language, one.resources)
        self._catalogs.create_function(one.path, function, kind, one.if_not_exists)
        return TableResult.ok()

    def _create_database(self, one: st.CreateDatabase) -> TableResult:
        catalog, name = self._database(one.path)
        database = CatalogDatabase(dict(one.options), one.comment)
        self._catalogs.catalog(catalog).create_database(name, database, one.if_not_exists)
        return TableResult.ok()

    def _database(self, path: tuple[str, ...]) -> tuple[str, str]:
        return (self._catalogs.current, path[0]) if len(path) == 1 else (path[0], path[1])

    def _create_catalog(self, one: st.CreateCatalog) -> TableResult:
        options = dict(one.options)
        descriptor = CatalogDescriptor(one.name, Configuration.from_dict(options), one.comment)
        self._catalogs.register(one.name, catalog_of(options), one.if_not_exists, descriptor)
        return TableResult.ok()

    def _drop(self, one: st.Drop) -> TableResult:
        if one.kind in {"TABLE", "VIEW"}:
            self._catalogs.drop_table(one.path, one.kind == "VIEW", one.temporary, one.if_exists)
        elif one.kind == "FUNCTION":
            kind = "system" if one.system else "temporary" if one.temporary else ""
            self._catalogs.drop_function(one.path, kind, one.if_exists)
        elif one.kind == "DATABASE":
            catalog, name = self._database(one.path)
            if (catalog, name) == (self._catalogs.current, self._catalogs.database):
                raise ValidationException(f"database {name} is in use; USE another one first")
            self._catalogs.catalog(catalog).drop_database(name, one.if_exists, one.cascade)
        else:
            self._catalogs.drop(one.path[0], one.if_exists)
        return TableResult.ok()

    # --- settings ---
    def _use(self, one: st.Use) -> TableResult:
        if one.kind == "CATALOG":
            self._catalogs.use(one.path[0])
        elif one.kind == "DATABASE":
            self._catalogs.use_database(one.path)
        else:
            self._modules.use(one.path)
        return TableResult.ok()

    def _load(self, one: st.LoadModule) -> TableResult:
        options = dict(one.options)
        if one.name in offers(MODULES):
            module = make(MODULES, one.name, options, Module)
        elif one.name == CORE and not options:
            module = Module.core()
        else:
            known = ", ".join(sorted(offers(MODULES)))
            more = f"; and by entry points {known}" if known else ""
            raise ValidationException(
                f"LOAD MODULE {one.name}: the module that can be loaded is {CORE}, which has no options{more}"
            )
        self._modules.load(one.name, module)
        return TableResult.ok()

    def _unload(self, one: st.UnloadModule) -> TableResult:
        self._modules.unload(one.name)
        return TableResult.ok()

    def _jar(self, one: st.Jar) -> TableResult:
        """Add a jar to the list, or remove it. A warning says that classes in it have no effect."""
        if one.verb == "ADD":
            warnings.warn(f"jars have no effect here: {one.path}", stacklevel=2)
            if one.path not in self.jars:
                self.jars.append(one.path)
        elif one.path in self.jars:
            self.jars.remove(one.path)
        else:
            raise ValidationException(f"REMOVE JAR '{one.path}': there is no such jar; SHOW JARS lists all jars")
        return TableResult.ok()

    def _set(self, one: st.Set) -> TableResult:
        config = self._config
        if one.key is None:
            rows = sorted(config.to_map().items())
            return TableResult.of(["key", "value"], [DataTypes.STRING(), DataTypes.STRING()], rows)
        config.set(one.key, one.value or "")
        return TableResult.ok()

    def _reset(self, one: st.Reset) -> TableResult:
        """Return options to the values with which the environment was created."""
        for key in list(self._config.to_map()) if one.key is None else [one.key]:
            self._execution.forget_option(key)
        return TableResult.ok()


def _check_partitions(path: tuple[str, ...], entry: CatalogBaseTable) -> None:
    names = [column.name for column in entry.schema.columns]
    for key in entry.partition_keys:
        if key not in names:
            raise ValidationException(
                f"table {'.'.join(path)} is PARTITIONED BY {key}, which is not one of its columns"
            )
