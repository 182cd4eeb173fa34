"""The conversion of CREATE TABLE into the entry of a catalog, and back into text."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from penstock.errors import ValidationException
from penstock.table.catalogs.memory_catalog import CatalogBaseTable
from penstock.table.catalogs.table_declaration import Schema, SchemaColumn, SchemaWatermark
from penstock.table.logical.nodes import Relation
from penstock.table.types.data_types import LONGEST, DataType

if TYPE_CHECKING:
    from penstock.table.catalogs.resolving import Resolver
    from penstock.table.sql.parse import statements as st


def entry_of(one: st.CreateTable, resolver: Resolver | None = None) -> CatalogBaseTable:
    """Return the catalog entry of a declared table."""
    columns = tuple(column_of(column) for column in one.columns)
    names = [column.name for column in columns]
    doubled = sorted({name for name in names if names.count(name) > 1})
    if doubled:
        raise ValidationException(f"table {'.'.join(one.path)}: two columns are named {', '.join(doubled)}")
    marks = () if one.watermark is None else (watermark_of(one.watermark),)
    key = one.primary_key
    schema = Schema(
        columns,
        marks,
        () if key is None else key.columns,
        None if key is None else key.name or "PK_" + "_".join(key.columns),
    )
    if one.like is None:
        _check_key(schema, ".".join(one.path))
    return CatalogBaseTable(schema, dict(one.options), one.partitioned, one.comment)


def column_of(column: st.ColumnSpec) -> SchemaColumn:
    """Return the schema's column for a column of CREATE TABLE."""
    key = None if column.kind != "metadata" else column.metadata_key or column.name
    return SchemaColumn(column.name, column.type, column.expression, key, column.virtual, column.comment)


def watermark_of(mark: st.WatermarkSpec) -> SchemaWatermark:
    """Return the schema's watermark for a WATERMARK clause."""
    if len(mark.column) > 1:
        raise ValidationException(f"the event time {'.'.join(mark.column)} must be a column, not a field of one")
    return SchemaWatermark(mark.column[0], mark.expression)


def _check_key(schema: Schema, table: str) -> None:
    physical = {column.name for column in schema.columns if column.expression is None}
    for name in schema.primary_key:
        if name not in physical:
            raise ValidationException(f"table {table}: the primary key names {name}, which is not a stored column")


def merge_definitions(source: CatalogBaseTable, own: CatalogBaseTable, choices: dict[str, str]) -> CatalogBaseTable:
    """Merge definitions for CREATE TABLE ... LIKE: the included parts of the other table, and the new parts."""
    how = {what.upper(): word.upper() for word, what in choices.items()} if choices else {}
    everything = how.get("ALL", "INCLUDING")

    def includes(what: str) -> bool:
        return how.get(what, everything) != "EXCLUDING"

    def is_kept(column: SchemaColumn) -> bool:
        if column.expression is not None:
            return includes("GENERATED")
        return column.metadata_key is None or includes("METADATA")

    mine, theirs = own.schema, source.schema
    names = {column.name for column in mine.columns}
    taken = (column for column in theirs.columns if is_kept(column) and column.name not in names)
    columns = (*(_of_key(column, theirs) for column in taken), *mine.columns)
    marks = mine.watermarks or (theirs.watermarks if includes("WATERMARKS") else ())
    constrained = bool(mine.primary_key) or not includes("CONSTRAINTS")
    key, key_name = (mine.primary_key, mine.key_name) if constrained else (theirs.primary_key, theirs.key_name)
    options = {**(source.options if includes("OPTIONS") else {}), **own.options}
    partitions = own.partition_keys or (source.partition_keys if includes("PARTITIONS") else ())
    schema = Schema(columns, marks, key, key_name)
    _check_key(schema, "LIKE")
    return CatalogBaseTable(schema, options, partitions, own.comment or source.comment)


def _of_key(column: SchemaColumn, schema: Schema) -> SchemaColumn:
    """Return a column that another table takes over. A column of a key stays NOT NULL, even without the key."""
    kind = column.type
    if column.name not in schema.primary_key or not isinstance(kind, DataType):
        return column
    return replace(column, type=kind.not_null())


def view_of(
    relation: Relation, names: Sequence[str] | None = None, text: str | None = None, comment: str | None = None
) -> CatalogBaseTable:
    """Return a catalog's entry for a query."""
    chosen = list(names or relation.names())
    if len(chosen) != len(relation.columns):
        raise ValidationException(f"{len(chosen)} names do not fit the {len(relation.columns)} columns of the view")
    columns = tuple(SchemaColumn(name, kind) for name, kind in zip(chosen, relation.types(), strict=True))
    return CatalogBaseTable(Schema(columns), comment=comment, query=text, relation=relation)


def table_entry(relation: Relation, declared: Schema | None) -> CatalogBaseTable:
    """Return the catalog's entry for a view of a Table. `declared` is the schema of a table that is not a query."""
    entry = view_of(relation)
    return entry if declared is None else replace(entry, schema=declared)


def as_sql(path: Sequence[str], entry: CatalogBaseTable, temporary: bool = False) -> str:
    """Return the CREATE statement that makes a table or view again."""
    name = ".".join(f"`{part}`" for part in path)
    create = "CREATE TEMPORARY" if temporary else "CREATE"
    if entry.is_view:
        columns = ",\n".join(f"  `{column.name}`" for column in entry.schema.columns)
        comment = f"COMMENT {quote(entry.comment)}\n" if entry.comment else ""
        return f"{create} VIEW {name} (\n{columns}\n)\n{comment}AS {entry.query or '...'}\n"
    lines = [_column_sql(column, column.name in entry.schema.primary_key) for column in entry.schema.columns]
    lines += [f"  WATERMARK FOR `{mark.column}` AS {mark.expression}" for mark in entry.schema.watermarks]
    if entry.schema.primary_key:
        keys = ", ".join(f"`{part}`" for part in entry.schema.primary_key)
        lines.append(f"  CONSTRAINT `{entry.schema.key_name}` PRIMARY KEY ({keys}) NOT ENFORCED")
    text = f"{create} TABLE {name} (\n" + ",\n".join(lines) + "\n)"
    if entry.comment:
        text += f"\nCOMMENT {quote(entry.comment)}"
    if entry.partition_keys:
        text += f"\nPARTITIONED BY ({', '.join(f'`{part}`' for part in entry.partition_keys)})"
    options = ",\n".join(f"  {quote(key)} = {quote(value)}" for key, value in entry.options.items())
    return f"{text}\nWITH (\n{options}\n)\n"


def _column_sql(column: SchemaColumn, key: bool) -> str:
    comment = "" if column.comment is None else f" COMMENT {quote(column.comment)}"
    if column.expression is not None:
        return f"  `{column.name}` AS {column.expression}{comment}"
    kind = (
        _type_sql(column.type.not_null() if key else column.type) if isinstance(column.type, DataType) else column.type
    )
    if column.metadata_key is None:
        return f"  `{column.name}` {kind}{comment}"
    origin = "" if column.metadata_key == column.name else f" FROM {quote(column.metadata_key)}"
    return f"  `{column.name}` {kind} METADATA{origin}{' VIRTUAL' if column.virtual else ''}{comment}"


def _type_sql(kind: DataType) -> str:
    """Return a type in SQL, with the lengths of STRING and BYTES."""
    return re.sub(r"\bBYTES\b", f"VARBINARY({LONGEST})", re.sub(r"\bSTRING\b", f"VARCHAR({LONGEST})", kind.as_sql()))


def quote(text: str) -> str:
    """Return a text as a literal of SQL."""
    return "'" + text.replace("'", "''") + "'"
