"""Schema: the declared columns, watermark and primary key of a table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from penstock.base.arguments import check_arguments
from penstock.errors import ValidationException
from penstock.table.types.data_types import DataType, RowType

if TYPE_CHECKING:
    from penstock.table.catalogs.resolved_schema import ResolvedSchema
    from penstock.table.expression.expression import Expression

__all__ = ["Schema"]


@dataclass(frozen=True)
class SchemaColumn:
    """A declared column: stored, computed, or with metadata of the connector."""

    name: str
    type: DataType | str | None = None
    """A DataType or SQL; None for a computed column."""
    expression: Any = None
    """Expression of a computed column: SQL, or an Expression."""
    metadata_key: str | None = None
    """Key of a metadata column in the connector."""
    virtual: bool = False
    """True if a metadata column is only read."""
    comment: str | None = None

    @property
    def is_physical(self) -> bool:
        """True if the column is stored."""
        return self.expression is None and self.metadata_key is None

    def extras(self) -> str | None:
        """Return the expression or the metadata of the column in the form of DESCRIBE; None if it is stored."""
        if self.expression is not None:
            return f"AS {self.expression}"
        if self.metadata_key is None:
            return None
        origin = "" if self.metadata_key == self.name else f" FROM '{self.metadata_key}'"
        return f"METADATA{origin}{' VIRTUAL' if self.virtual else ''}"


@dataclass(frozen=True)
class SchemaWatermark:
    """A column of event time, with the expression of its watermark: SQL, or an Expression."""

    column: str
    expression: Any


@check_arguments
@dataclass(frozen=True)
class Schema:
    """Columns with their types, at most one watermark, and the primary key.

    >>> Schema.new_builder().column("id", "INT NOT NULL").primary_key("id").build().primary_key
    ('id',)
    """

    columns: tuple[SchemaColumn, ...] = ()
    watermarks: tuple[SchemaWatermark, ...] = ()
    primary_key: tuple[str, ...] = ()
    key_name: str | None = None

    @staticmethod
    def new_builder() -> Schema.Builder:
        """Return a builder of a schema."""
        return Schema.Builder()

    def physical(self) -> list[SchemaColumn]:
        """Return the stored columns."""
        return [column for column in self.columns if column.is_physical]

    def __str__(self) -> str:
        lines = [_line(column) for column in self.columns]
        lines += [f"  WATERMARK FOR `{mark.column}` AS [{mark.expression}]" for mark in self.watermarks]
        if self.primary_key:
            keys = ", ".join(f"`{name}`" for name in self.primary_key)
            lines.append(f"  CONSTRAINT `{self.key_name}` PRIMARY KEY ({keys}) NOT ENFORCED")
        return "(\n" + ",\n".join(lines) + "\n)"

    @check_arguments
    class Builder:
        """A builder of a schema."""

        def __init__(self) -> None:
            self._made = Schema()

        def column(self, column_name: str, data_type: DataType | str) -> Schema.Builder:
            """Add a stored column, and return this builder. Its type is a DataType or SQL, such as "INT NOT NULL"."""
            if not isinstance(data_type, (DataType, str)):
                raise TypeError(f"the type of column {column_name} is a DataType or its SQL, not {data_type!r}")
            return self._with(SchemaColumn(column_name, data_type))

        def column_by_expression(self, column_name: str, expr: Expression | str) -> Schema.Builder:
            """Add a column that is computed from others of the row."""
            return self._with(SchemaColumn(column_name, expression=expr))

        def column_by_metadata(
            self,
            column_name: str,
            data_type: DataType | str,
            metadata_key: str | None = None,
            is_virtual: bool = False,
        ) -> Schema.Builder:
            """Add a column with metadata of a record from the connector, such as the offset."""
            key = metadata_key or column_name
            return self._with(SchemaColumn(column_name, data_type, metadata_key=key, virtual=is_virtual))

        def watermark(self, column_name: str, watermark_expr: Expression | str) -> Schema.Builder:
            """Make a column the event time, with the expression of its watermark."""
            mark = SchemaWatermark(column_name, watermark_expr)
            self._made = replace(self._made, watermarks=(*self._made.watermarks, mark))
            return self

        def primary_key(self, *column_names: str) -> Schema.Builder:
            """Set the columns that distinguish rows. The key is trusted, not checked."""
            return self.primary_key_named("PK_" + "_".join(column_names), *column_names)

        def primary_key_named(self, constraint_name: str, *column_names: str) -> Schema.Builder:
            """Set the columns that distinguish rows, and the name of this constraint."""
            if not column_names:
                raise ValidationException("a primary key needs at least one column")
            if self._made.primary_key:
                raise ValidationException("a table can have only one primary key")
            self._made = replace(self._made, primary_key=column_names, key_name=constraint_name)
            return self

        def with_comment(self, comment: str) -> Schema.Builder:
            """Set the comment of the last column."""
            *others, last = self._made.columns
            self._made = replace(self._made, columns=(*others, replace(last, comment=comment)))
            return self

        def from_fields(self, field_names: Sequence[str], field_data_types: Sequence[DataType]) -> Schema.Builder:
            """Add stored columns, from their names and types."""
            for name, kind in zip(field_names, field_data_types, strict=True):
                self.column(name, kind)
            return self

        def from_row_data_type(self, data_type: DataType) -> Schema.Builder:
            """Add the fields of a ROW as columns."""
            if not isinstance(data_type, RowType):
                raise ValidationException(f"the columns of a table must be given as a ROW, not as {data_type.as_sql()}")
            return self.from_fields(data_type.field_names(), data_type.field_types())

        def from_schema(self, unresolved_schema: Schema) -> Schema.Builder:
            """Add all columns and watermarks of another schema, and take over its primary key."""
            made = self._made
            self._made = replace(
                unresolved_schema,
                columns=(*made.columns, *unresolved_schema.columns),
                watermarks=(*made.watermarks, *unresolved_schema.watermarks),
            )
            return self

        def from_resolved_schema(self, resolved_schema: ResolvedSchema) -> Schema.Builder:
            """Add the columns of a resolved schema as stored columns."""
            return self.from_fields(resolved_schema.get_column_names(), resolved_schema.types())

        def build(self) -> Schema:
            """Return the schema."""
            return self._made

        def _with(self, column: SchemaColumn) -> Schema.Builder:
            if not isinstance(column.name, str) or not column.name:
                raise ValidationException(f"the name of a column must be a string, not {column.name!r}")
            if any(other.name == column.name for other in self._made.columns):
                raise ValidationException(f"two columns are named {column.name}")
            self._made = replace(self._made, columns=(*self._made.columns, column))
            return self


def _line(column: SchemaColumn) -> str:
    if column.expression is not None:
        return f"  `{column.name}` AS [{column.expression}]"
    kind = column.type.as_sql() if isinstance(column.type, DataType) else f"[{column.type}]"
    extras = column.extras()
    return f"  `{column.name}` {kind}{'' if extras is None else f' {extras}'}"
