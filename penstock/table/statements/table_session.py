"""The interface of an environment for the SQL front end: tables, functions, settings."""

from __future__ import annotations

import re
from dataclasses import replace
from functools import cached_property
from typing import Any

from penstock.errors import PenstockError, TableException, ValidationException
from penstock.table import functions, sql
from penstock.table.api.config import TableConfig
from penstock.table.api.functions_of_user import as_function, function_of
from penstock.table.api.selecting import replace_parts
from penstock.table.catalogs.catalog_manager import Catalogs
from penstock.table.catalogs.function_modules import Modules
from penstock.table.catalogs.memory_catalog import CatalogBaseTable
from penstock.table.catalogs.resolving import Resolver
from penstock.table.expression.expression import Expression
from penstock.table.expression.expression_texts import function_name
from penstock.table.functions.typing.binding import bind
from penstock.table.logical.building import project
from penstock.table.logical.nodes import Columns, Insert, Relation
from penstock.table.logical.rex import Literal, Rex
from penstock.table.options.job_options import HINTED_OPTIONS
from penstock.table.sql.bind.expanded_text import Names, expand_query
from penstock.table.sql.parse import statements
from penstock.table.types.data_types import CharType, VarCharType

_PART = re.compile(r"`(?:[^`]|``)+`|[^.`]+")


