"""SHOW and DESCRIBE."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Any

from penstock.errors import TableException, ValidationException
from penstock.table import functions
from penstock.table.api.results import TableResult
from penstock.table.catalogs.catalog_manager import Catalogs
from penstock.table.catalogs.definitions import as_sql, quote
from penstock.table.catalogs.function_modules import Modules
from penstock.table.catalogs.memory_catalog import CatalogBaseTable
from penstock.table.logical.nodes import ROWTIME, Column, Relation
from penstock.table.sql.parse import statements as st
from penstock.table.statements.table_session import EnvironmentSession
from penstock.table.types.data_types import DataTypes

COLUMNS = ["name", "type", "null", "key", "extras", "watermark", "comment"]


class Showing:
    """Runs SHOW and DESCRIBE statements."""

    def __init__(self, catalogs: Catalogs, modules: Modules, session: EnvironmentSession, jars: list[str]) -> None:
        self._catalogs = catalogs
        self._modules = modules
        self._jars = jars
        self._session = session

    # --- SHOW ---
    def show(self, one: st.Show) -> TableResult:
        """Return names, or the text of a definition."""
        catalogs = self._catalogs
        if one.what.startswith("CREATE "):
            return self._show_create(one)
        if one.what == "COLUMNS":
            return self._columns(one)
        if one.what == "FULL MODULES":
            entries = [(entry.name(), entry.used()) for entry in self._modules.entries()]
            return TableResult.of(["module name", "used"], [DataTypes.STRING(), DataTypes.BOOLEAN()], entries)
        place, built_in = self._place(one.path), self._session.function_names
        known: dict[str, tuple[str, Callable[[], list[str]]]] = {
            "TABLES": ("table name", lambda: catalogs.table_names(*place)),
            "VIEWS": ("view name", lambda: catalogs.table_names(*place, views=True)),
            "DATABASES": ("database name", lambda: self._databases(one.path)),
            "CATALOGS": ("catalog name", catalogs.names),
            "CURRENT CATALOG": ("current catalog name", lambda: [catalogs.current]),
            "CURRENT DATABASE": ("current database name", lambda: [catalogs.database]),
            "FUNCTIONS": (
                "function name",
                lambda: sorted({*built_in(), *catalogs.function_names(*place)}),
            ),
            "USER FUNCTIONS": ("function name", lambda: catalogs.function_names(*place)),
            "MODULES": ("module name", self._modules.names),
            "JARS": ("jars", lambda: self._jars),
            "PROCEDURES": ("procedure name", list),
            "MATERIALIZED TABLES": ("materialized table", list),
            "MODELS": ("model name", list),
        }
        if one.what not in known:
            raise TableException(f"SHOW {one.what} has no meaning here")
        name, found = known[one.what]
        kept = _matching(found(), one)
        return TableResult.of([name], [DataTypes.STRING()], [(text,) for text in kept])

    def _databases(self, path: tuple[str, ...]) -> list[str]:
        if len(path) > 1:
            raise ValidationException(
                f"Show databases from/in identifier [ {'.'.join(path)} ] format error, catalog must be a single part "
                "identifier."
            )
        return self._catalogs.catalog(path[0] if path else None).list_databases()

    @staticmethod
    def _place(path: tuple[str, ...]) -> tuple[str | None, str | None]:
        return (None, path[0]) if len(path) == 1 else (path[0], path[1]) if len(path) == 2 else (None, None)

    def _show_create(self, one: st.Show) -> TableResult:
        if one.what == "CREATE CATALOG":
            return self._show_create_catalog(one.path[0])
        whole, entry = self._catalogs.get_table(one.path)
        wanted = one.what.removeprefix("CREATE ")
        if wanted not in {"TABLE", "VIEW"} or entry.is_view is not (wanted == "VIEW"):
            raise TableException(f"{'.'.join(one.path)} is not a {wanted.lower()}")
        if entry.is_view and entry.query is None:
            raise TableException(f"{'.'.join(one.path)} is a view of a Table or a stream and has no SQL text to show")
        temporary = self._catalogs.is_temporary(whole)
        return TableResult.of(["result"], [DataTypes.STRING()], [(as_sql(whole, entry, temporary),)])

    def _show_create_catalog(self, name: str) -> TableResult:
        known = self._catalogs.descriptor(name)
        options = ",\n".join(
            f"  {quote(key)} = {quote(value)}" for key, value in sorted(known.configuration.to_dict().items())
        )
        comment = f"COMMENT {quote(known.comment)}\n" if known.comment else ""
        text = f"CREATE CATALOG `{name}`\n{comment}WITH (\n{options}\n)\n"
        return TableResult.of(["result"], [DataTypes.STRING()], [(text,)])

    def _columns(self, one: st.Show) -> TableResult:
        rows = self._describe(one.path)
        kept = set(_matching((row[0] for row in rows), one))
        return _column_result([row for row in rows if row[0] in kept])

    # --- DESCRIBE ---
    def describe(self, one: st.Describe) -> TableResult:
        """Return the columns of a table, or the properties of another object."""
        if one.kind == "TABLE":
            return _column_result(self._describe(one.path))
        if one.kind == "DATABASE":
            catalog, name = (self._catalogs.current, one.path[0]) if len(one.path) == 1 else one.path
            database = self._catalogs.catalog(catalog).get_database(name)
            rows: list[tuple[Any, ...]] = [("catalog", catalog), ("database", name), ("comment", database.comment)]
            return _pairs(rows + (sorted(database.properties.items()) if one.extended else []))
        if one.kind == "CATALOG":
            return _pairs(self._catalog(one.path[0], one.extended))
        if one.kind == "FUNCTION":
            return self._function(one.path, one.extended)
        raise TableException(f"DESCRIBE {one.kind} has no meaning here")

    def _catalog(self, name: str, extended: bool) -> list[tuple[Any, ...]]:
        known = self._catalogs.descriptor(name)
        options = known.configuration.to_dict()
        rows: list[tuple[Any, ...]] = [("name", name), ("type", options.pop("type")), ("comment", known.comment or "")]
        return rows + [(f"option:{key}", value) for key, value in sorted(options.items()) if extended]

    def _function(self, path: tuple[str, ...], extended: bool) -> TableResult:
        entry = self._catalogs.function(path)
        if entry is None and path[-1].lower() not in map(str.lower, self._session.function_names()):
            raise ValidationException(f"there is no function {'.'.join(path)}")
        temporary = entry is not None and self._catalogs.is_temporary_function(path)
        system = entry is None or (len(path) == 1 and self._catalogs.system_function(path[0]) is not None)
        rows = [("is system function", str(system).lower()), ("is temporary", str(temporary).lower())]
        if entry is not None and not system:
            resources = f"[{', '.join(entry.resources)}]"
            rows += [("class name", entry.class_name), ("function language", entry.language)]
            rows.append(("resource uris", resources))
        if not extended:
            return _pairs(rows)
        own = self._session.function(".".join(path))
        kind = own.kind if own is not None else "aggregate" if functions.is_aggregate(path[-1]) else "scalar"
        deterministic = str(own is None or own.deterministic).lower()
        rows += [("kind", kind.upper()), ("requirements", "[]"), ("is deterministic", deterministic)]
        rows.append(("supports constant folding", str(own is None).lower()))
        if own is not None and own.input_types is not None:
            name = path[-1] if system else ".".join(self._catalogs.qualify(path))
            takes = ", ".join(f"arg{n} => {one.nullable().as_sql()}" for n, one in enumerate(own.input_types))
            rows.append(("signature", f"{name}({takes})"))
        return _pairs(rows)

    def _describe(self, path: tuple[str, ...]) -> list[tuple[Any, ...]]:
        found = self._catalogs.find(path)
        relation = self._session.relation(path)
        if found is None or relation is None:
            raise ValidationException(
                f"there is no table or view {'.'.join(path)}{self._catalogs.suggestion(path[-1])}"
            )
        return [_column_row(column, found[1]) for column in _columns_of(relation)]


def _columns_of(relation: Relation) -> Iterable[Column]:
    return relation.columns


def _column_row(column: Column, entry: CatalogBaseTable) -> tuple[Any, ...]:
    schema = entry.schema
    declared = next((one for one in schema.columns if one.name == column.name), None)
    key = f"PRI({', '.join(schema.primary_key)})" if column.name in schema.primary_key else None
    mark = next((str(one.expression) for one in schema.watermarks if one.column == column.name), None)
    attribute = f" *{column.time}*" if column.time else ""
    extras = None if declared is None else declared.extras()
    if column.time == ROWTIME and not schema.watermarks and not entry.is_view:
        attribute = ""
    comment = None if declared is None else declared.comment
    return column.name, column.type.summary() + attribute, column.type.is_nullable, key, extras, mark, comment


def _column_result(rows: list[tuple[Any, ...]]) -> TableResult:
    """Return rows with a column for comments only if there are any."""
    text = DataTypes.STRING()
    names, types = COLUMNS, [text, text, DataTypes.BOOLEAN(), text, text, text, text]
    if all(row[-1] is None for row in rows):
        return TableResult.of(names[:-1], types[:-1], [row[:-1] for row in rows])
    return TableResult.of(names, types, rows)


def _pairs(rows: Iterable[tuple[Any, ...]]) -> TableResult:
    return TableResult.of(["info name", "info value"], [DataTypes.STRING(), DataTypes.STRING()], rows)


def _matching(names: Iterable[str], one: st.Show) -> list[str]:
    """Return the names that LIKE, or NOT LIKE, selects."""
    if one.pattern is None:
        return list(names)
    pattern = "".join(".*" if part == "%" else "." if part == "_" else re.escape(part) for part in one.pattern)
    wanted = re.compile(pattern, re.IGNORECASE if one.ignore_case else 0)
    return [name for name in names if (wanted.fullmatch(name) is not None) is not one.negated]
