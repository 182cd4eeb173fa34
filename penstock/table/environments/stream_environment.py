"""StreamTableEnvironment: tables from DataStreams, and DataStreams from tables."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from penstock.base.arguments import check_arguments
from penstock.common.composite_types import RowTypeInfo, TupleTypeInfo
from penstock.common.type_information import TypeInformation
from penstock.common.types import Row, RowKind
from penstock.datastream.data_stream import DataStream
from penstock.datastream.stream_execution_environment import StreamExecutionEnvironment
from penstock.errors import UnsupportedOperation, ValidationException
from penstock.table.api.selecting import FieldLike, as_expression, column_name, select_fields
from penstock.table.api.table_api import Table
from penstock.table.catalogs.memory_catalog import CatalogBaseTable
from penstock.table.catalogs.table_declaration import Schema, SchemaColumn
from penstock.table.changelog_mode import ChangelogMode
from penstock.table.environment_settings import EnvironmentSettings
from penstock.table.environments.environment import TableEnvironment
from penstock.table.logical.building import project
from penstock.table.logical.nodes import Column, Columns, Relation, StreamScan
from penstock.table.types.data_types import RawType, RowType
from penstock.table.types.stream_types import data_type, type_information

__all__ = ["StreamTableEnvironment"]


@check_arguments
class StreamTableEnvironment(TableEnvironment):
    """A table environment on top of a stream environment. Programs can mix both."""

    @staticmethod
    def create(  # type: ignore[override]
        stream_execution_environment: StreamExecutionEnvironment | None = None,
        environment_settings: EnvironmentSettings | None = None,
    ) -> StreamTableEnvironment:
        """Return an environment for tables and streams in one program.

        It takes over mode, parallelism and all other options of the stream environment. Options of
        `environment_settings` have precedence, and apply to the stream environment too.
        """
        if stream_execution_environment is None and environment_settings is None:
            raise ValueError(
                "StreamTableEnvironment.create needs a stream_execution_environment or environment_settings; give one"
            )
        settings = environment_settings or EnvironmentSettings.new_instance().build()
        env = stream_execution_environment or StreamExecutionEnvironment()
        if not isinstance(env, StreamExecutionEnvironment):
            raise TypeError(f"a StreamTableEnvironment must be created on a StreamExecutionEnvironment, not on {env!r}")
        made = StreamTableEnvironment(env, settings)
        env.configure(settings.get_configuration())
        return made

    # --- from streams ---
    def from_data_stream(self, data_stream: DataStream, *fields_or_schema: Schema | FieldLike) -> Table:
        """Make a table of a stream's records: with a Schema, or with expressions over its fields.

        The columns of a Schema are found by name. Columns by metadata "rowtime" are the timestamps of the records.
        """
        if len(fields_or_schema) == 1 and isinstance(fields_or_schema[0], Schema):
            return self._scan(data_stream, fields_or_schema[0], ChangelogMode.insert_only())
        relation = self._scan(data_stream, None, ChangelogMode.insert_only()).relation
        if fields_or_schema:
            fields = [as_expression(one, "from_data_stream") for one in fields_or_schema]
            relation = _name_by_position(relation, fields) or select_fields(relation, fields)
        return Table(relation, self)

    def from_changelog_stream(
        self, data_stream: DataStream, schema: Schema | None = None, changelog_mode: ChangelogMode | None = None
    ) -> Table:
        """Make a table of a stream of Rows whose kinds describe changes."""
        return self._scan(data_stream, schema, changelog_mode or ChangelogMode.all())

    def create_temporary_view(
        self, view_path: str, table_or_data_stream: Table | DataStream | str, *fields_or_schema: Schema | FieldLike
    ) -> None:
        """Give a name to a Table or a DataStream."""
        super().create_temporary_view(view_path, table_or_data_stream, *fields_or_schema)

    def _view_entry(self, table: Any, *fields_or_schema: Any) -> CatalogBaseTable:
        if isinstance(table, DataStream):
            return super()._view_entry(self.from_data_stream(table, *fields_or_schema))
        return super()._view_entry(table, *fields_or_schema)

    def _scan(self, stream: DataStream, schema: Schema | None, mode: ChangelogMode) -> Table:
        if not isinstance(stream, DataStream):
            raise TypeError(f"a table must be created from a DataStream, not from {stream!r}")
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
        return Table(self._resolver.complete(scan, schema), self, schema)

    # --- to streams ---
    def to_data_stream(self, table: Table) -> DataStream:
        """Return the rows of a table that only grows."""
        return self._set_type(self.execution.stream(table.relation, inserts_only=True), table)

    def to_changelog_stream(
        self, table: Table, target_schema: Schema | None = None, changelog_mode: ChangelogMode | None = None
    ) -> DataStream:
        """Return the changes of a table, as Rows with kinds.

        With a schema, its stored columns give the rows their names and types, in the order of the table's columns. A
        column with the metadata "rowtime" becomes the timestamp of the rows instead of a field.
        """
        if changelog_mode is not None and changelog_mode != ChangelogMode.all():
            raise UnsupportedOperation("to_changelog_stream: the stream has all kinds of changes; leave the mode out")
        if target_schema is None:
            return self.execution.stream(table.relation)
        relation = self._fit(table, target_schema)
        stream = self.execution.stream(relation, stamped=True)
        moments = [c.name for c in target_schema.columns if c.metadata_key is not None and c.expression is None]
        return stream.map(_Without(tuple(map(relation.names().index, moments)))) if moments else stream

    def _fit(self, table: Table, schema: Schema) -> Relation:
        """Return a table with the columns of a schema, by position."""
        written = [column for column in schema.columns if column.expression is None]
        relation = table.relation
        if len(written) != len(relation.columns):
            raise ValidationException(
                f"to_changelog_stream: the schema has the columns {[column.name for column in written]}, and "
                f"the table has {relation.names()}: give as many"
            )
        strange = [c.metadata_key for c in written if c.metadata_key not in (None, "rowtime")]
        if strange:
            raise ValidationException(f"to_changelog_stream: the only metadata of a stream is 'rowtime', not {strange}")
        refs = [
            self.session.fit_column(relation.ref(index), Column(column.name, self._resolver.type_of(column)))
            if column.is_physical
            else relation.ref(index)
            for index, column in enumerate(written)
        ]
        return project(relation, refs, [column.name for column in written])

    def to_append_stream(self, table: Table, type_info: TypeInformation) -> DataStream:
        """Return the rows of a table that only grows, in the form of a type."""
        stream = self.execution.stream(table.relation, inserts_only=True)
        return stream.map(_Form(type_info), type_info)

    def to_retract_stream(self, table: Table, type_info: TypeInformation) -> DataStream:
        """Return the changes of a table as pairs: True and an added row, or False and a removed one."""
        return self.execution.stream(table.relation).map(_Retraction(type_info))

    @staticmethod
    def _set_type(stream: DataStream, table: Table) -> DataStream:
        relation = table.relation
        declared = RowType((column.name, column.type) for column in relation.columns)
        stream._type = type_information(declared)
        return stream


class _Without:
    """Leaves out fields of a row."""

    def __init__(self, places: tuple[int, ...]) -> None:
        self._places = places

    def __call__(self, row: Row) -> Row:
        names = row.get_field_names() or []
        kept = [index for index in range(len(row)) if index not in self._places]
        made: Row = Row(*[names[index] for index in kept])(*[row[index] for index in kept])
        made.set_row_kind(row.get_row_kind())
        return made


class _Retraction:
    """Turns a Row with a kind into a pair."""

    def __init__(self, type_info: TypeInformation) -> None:
        self._form = _Form(type_info)

    def __call__(self, row: Row) -> tuple[bool, Any]:
        added = row.get_row_kind() in (RowKind.INSERT, RowKind.UPDATE_AFTER)
        return added, self._form(row)


def _as_declared(type_info: TypeInformation) -> Callable[[Row], Any]:
    """Return a function that makes values of a type: tuples, or rows with the field names of the type."""
    if isinstance(type_info, TupleTypeInfo):
        return tuple
    return Row(*type_info.get_field_names()) if isinstance(type_info, RowTypeInfo) else Row


class _Form:
    """Gives rows the form of a type."""

    def __init__(self, type_info: TypeInformation) -> None:
        self._make = _as_declared(type_info)
        self._whole = self._make is tuple

    def __call__(self, row: Row) -> Any:
        return self._make(row) if self._whole else self._make(*row)


def _columns_of(stream: DataStream) -> Columns:
    """Return the columns of a stream's type. A value that is no row is the column f0."""
    declared = stream.get_type()
    if isinstance(declared, (RowTypeInfo, TupleTypeInfo)):
        kind = data_type(declared)
        assert isinstance(kind, RowType)
        return tuple(Column(field.name, field.data_type) for field in kind.fields)
    if declared is None:
        return (Column("f0", RawType()),)
    try:
        return (Column("f0", data_type(declared)),)
    except TypeError as error:
        if stream._type is None:
            return (Column("f0", RawType()),)
        raise ValidationException(
            f"the columns of a stream come from its type, and {declared} has no fields: give "
            "type_info=Types.ROW_NAMED(...) "
            "to from_collection, or output_type to map"
        ) from error


Metadata = tuple[tuple[int, str], ...]


def _in_stream(declared: Columns, metadata: Metadata, found: Columns) -> tuple[Columns, Metadata]:
    """Return the fields of a stream in its own order, as a schema declares them, followed by its metadata.

    Fields that are not declared are available to computed columns.
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
    return str(stream.refs[0].node.name)


def _name_by_position(relation: Relation, fields: list[Any]) -> Relation | None:
    """Rename the first columns by position. Return None if a field is no plain name, or if its name exists."""
    names = [column_name(one) for one in fields]
    if any(name is None or name in relation.names() for name in names) or len(names) > len(relation.columns):
        return None
    refs = [relation.ref(index) for index in range(len(names))]
    return project(relation, refs, [str(name) for name in names])