class EnvironmentSession:
    """The names and settings of an environment."""

    def __init__(self, catalogs: Catalogs, config: TableConfig, modules: Modules) -> None:
        self._catalogs = catalogs
        self._modules = modules
        self._config = config

    @property
    def batch(self) -> bool:
        return self._config.is_batch()

    # --- for the binder ---
    @property
    def has_core(self) -> bool:
        return self._modules.has_core()

    def relation(self, path: tuple[str, ...], options: tuple[tuple[str, str], ...] = ()) -> Relation | None:
        """Return a table or view with its computed columns and watermark; None if there is none.

        Options of a hint override those of the table.
        """
        found = self._catalogs.find(path)
        if found is None:
            return None
        whole, entry = found
        if options:
            self._check_hint(whole, entry)
        return self.resolver.table(whole, replace(entry, options={**entry.options, **dict(options)}))

    def _check_hint(self, path: tuple[str, ...], entry: CatalogBaseTable) -> None:
        if entry.relation is not None:
            raise ValidationException(f"'{'.'.join(path)}' is a view; the hint OPTIONS is for tables")
        if self.get(HINTED_OPTIONS, "true").strip().lower() == "false":
            raise ValidationException(f"the hint OPTIONS is allowed only if '{HINTED_OPTIONS}' is true")

    def expand_query(self, query: Any, text: str, relation: Relation) -> str:
        """Return the text of a query with the full names of its tables, columns and functions.

        If the full text would not have the same plan, return the text as it was written.
        """
        from penstock.table.builders.builder import fingerprint

        def columns(path: tuple[str, ...]) -> list[str] | None:
            found = self.relation(path)
            return None if found is None else found.names()

        def function(name: str) -> tuple[str, ...] | None:
            known, path = self._catalogs, (name,)
            is_own = known.system_function(name) is None and known.catalog_function(path) is not None
            return known.qualify(path) if is_own else None

        def outputs(inner: Any) -> list[str]:
            return sql.Binder(self).query(inner).names()

        try:
            expanded = expand_query(query, Names(self._catalogs.qualify, columns, outputs, function))
            again = relation if expanded is None else sql.Binder(self).query(expanded)
        except PenstockError:
            return text
        return expanded if expanded is not None and fingerprint(again) == fingerprint(relation) else text

    def function(self, name: str) -> Any:
        """Return a function of the user; None if there is none. A qualified name has dots."""
        found = self._catalogs.function(tuple(name.split(".")))
        if found is not None:
            return function_of(found, name)
        own = self._modules.function(name, functions.names)
        return None if own is None else as_function(own, name)

    def function_names(self) -> list[str]:
        """Return the names of the functions of SQL and of modules."""
        return sorted({*functions.names(), *self._modules.functions()})

    def get(self, name: str, default: str) -> str:
        return self._config.get(name, default)

    def suggestions(self, kind: str) -> list[str]:
        """Return the names that exist, for a better error."""
        if kind == "table":
            return self._catalogs.table_names()
        return [*self.function_names(), *self._catalogs.function_names()]

    # --- for the environment ---
    @cached_property
    def resolver(self) -> Resolver:
        return Resolver(self.bind_expression, sql.parse_type)

    def bind_expression(self, expression: Any, columns: Columns) -> Rex:
        """Bind SQL, or an Expression, to columns."""
        if isinstance(expression, Expression):
            return bind(expression, columns)
        tree = expression.tree if isinstance(expression, statements.Expression) else expression
        return sql.Binder(self).expression(tree, columns)

    def resolve(self, expression: Any, columns: Columns) -> Any:
        """Resolve an expression of a Table program: the functions that it names, and the SQL in it."""

        def change(part: Any) -> Any:
            match part.node:
                case ("sql", text):
                    return Expression(("rex", self.bind_expression(text, columns)))
                case ("call", name, args) if (wrapper := self.function(name) or self._in_place_of(name)) is not None:
                    return Expression(("udf", wrapper, tuple(self.resolve(arg, columns) for arg in args)))
            return None

        return replace_parts(expression, change)

    def _in_place_of(self, name: str) -> Any:
        """Return a temporary system function with the Table API's name for a function of SQL, such as plus."""
        found = self._catalogs.system_function(function_name(name))
        return None if found is None else function_of(found, name)

    @staticmethod
    def parse_path(path: str) -> tuple[str, ...]:
        """Return the parts of a path. Parts with dots or blanks are in backquotes."""
        parts = tuple(part[1:-1].replace("``", "`") if part.startswith("`") else part for part in _PART.findall(path))
        if not parts or ".".join(_PART.findall(path)) != path.strip():
            raise ValidationException(f"{path!r} is not a valid path: write [[catalog.]database.]name")
        return parts

    def insert(
        self,
        relation: Relation,
        path: tuple[str, ...],
        columns: tuple[str, ...] = (),
        overwrite: bool = False,
        partition: tuple[tuple[str, Any], ...] = (),
        options: dict[str, str] | None = None,
        conflict: str = "",
    ) -> Insert:
        """Plan a query that goes into a table. Its columns are matched by position, and cast if that is harmless."""
        whole, entry = self._catalogs.get_table(path)
        if options:
            entry = replace(entry, options={**entry.options, **options})
        if entry.is_view:
            raise TableException(f"{'.'.join(path)} is a view, and rows cannot be written to a view")
        target, _ = self.resolver.read_columns(entry.schema)
        virtual = {column.name for column in entry.schema.columns if column.virtual}
        written = tuple(column for column in target if column.name not in virtual)
        fixed = self._partition_values(partition, entry, path)
        names = columns or tuple(column.name for column in written if column.name not in fixed)
        if len(names) != len(relation.columns):
            raise ValidationException(
                f"the columns of the query do not fit those of {'.'.join(path)}: "
                f"query ({', '.join(map(str, relation.columns))}), table ({', '.join(map(str, written))})"
            )
        given = dict(zip(names, range(len(names)), strict=True))
        unknown = [name for name in names if name not in {column.name for column in written}]
        if unknown:
            raise ValidationException(f"{'.'.join(path)} has no column {', '.join(unknown)} that can be written")
        exprs = [self._column_to_write(relation, column, given, fixed, path) for column in written]
        same = [column.name for column in written] == relation.names() and all(
            expr == relation.ref(index) for index, expr in enumerate(exprs)
        )
        input = relation if same else project(relation, exprs, [column.name for column in written])
        return Insert(written, input, whole, entry, overwrite, partition, conflict)

    def _partition_values(
        self, partition: tuple[tuple[str, Any], ...], entry: Any, path: tuple[str, ...]
    ) -> dict[str, Rex]:
        """Return the values of PARTITION (name = value), by their columns."""
        unknown = [name for name, _ in partition if name not in entry.partition_keys]
        if unknown:
            keys = ", ".join(entry.partition_keys)
            known = f"is partitioned by {keys}" if keys else "is not partitioned"
            raise ValidationException(f"PARTITION ({unknown[0]} = ...): {'.'.join(path)} {known}")
        return {name: self.bind_expression(value, ()) for name, value in partition}

    @staticmethod
    def _column_to_write(
        relation: Relation, column: Any, given: dict[str, int], fixed: dict[str, Rex], path: Any
    ) -> Rex:
        if column.name in fixed:
            return functions.cast(fixed[column.name], column.type)
        if column.name not in given:
            if not column.type.is_nullable:
                raise ValidationException(f"column {column.name} of {'.'.join(path)} must have a value")
            return Literal(column.type, None)
        return EnvironmentSession.fit_column(relation.ref(given[column.name]), column, f"of {'.'.join(path)} ")

    @staticmethod
    def fit_column(ref: Rex, column: Any, where: str = "") -> Rex:
        """Convert a column of a query to one of a table. Refuse if that needs a cast which can fail."""
        if ref.type.nullable() == column.type.nullable():
            return ref
        padded = isinstance(ref.type, VarCharType) and isinstance(column.type, CharType)
        if padded or not functions.implicitly(ref.type, column.type):
            raise ValidationException(
                f"the columns of the query do not fit those {where}: {ref.type.as_sql()} does not fit {column}; cast it"
            )
        return functions.cast(ref, column.type)
