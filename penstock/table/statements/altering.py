"""ALTER of tables, views, functions and databases."""

from __future__ import annotations

from dataclasses import replace

from penstock.common.configuration import Configuration
from penstock.errors import UnsupportedOperation, ValidationException
from penstock.table import sql
from penstock.table.api.results import TableResult
from penstock.table.api.selecting import position
from penstock.table.catalogs.catalog_manager import Catalogs
from penstock.table.catalogs.definitions import column_of, view_of, watermark_of
from penstock.table.catalogs.memory_catalog import (
    CatalogBaseTable,
    CatalogDatabase,
    ObjectPath,
    catalog_of,
)
from penstock.table.catalogs.table_declaration import Schema, SchemaColumn
from penstock.table.sql.parse import statements as st
from penstock.table.statements.table_session import EnvironmentSession


class Altering:
    """Runs ALTER statements on the catalogs."""

    def __init__(self, catalogs: Catalogs, session: EnvironmentSession) -> None:
        self._catalogs = catalogs
        self._session = session

    def alter(self, one: st.Alter) -> TableResult:
        """Change an object. A change that makes no sense is refused and has no effect."""
        if one.kind in {"TABLE", "VIEW"}:
            self._table(one)
        elif one.kind == "DATABASE":
            self._database(one)
        elif one.kind == "FUNCTION":
            self._function(one)
        else:
            self._catalog(one)
        return TableResult.ok()

    def _catalog(self, one: st.Alter) -> None:
        known = self._catalogs.descriptor(one.path[0])
        options = known.configuration.to_dict()
        match one.change:
            case st.SetComment():
                self._catalogs.describe(replace(known, comment=one.change.comment))
                return
            case st.SetOptions():
                options |= dict(one.change.options)
            case st.ResetOptions():
                options = {key: value for key, value in options.items() if key not in one.change.keys}
                if "type" in one.change.keys:
                    raise ValidationException("ALTER CATALOG RESET does not support changing 'type'")
            case _:
                raise UnsupportedOperation("ALTER CATALOG sets or resets options, or sets a comment")
        catalog_of(options)
        self._catalogs.describe(replace(known, configuration=Configuration.from_dict(options)))

    def _table(self, one: st.Alter) -> None:
        if one.if_exists and self._catalogs.find(one.path) is None:
            return
        path, entry = self._catalogs.get_table(one.path)
        if entry.is_view is not (one.kind == "VIEW"):
            raise ValidationException(f"{'.'.join(one.path)} is not a {one.kind.lower()}")
        if isinstance(one.change, st.RenameTo):
            self._rename(path, one.change.path)
            return
        changed = self._change(entry, one.change)
        if not changed.is_view:
            self._session.resolver.table(path, changed)
        if path in self._catalogs.temporary:
            self._catalogs.temporary[path] = changed
        else:
            self._catalogs.catalog(path[0]).alter_table(ObjectPath(path[1], path[2]), changed)

    def _rename(self, path: tuple[str, str, str], new: tuple[str, ...]) -> None:
        if path in self._catalogs.temporary:
            self._catalogs.temporary[(path[0], path[1], new[-1])] = self._catalogs.temporary.pop(path)
        else:
            self._catalogs.catalog(path[0]).rename_table(ObjectPath(path[1], path[2]), new[-1])

    def _change(self, entry: CatalogBaseTable, change: st.Change) -> CatalogBaseTable:
        match change:
            case st.SetOptions():
                return replace(entry, options={**entry.options, **dict(change.options)})
            case st.ResetOptions():
                return replace(entry, options={k: v for k, v in entry.options.items() if k not in change.keys})
            case st.SetComment():
                return replace(entry, comment=change.comment)
            case st.ChangeSchema():
                return replace(entry, schema=_extend(entry.schema, change))
            case st.RenameColumn():
                return replace(entry, schema=_rename_column(entry.schema, change))
            case st.DropParts():
                return replace(entry, schema=_drop_parts(entry.schema, change))
            case st.SetQuery():
                relation = sql.Binder(self._session).query(change.query)
                text = self._session.expand_query(change.query, change.text, relation)
                return view_of(relation, None, text, entry.comment)
        raise UnsupportedOperation(f"{type(change).__name__} has no meaning here")

    def _database(self, one: st.Alter) -> None:
        catalog, name = (self._catalogs.current, one.path[0]) if len(one.path) == 1 else one.path
        database = self._catalogs.catalog(catalog).get_database(name)
        if not isinstance(one.change, st.SetOptions):
            raise UnsupportedOperation("ALTER DATABASE sets options")
        new = CatalogDatabase({**database.properties, **dict(one.change.options)}, database.comment)
        self._catalogs.catalog(catalog).alter_database(name, new)

    def _function(self, one: st.Alter) -> None:
        from penstock.table.api.functions_of_user import function_entry

        if not isinstance(one.change, st.SetTarget):
            raise UnsupportedOperation("ALTER FUNCTION names another object")
        if one.temporary or one.system:
            what = "temporary system function" if one.system else "temporary catalog function"
            raise ValidationException(f"Alter {what} is not supported; drop {'.'.join(one.path)} and create it again")
        made = function_entry(".".join(one.path), one.change.target, one.change.language)
        if self._catalogs.drop_function(one.path, "", one.if_exists):
            self._catalogs.create_function(one.path, made, "")


def _extend(schema: Schema, change: st.ChangeSchema) -> Schema:
    columns = list(schema.columns)
    for placed in change.columns:
        column = column_of(placed.column)
        names = [one.name for one in columns]
        if change.verb == "ADD" and column.name in names:
            raise ValidationException(f"a column {column.name} exists already")
        where = len(columns)
        if change.verb == "MODIFY":
            where = position(column.name, names)
            columns.pop(where)
            names.pop(where)
        if placed.where == "FIRST":
            where = 0
        elif placed.where == "AFTER":
            where = position(placed.after or "", names) + 1
        columns.insert(where, column)
    marks = schema.watermarks if change.watermark is None else (watermark_of(change.watermark),)
    if change.verb == "ADD" and change.watermark is not None and schema.watermarks:
        raise ValidationException("the table already has a watermark; use MODIFY")
    key = change.primary_key
    if key is None:
        return replace(schema, columns=tuple(columns), watermarks=marks)
    if change.verb == "ADD" and schema.primary_key:
        raise ValidationException("the table already has a primary key; use MODIFY")
    name = key.name or "PK_" + "_".join(key.columns)
    return Schema(tuple(columns), marks, key.columns, name)


def _rename_column(schema: Schema, change: st.RenameColumn) -> Schema:
    names = [column.name for column in schema.columns]
    place = position(change.column, names)
    if change.name in names:
        raise ValidationException(f"a column {change.name} exists already")
    columns: list[SchemaColumn] = list(schema.columns)
    columns[place] = replace(columns[place], name=change.name)
    key = tuple(change.name if part == change.column else part for part in schema.primary_key)
    return replace(schema, columns=tuple(columns), primary_key=key)


def _drop_parts(schema: Schema, change: st.DropParts) -> Schema:
    if change.what == "WATERMARK":
        return replace(schema, watermarks=())
    if change.what in {"PRIMARY KEY", "CONSTRAINT"}:
        return replace(schema, primary_key=(), key_name=None)
    names = [column.name for column in schema.columns]
    for name in change.names:
        position(name, names)
        if name in schema.primary_key or any(mark.column == name for mark in schema.watermarks):
            raise ValidationException(f"column {name} is part of the primary key or the watermark; drop that first")
    return replace(schema, columns=tuple(column for column in schema.columns if column.name not in change.names))
