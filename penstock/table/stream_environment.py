"""StreamTableEnvironment: tables made of DataStreams, and DataStreams made of tables."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from penstock.common.composite_types import RowTypeInfo, TupleTypeInfo
from penstock.common.type_information import TypeInformation
from penstock.common.types import Row, RowKind
from penstock.datastream.data_stream import DataStream
from penstock.datastream.stream_execution_environment import StreamExecutionEnvironment
from penstock.errors import ValidationException
from penstock.table.catalog import CatalogBaseTable
from penstock.table.changelog_mode import ChangelogMode
from penstock.table.environment import TableEnvironment, _in_mode
from penstock.table.environment_settings import EnvironmentSettings
from penstock.table.plan.building import project
from penstock.table.plan.nodes import Column, Columns, Relation, StreamScan
from penstock.table.schema import Schema, SchemaColumn
from penstock.table.selecting import as_expression, column_name, selected
from penstock.table.stream_types import data_type, type_information
from penstock.table.table import Table
from penstock.table.types import RowType

__all__ = ["StreamTableEnvironment"]


class StreamTableEnvironment(TableEnvironment):
    """A table environment on top of a stream environment: programs can mix both."""

    @staticmethod
    def create(  # type: ignore[override]
        stream_execution_environment: StreamExecutionEnvironment | None = None,
        environment_settings: EnvironmentSettings | None = None,
    ) -> StreamTableEnvironment:
        settings = environment_settings or EnvironmentSettings.in_streaming_mode()
        env = stream_execution_environment or StreamExecutionEnvironment(settings.get_configuration())
        if not isinstance(env, StreamExecutionEnvironment):
            raise TypeError(f"a StreamTableEnvironment is made on a StreamExecutionEnvironment, not on {env!r}")
        return StreamTableEnvironment(_in_mode(env, settings), settings)

    # --- from streams ---
    def from_data_stream(self, data_stream: DataStream, *fields_or_schema: Any) -> Table:
        """A table of a stream's records: with a Schema, or with expressions over its fields.

        The columns of a Schema are found by name; columns by metadata "rowtime" are the timestamps of the records.
        """
        if len(fields_or_schema) == 1 and isinstance(fields_or_schema[0], Schema):
            return self._scanned(data_stream, fields_or_schema[0], ChangelogMode.insert_only())
        relation = self._scanned(data_stream, None, ChangelogMode.insert_only())._relation
        if fields_or_schema:
            fields = [as_expression(one, "from_data_stream") for one in fields_or_schema]
            relation = _positioned(relation, fields) or selected(relation, fields)
        return Table(relation, self)

    def from_changelog_stream(
        self, data_stream: DataStream, schema: Schema | None = None, changelog_mode: ChangelogMode | None = None
    ) -> Table:
        """A table of a stream of Rows whose kinds say what changed."""
        return self._scanned(data_stream, schema, changelog_mode or ChangelogMode.all())

    def create_temporary_view(self, view_path: str, table_or_data_stream: Any, *fields_or_schema: Any) -> None:
        """A name for a Table or for a DataStream."""
        super().create_temporary_view(view_path, table_or_data_stream, *fields_or_schema)

    def _view_entry(self, table: Any, *fields_or_schema: Any) -> CatalogBaseTable:
        if isinstance(table, DataStream):
            return super()._view_entry(self.from_data_stream(table, *fields_or_schema))
        return super()._view_entry(table, *fields_or_schema)

    def _scanned(self, stream: DataStream, schema: Schema | None, mode: ChangelogMode) -> Table:
        if not isinstance(stream, DataStream):
            raise TypeError(f"a table is made of a DataStream, not of {stream!r}")
        columns = _columns_of(stream)
        if schema is None:
            schema = Schema(tuple(SchemaColumn(column.name, column.type) for column in columns))
        elif not any(column.is_physical for column in schema.columns):
            physical = tuple(SchemaColumn(column.name, column.type) for column in columns)
            schema = replace(schema, columns=(*physical, *schema.columns))
        read, metadata = _in_stream(*self._resolver.read_columns(schema), columns)
        names = [column.name for column in read]
        key = tuple(names.index(name) for name in schema.primary_key)
        changelog = mode != ChangelogMode.insert_only()
        upserts = changelog and RowKind.UPDATE_BEFORE not in mode.kinds
        if upserts and not key:
            raise ValidationException("a stream of upserts needs a primary key in its schema")
        scan = StreamScan(read, stream, _name_of(stream), changelog, key if upserts else None, metadata, key)
        return Table(self._resolver.completed(scan, schema), self, schema)

    # --- to streams ---
    def to_data_stream(self, table: Table) -> DataStream:
        """The rows of a table that only grows."""
        return self._typed(self._execution.stream(table._relation, inserts_only=True), table)

    def to_changelog_stream(
        self, table: Table, target_schema: Schema | None = None, changelog_mode: ChangelogMode | None = None
    ) -> DataStream:
        """The changes of a table, as Rows with kinds."""
        return self._execution.stream(table._relation)

    def to_append_stream(self, table: Table, type_info: TypeInformation) -> DataStream:
        """The rows of a table that only grows, in the form of a type."""
        stream = self._execution.stream(table._relation, inserts_only=True)
        return stream.map(_as_declared(type_info), type_info)

    def to_retract_stream(self, table: Table, type_info: TypeInformation) -> DataStream:
        """The changes of a table as pairs: True and a row that is added, or False and one that is taken back."""
        return self._execution.stream(table._relation).map(_Retraction(type_info))

    @staticmethod
    def _typed(stream: DataStream, table: Table) -> DataStream:
        relation = table._relation
        declared = RowType((column.name, column.type) for column in relation.columns)
        stream._type = type_information(declared)
        return stream


class _Retraction:
    """Turns a Row with a kind into a pair."""

    def __init__(self, type_info: TypeInformation) -> None:
        self._form = _as_declared(type_info)

    def __call__(self, row: Row) -> tuple[bool, Any]:
        added = row.get_row_kind() in (RowKind.INSERT, RowKind.UPDATE_AFTER)
        return added, self._form(row)


def _as_declared(type_info: TypeInformation) -> Any:
    if isinstance(type_info, TupleTypeInfo):
        return tuple
    return _plain


def _plain(row: Row) -> Row:
    return Row(*row)


def _columns_of(stream: DataStream) -> Columns:
    """The columns that the declared type of a stream has; a value that is no row is the column f0."""
    declared = stream._type
    if isinstance(declared, (RowTypeInfo, TupleTypeInfo)):
        kind = data_type(declared)
        assert isinstance(kind, RowType)
        return tuple(Column(field.name, field.data_type) for field in kind.fields)
    try:
        if declared is None:
            raise TypeError("nothing is declared")
        return (Column("f0", data_type(declared)),)
    except TypeError as error:
        raise ValidationException(
            f"the columns of a stream come from its type, and {declared} has none: give type_info=Types.ROW_NAMED(...) "
            "to from_collection, or output_type to map"
        ) from error


Metadata = tuple[tuple[int, str], ...]


def _in_stream(declared: Columns, metadata: Metadata, found: Columns) -> tuple[Columns, Metadata]:
    """The fields of a stream in its own order, as a schema declares them, and behind them its metadata.

    Fields that are not declared are there for computed columns.
    """
    keys = dict(metadata)
    stored = {column.name: column for index, column in enumerate(declared) if index not in keys}
    missing = stored.keys() - {column.name for column in found}
    if missing:
        raise ValidationException(
            f"the stream has no field {', '.join(sorted(missing))}; it has: "
            f"{', '.join(column.name for column in found)}"
        )
    fields = tuple(stored.get(column.name, column) for column in found)
    moved = tuple((len(fields) + place, key) for place, (_, key) in enumerate(metadata))
    return (*fields, *(declared[index] for index, _ in metadata)), moved


def _name_of(stream: DataStream) -> str:
    return str(stream._refs[0].node.name)


def _positioned(relation: Relation, fields: list[Any]) -> Relation | None:
    """Names that are none of the stream's are new names for its first fields."""
    names = [column_name(one) for one in fields]
    if any(name is None or name in relation.names() for name in names) or len(names) > len(relation.columns):
        return None
    refs = [relation.ref(index) for index in range(len(names))]
    return project(relation, refs, [str(name) for name in names])
