"""ResolvedSchema and TableSchema: the columns of a table or of a result, with their types."""

from __future__ import annotations

from collections.abc import Sequence

from penstock.base.arguments import check_arguments
from penstock.errors import ValidationException
from penstock.table.catalogs.resolved_columns import (
    Column,
    ComputedColumn,
    MetadataColumn,
    PhysicalColumn,
    UniqueConstraint,
    WatermarkSpec,
)
from penstock.table.catalogs.table_declaration import Schema, SchemaColumn
from penstock.table.logical.nodes import Columns
from penstock.table.types.data_types import (
    ArrayType,
    DataType,
    LocalZonedTimestampType,
    MapType,
    MultisetType,
    RowField,
    RowType,
    TimestampType,
)

__all__ = ["ResolvedSchema", "TableSchema"]


@check_arguments
class ResolvedSchema:
    """The columns and keys of a table or a result."""

    def __init__(
        self, columns: Sequence[Column] = (), primary_key: Sequence[str] = (), declared: Schema | None = None
    ) -> None:
        """Take `declared`, the schema with which a table was made."""
        self._columns = tuple(columns)
        self._declared = declared or Schema()
        self._primary_key = tuple(primary_key) or self._declared.primary_key

    @staticmethod
    def of(columns: Sequence[Column]) -> ResolvedSchema:
        """Return a schema of columns."""
        return ResolvedSchema(columns)

    @staticmethod
    def physical(column_names: Sequence[str], column_data_types: Sequence[DataType]) -> ResolvedSchema:
        """Return a schema of stored columns, from their names and types."""
        return ResolvedSchema([PhysicalColumn(*both) for both in zip(column_names, column_data_types, strict=True)])

    @staticmethod
    def of_relation(columns: Columns) -> ResolvedSchema:
        """Return the schema of a plan's columns."""
        return ResolvedSchema([PhysicalColumn(column.name, column.type) for column in columns])

    @staticmethod
    def of_table(columns: Columns, declared: Schema | None) -> ResolvedSchema:
        """Return the schema of a plan's columns, with event time and, for a table itself, its declaration."""
        known = {column.name: column for column in declared.columns} if declared is not None else {}
        named = [_column(column.name, column.type, column.time, known.get(column.name)) for column in columns]
        return ResolvedSchema(named, (), declared)

    def get_column_count(self) -> int:
        """Return the number of columns."""
        return len(self._columns)

    def get_columns(self) -> list[Column]:
        """Return the columns."""
        return list(self._columns)

    def get_column_names(self) -> list[str]:
        """Return the names of the columns."""
        return [column.name for column in self._columns]

    def types(self) -> list[DataType]:
        """Return the unchanged types."""
        return [column.data_type for column in self._columns]

    def get_column_data_types(self) -> list[DataType]:
        """Return the types in PyFlink's form: TIMESTAMP with 3 digits and TIMESTAMP_LTZ with 6, whatever they have."""
        return [_as_told(column.data_type) for column in self._columns]

    def get_column(self, column_index_or_name: int | str) -> Column | None:
        """Return a column by its name or position, which counts from 0; None if there is no such column."""
        if isinstance(column_index_or_name, int):
            return self._columns[column_index_or_name] if 0 <= column_index_or_name < len(self._columns) else None
        return next((column for column in self._columns if column.name == column_index_or_name), None)

    def get_watermark_specs(self) -> list[WatermarkSpec]:
        """Return the columns of event time, with their watermarks."""
        types = {column.name: column.data_type for column in self._columns}
        return [WatermarkSpec(one.column, one.expression, types[one.column]) for one in self._declared.watermarks]

    def get_primary_key(self) -> UniqueConstraint | None:
        """Return the primary key; None if there is none."""
        if not self._primary_key:
            return None
        return UniqueConstraint(self._declared.key_name or f"PK_{'_'.join(self._primary_key)}", self._primary_key)

    def get_primary_key_indexes(self) -> list[int]:
        """Return the positions of the key's columns, from 0."""
        return [self.get_column_names().index(name) for name in self._primary_key]

    def to_physical_row_data_type(self) -> RowType:
        """Return the columns as a ROW type without NULL."""
        fields = [RowField(column.name, column.data_type) for column in self._columns]
        return RowType(fields, nullable=False)

    to_source_row_data_type = to_physical_row_data_type
    to_sink_row_data_type = to_physical_row_data_type

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ResolvedSchema) and self._columns == other._columns

    def __hash__(self) -> int:
        return hash(self._columns)

    def __str__(self) -> str:
        lines = [column.as_summary_string() for column in self._columns]
        lines += [mark.as_summary_string() for mark in self.get_watermark_specs()]
        key = self.get_primary_key()
        lines += [] if key is None else [key.as_summary_string()]
        return "(\n" + ",\n".join(f"  {line}" for line in lines) + "\n)"

    def as_tree(self) -> str:
        """Return the text of the older form."""
        lines = [f"{column.name}: {column.summary()}" for column in self._columns]
        lines += [f"WATERMARK FOR {one.rowtime_attribute}: {one.summary()}" for one in self.get_watermark_specs()]
        if self._declared.primary_key:
            lines.append(f"CONSTRAINT {self._declared.key_name} PRIMARY KEY ({', '.join(self._declared.primary_key)})")
        return "\n".join(["root", *(f" |-- {line}" for line in lines), ""])

    __repr__ = __str__


