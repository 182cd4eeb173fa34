"""The relation of a declared table: the connector's columns, computed columns, and the watermark."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from penstock.errors import ValidationException
from penstock.table.catalogs.memory_catalog import CatalogBaseTable
from penstock.table.catalogs.table_declaration import Schema, SchemaColumn, SchemaWatermark
from penstock.table.logical.building import project, rename_columns
from penstock.table.logical.nodes import ROWTIME, Column, Columns, Relation, Scan, Watermark
from penstock.table.logical.rex import Call, Rex
from penstock.table.types.data_types import DataType, LocalZonedTimestampType, TimestampType

BindExpression = Callable[[Any, Columns], Rex]
"""Binds SQL or an Expression to some columns."""
ParseType = Callable[[str], DataType]


@dataclass(frozen=True)
class Resolver:
    """Resolves the types and expressions of declarations."""

    bind: BindExpression
    parse_type: ParseType

    def type_of(self, column: SchemaColumn) -> DataType:
        if isinstance(column.type, DataType):
            return column.type
        return self.parse_type(column.type or "")

    def read_columns(self, schema: Schema) -> tuple[Columns, tuple[tuple[int, str], ...]]:
        """Return the columns that come from outside, and the positions and keys of those that are metadata."""
        read = [column for column in schema.columns if column.expression is None]
        columns = tuple(Column(column.name, self._type_in_schema(schema, column)) for column in read)
        metadata = tuple((i, column.metadata_key) for i, column in enumerate(read) if column.metadata_key is not None)
        return columns, metadata

    def _type_in_schema(self, schema: Schema, column: SchemaColumn) -> DataType:
        """Return the type of a column. The columns of a primary key are never NULL."""
        kind = self.type_of(column)
        return kind.not_null() if column.name in schema.primary_key else kind

    def complete(self, source: Relation, schema: Schema) -> Relation:
        """Add the computed columns, in the order of the schema, and the watermark to a source.

        Computed columns can use fields of the source that are no columns of the schema. These fields are dropped
        afterwards.
        """
        relation, read, names = source, source.names(), [column.name for column in schema.columns]
        if read != names:
            exprs: list[Rex] = [
                source.ref(read.index(column.name))
                if column.expression is None
                else self._bind_computed(column, source.columns)
                for column in schema.columns
            ]
            relation = project(source, exprs, names)
        for mark in schema.watermarks:
            relation = self._watermark(relation, mark)
        return relation

    def _bind_computed(self, column: SchemaColumn, columns: Columns) -> Rex:
        try:
            return self.bind(column.expression, columns)
        except ValidationException as error:
            raise ValidationException(f"computed column {column.name}: {error}") from error

    def _watermark(self, relation: Relation, mark: SchemaWatermark) -> Watermark:
        names = relation.names()
        if mark.column not in names:
            raise ValidationException(
                f"there is no column {mark.column} for the watermark; there are: {', '.join(names)}"
            )
        index = names.index(mark.column)
        kind = relation.columns[index].type
        if not isinstance(kind, (TimestampType, LocalZonedTimestampType)) or kind.precision > 3:
            raise ValidationException(
                f"the event time of a table must be a TIMESTAMP(3) or TIMESTAMP_LTZ(3), but {mark.column} is "
                f"{kind.as_sql()}"
            )
        expr: Rex | None = self.bind(mark.expression, relation.columns)
        if isinstance(expr, Call) and expr.function == "SOURCE_WATERMARK":
            expr = None
        columns = list(relation.columns)
        columns[index] = replace(columns[index], time=ROWTIME)
        return Watermark(tuple(columns), relation, index, expr)

    def table(self, path: tuple[str, str, str], entry: CatalogBaseTable) -> Relation:
        """Return the relation of a table or a view in a query."""
        if entry.relation is not None:
            names = [column.name for column in entry.schema.columns]
            return (
                rename_columns(entry.relation, names) if names and names != entry.relation.names() else entry.relation
            )
        columns, metadata = self.read_columns(entry.schema)
        names = [column.name for column in columns]
        key = tuple(names.index(name) for name in entry.schema.primary_key if name in names)
        changelog, upsert = _changes(entry.options)
        scan = Scan(columns, path, entry, changelog, key if upsert and key else None, metadata)
        return self.complete(scan, entry.schema)


def _changes(options: Any) -> tuple[bool, bool]:
    """Return two booleans: if a connector brings more than inserts, and if these are upserts."""
    from penstock.table.connectors import source_changes

    return source_changes(options)