def _column(name: str, kind: DataType, time: str | None, declared: SchemaColumn | None) -> Column:
    if declared is not None and declared.expression is not None:
        return ComputedColumn(name, kind, declared.comment, time, declared.expression)
    if declared is not None and declared.metadata_key is not None:
        return MetadataColumn(name, kind, declared.comment, time, declared.metadata_key, declared.virtual)
    return PhysicalColumn(name, kind, None if declared is None else declared.comment, time)


def _as_told(kind: DataType) -> DataType:
    """Return a type with the precision of moments that PyFlink reports."""
    if isinstance(kind, LocalZonedTimestampType):
        return LocalZonedTimestampType(6, kind.is_nullable)
    if isinstance(kind, TimestampType):
        return TimestampType(3, kind.is_nullable)
    if isinstance(kind, RowType):
        fields = [RowField(one.name, _as_told(one.data_type), one.description) for one in kind.fields]
        return RowType(fields, kind.is_nullable)
    if isinstance(kind, MapType):
        return MapType(_as_told(kind.key_type), _as_told(kind.value_type), kind.is_nullable)
    if isinstance(kind, ArrayType | MultisetType):
        return type(kind)(_as_told(kind.element_type), kind.is_nullable)
    return kind


@check_arguments
class TableSchema:
    """The older form of a ResolvedSchema: names and types."""

    @check_arguments
    class Builder:
        """A builder of a TableSchema."""

        def __init__(self) -> None:
            self._names: list[str] = []
            self._types: list[DataType] = []

        def field(self, name: str, data_type: DataType) -> TableSchema.Builder:
            """Add a column, and return this builder."""
            self._names.append(name)
            self._types.append(data_type)
            return self

        def build(self) -> TableSchema:
            """Return the schema."""
            return TableSchema(self._names, self._types)

    def __init__(self, field_names: Sequence[str] = (), data_types: Sequence[DataType] = ()) -> None:
        if len(field_names) != len(data_types):
            raise ValidationException(f"{len(field_names)} names do not fit {len(data_types)} types")
        self._names, self._types = list(field_names), list(data_types)
        self._whole = ResolvedSchema.physical(self._names, self._types)

    @classmethod
    def of(cls, schema: ResolvedSchema) -> TableSchema:
        """Return the older form of a schema."""
        made = cls(schema.get_column_names(), schema.types())
        made._whole = schema
        return made

    @classmethod
    def builder(cls) -> TableSchema.Builder:
        """Return a builder of a schema."""
        return cls.Builder()

    def copy(self) -> TableSchema:
        """Return a copy."""
        return TableSchema.of(self._whole)

    def get_field_count(self) -> int:
        """Return the number of columns."""
        return len(self._names)

    def get_field_names(self) -> list[str]:
        """Return the names of the columns."""
        return list(self._names)

    def get_field_name(self, field_index: int) -> str | None:
        """Return the name of a column by its position, which counts from 0; None if there is no such column."""
        return self._names[field_index] if 0 <= field_index < len(self._names) else None

    def get_field_data_types(self) -> list[DataType]:
        """Return the types of the columns."""
        return list(self._types)

    def get_field_data_type(self, field: int | str) -> DataType | None:
        """Return the type of a field, by its name or its position."""
        if isinstance(field, str):
            return self._types[self._names.index(field)] if field in self._names else None
        return self._types[field] if 0 <= field < len(self._types) else None

    def to_row_data_type(self) -> RowType:
        """Return the columns as a ROW type without NULL."""
        return RowType(zip(self._names, self._types, strict=True), nullable=False)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, TableSchema) and (self._names, self._types) == (other._names, other._types)

    def __hash__(self) -> int:
        return hash((tuple(self._names), tuple(self._types)))

    def __repr__(self) -> str:
        return self._whole.as_tree()
