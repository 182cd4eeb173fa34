"""CSV: files and messages whose records are lines of fields.

Nested values are kept simple: a field may hold a list or a row of simple values, joined by a separator. Bytes are
base64. An empty field is None for every type except strings and lists. Strings are None only where a null literal is
set and found.
"""

from __future__ import annotations

import csv
import io
from codecs import BOM_UTF8
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import IO, Any, TypeVar

from penstock.api.settings.values import check_kind
from penstock.base.arguments import check_arguments
from penstock.common.basic_types import BasicTypeInfo, BooleanTypeInfo, CharTypeInfo, InstantTypeInfo
from penstock.common.composite_types import RowTypeInfo, as_row_type_info
from penstock.common.serialization import BulkWriter, BulkWriterFactory, DeserializationSchema, SerializationSchema
from penstock.common.type_information import TableType, TypeInformation, as_type_information
from penstock.common.typeinfo import Types
from penstock.common.types import Row, make_row
from penstock.errors import SchemaMismatch, TypeMismatch, UndecodableRecord
from penstock.formats.batch_of_rows import RecordBatch
from penstock.formats.bulk_writers import LinesWriter, WriterFactory
from penstock.formats.contracts import FormatReader, Reject, StreamFormat
from penstock.formats.csv.csv_files import CsvRecordsReader, parse_options
from penstock.formats.csv.csv_quotes import Dialect
from penstock.formats.csv.csv_types import (
    MISREAD,
    PLAIN,
    FieldsReader,
    LineWriter,
    is_comment,
    one_character,
    text_of,
)
from penstock.formats.decimal_values import stream_type_of
from penstock.formats.file_lines import Lines
from penstock.formats.message_batches import ReadsTogether, WritesTogether, schema_of_batches

__all__ = [
    "CsvBulkWriters",
    "CsvReaderFormat",
    "CsvRowDeserializationSchema",
    "CsvRowSerializationSchema",
    "CsvSchema",
    "CsvSchemaBuilder",
]


B = TypeVar("B", bound="_RowBuilder")


# --- schemas of files ---
@dataclass(frozen=True)
class _Column:
    name: str
    type: TypeInformation
    separator: str = ""


@check_arguments
@dataclass(frozen=True)
class CsvSchema:
    """The columns of a CSV file and its format. A builder makes it."""

    columns: tuple[_Column, ...]
    dialect: Dialect = PLAIN
    line_separator: str = "\n"
    use_header: bool = False
    strict_headers: bool = False
    skip_first_data_row: bool = False
    any_property_name: str | None = None

    @staticmethod
    def builder() -> CsvSchemaBuilder:
        """Return a builder without columns."""
        return CsvSchemaBuilder()

    @property
    def row_type(self) -> RowTypeInfo:
        """Type of the records."""
        return Types.ROW_NAMED([column.name for column in self.columns], [column.type for column in self.columns])

    @property
    def separators(self) -> list[str]:
        """Separators of the elements of each column."""
        return [column.separator for column in self.columns]

    def size(self) -> int:
        """Return the number of columns."""
        return len(self.columns)

    def __len__(self) -> int:
        return self.size()

    def __str__(self) -> str:
        return f"CsvSchema({', '.join(f'{column.name} {column.type.notation}' for column in self.columns)})"


@check_arguments
class CsvSchemaBuilder:
    """Builds a CsvSchema. Defaults: commas, double quotes, no escape character, no header, no comments."""

    def __init__(self) -> None:
        self._schema = CsvSchema(())

    def build(self) -> CsvSchema:
        """Return the schema; raise ValueError if there are no columns or two have the same name."""
        names = [column.name for column in self._schema.columns]
        if not names:
            raise ValueError("a CSV schema needs at least one column")
        if len(set(names)) != len(names):
            raise ValueError(f"column names must differ: {names}")
        return self._schema

    def add_array_column(
        self, name: str, separator: str = ";", element_type: TypeInformation | TableType | None = None
    ) -> CsvSchemaBuilder:
        """Add a list of simple values, with this text between them. By default they are strings."""
        return self._add(_Column(name, Types.LIST(as_type_information(element_type) or Types.STRING()), separator))

    def add_boolean_column(self, name: str) -> CsvSchemaBuilder:
        """Add a column of booleans."""
        return self._add(_Column(name, Types.BOOLEAN()))

    def add_number_column(self, name: str, number_type: TypeInformation | TableType | None = None) -> CsvSchemaBuilder:
        """Add a number: by default, a LONG.

        `DECIMAL` of `formats.decimals` gives decimals of a fixed number of digits.
        """
        declared = as_type_information(number_type) or Types.LONG()
        others = (BooleanTypeInfo, CharTypeInfo, InstantTypeInfo)
        if not isinstance(declared, BasicTypeInfo) or declared == Types.STRING() or isinstance(declared, others):
            raise TypeError(f"the type of a number column is a number, such as Types.DOUBLE(), not {declared!r}")
        return self._add(_Column(name, declared))

    def add_string_column(self, name: str) -> CsvSchemaBuilder:
        """Add a column of strings."""
        return self._add(_Column(name, Types.STRING()))

    def add_column(self, name: str, type_info: TypeInformation | TableType) -> CsvSchemaBuilder:
        """Add a column of any simple type, such as a date."""
        return self._add(_Column(name, as_type_information(type_info)))

    def add_columns_from(self, schema: CsvSchema) -> CsvSchemaBuilder:
        """Add the columns of another schema."""
        return self._with(columns=(*self._schema.columns, *schema.columns))

    def clear_columns(self) -> CsvSchemaBuilder:
        """Remove all columns."""
        return self._with(columns=())

    def set_allow_comments(self, allow: bool = True) -> CsvSchemaBuilder:
        """Skip lines that begin with `#`."""
        return self._with_dialect(comments=allow)

    def set_any_property_name(self, name: str) -> CsvSchemaBuilder:
        """Allow records with more fields than columns.

        The extra fields are dropped, because a row has no place for them.
        """
        return self._with(any_property_name=name)

    def disable_array_element_separator(self) -> CsvSchemaBuilder:
        """Do not split the text of array columns. Each array then has its text as its only element."""
        return self.set_array_element_separator("")

    def remove_array_element_separator(self, index: int) -> CsvSchemaBuilder:
        """Do not split the text of one array column. The array then has this text as its only element."""
        columns = list(self._schema.columns)
        columns[index] = replace(columns[index], separator="")
        return self._with(columns=tuple(columns))

    def set_array_element_separator(self, separator: str) -> CsvSchemaBuilder:
        """Set the text between the elements of all array columns that have been added."""
        columns = self._schema.columns
        return self._with(columns=tuple([replace(c, separator=separator) if c.separator else c for c in columns]))

    def set_column_separator(self, char: str) -> CsvSchemaBuilder:
        """Set the character between two columns: a comma by default."""
        return self._with_dialect(delimiter=one_character("column separator", char))

    def disable_escape_char(self) -> CsvSchemaBuilder:
        """Use no escape character: the default."""
        return self._with_dialect(escape=None)

    def set_escape_char(self, char: str) -> CsvSchemaBuilder:
        """Take the character after this one literally."""
        return self._with_dialect(escape=one_character("escape character", char))

    def set_line_separator(self, separator: str) -> CsvSchemaBuilder:
        r"""Set the line end to write: `\n` by default. Reading accepts `\n` and `\r\n`."""
        if separator not in ("\n", "\r\n"):
            raise ValueError(f"the line separator must be '\\n' or '\\r\\n', not {separator!r}")
        return self._with(line_separator=separator)

    def set_null_value(self, null_value: str) -> CsvSchemaBuilder:
        """Set the text that stands for None in columns of all types."""
        return self._with_dialect(null_literal=null_value)

    def disable_quote_char(self) -> CsvSchemaBuilder:
        """Read quotes as ordinary characters. If there is no escape character either, files are read in pieces."""
        return self._with_dialect(quote=None)

    def set_quote_char(self, char: str) -> CsvSchemaBuilder:
        """Set the character around fields that hold separators or line ends: `"` by default."""
        return self._with_dialect(quote=one_character("quote character", char))

    def set_skip_first_data_row(self, skip: bool = True) -> CsvSchemaBuilder:
        """Skip the first record of each file, after the header if there is one."""
        return self._with(skip_first_data_row=skip)

    def set_strict_headers(self, strict: bool = True) -> CsvSchemaBuilder:
        """Choose whether a file fails if its header does not name the columns in order."""
        return self._with(strict_headers=strict)

    def set_use_header(self, use: bool = True) -> CsvSchemaBuilder:
        """Read the first line of each file as a header, and write a header."""
        return self._with(use_header=use)

    def size(self) -> int:
        """Return the number of columns that have been added."""
        return self._schema.size()

    def __len__(self) -> int:
        return self.size()

    def _add(self, column: _Column) -> CsvSchemaBuilder:
        text_of(column.type, column.separator)
        return self._with(columns=(*self._schema.columns, column))

    def _with(self, **changes: Any) -> CsvSchemaBuilder:
        self._schema = replace(self._schema, **changes)
        return self

    def _with_dialect(self, **changes: Any) -> CsvSchemaBuilder:
        return self._with(dialect=replace(self._schema.dialect, **changes))


# --- files ---
@check_arguments
@dataclass(frozen=True)
class CsvReaderFormat(StreamFormat):
    """CSV files as rows.

    They are read whole, because only their beginning tells whether a line end is within quotes.
    """

    schema: CsvSchema
    lenient: bool = False
    """True if a wrong or missing field is None; False if it makes the whole line wrong."""

    @staticmethod
    def for_schema(schema: CsvSchema) -> CsvReaderFormat:
        """Return a format for files with the columns of a schema."""
        return CsvReaderFormat(check_kind(CsvSchema, schema))

    @property
    def splittable(self) -> bool:  # type: ignore[override]
        """True if every line is a record."""
        dialect = self.schema.dialect
        return dialect.quote is None and dialect.escape is None and not self.schema.skip_first_data_row

    def open(self, file: IO[bytes], start: int, end: int, position: Any, reject: Reject) -> FormatReader:
        schema = self.schema
        extra = schema.any_property_name is not None
        fields = FieldsReader(
            schema.row_type, schema.dialect, schema.separators, extra_fields=extra, lenient=self.lenient
        )
        at_start = position is None and start == 0
        lines = Lines(file, start, end, _behind_mark(file) if at_start else position)
        reader = CsvRecordsReader(lines, fields, schema.dialect, reject)
        if at_start:
            self._read_head(reader)
        return reader

    def _read_head(self, reader: CsvRecordsReader) -> None:
        if self.schema.use_header:
            header = reader.next_fields()
            if header is not None and self.schema.strict_headers:
                _check_header(header, [column.name for column in self.schema.columns])
        if self.schema.skip_first_data_row:
            reader.next_fields()

    def get_produced_type(self) -> TypeInformation:
        return stream_type_of(self.schema.row_type)


def _check_header(header: list[str], names: list[str]) -> None:
    for index, name in enumerate(names):
        found = header[index] if index < len(header) else None
        if found is None or name not in (found, found.strip()):
            instead = "nothing" if found is None else repr(found)
            raise SchemaMismatch(f"column {index + 1} of the CSV header: found {instead}, wanted {name!r}")
    if len(header) > len(names):
        raise SchemaMismatch(f"the CSV header has {len(header)} columns, wanted {len(names)}: found {header}")


def _behind_mark(file: IO[bytes]) -> int:
    """Return the position after the byte order mark that some programs write, or 0 if there is no mark."""
    file.seek(0)
    return len(BOM_UTF8) if file.read(len(BOM_UTF8)) == BOM_UTF8 else 0


@check_arguments
class CsvBulkWriters:
    """Makes writers of CSV files."""

    @staticmethod
    def for_schema(schema: CsvSchema) -> BulkWriterFactory:
        """Write rows with the columns of a schema."""
        return WriterFactory(_lines_writer, (check_kind(CsvSchema, schema),))


def _lines_writer(stream: IO[bytes], schema: CsvSchema) -> BulkWriter:
    lines = LineWriter(schema.row_type, schema.dialect, schema.separators)
    if schema.use_header:
        stream.write((lines.header() + schema.line_separator).encode())
    return LinesWriter(stream, lines.lines, schema.line_separator)


# --- messages ---
@dataclass(frozen=True)
class _RowOptions:
    """The settings that the schemas of messages share."""

    type_info: RowTypeInfo
    dialect: Dialect = PLAIN
    array_separator: str = ";"
    line_end: str = "\n"
    ignore_parse_errors: bool = False

    @property
    def separators(self) -> list[str]:
        return [self.array_separator] * self.type_info.get_arity()


def _options(type_info: Any) -> _RowOptions:
    row_type = as_row_type_info(type_info)
    for part in row_type.field_types:
        text_of(part)
    return _RowOptions(row_type)


@check_arguments
class _RowBuilder:
    """The settings that the builders of both schemas share."""

    def __init__(self, type_info: TypeInformation | TableType) -> None:
        self._options = _options(type_info)

    def set_array_element_delimiter(self: B, delimiter: str) -> B:
        """Set the text between the elements of an array: `;` by default."""
        return self._with(array_separator=delimiter)

    def set_quote_character(self: B, c: str) -> B:
        """Set the character around fields that hold delimiters or line ends: `"` by default."""
        return self._with_dialect(quote=one_character("quote character", c))

    def set_escape_character(self: B, c: str) -> B:
        """Set the character after which the next one is taken literally. By default there is none."""
        return self._with_dialect(escape=one_character("escape character", c))

    def _with(self: B, **changes: Any) -> B:
        self._options = replace(self._options, **changes)
        return self

    def _with_dialect(self: B, **changes: Any) -> B:
        return self._with(dialect=replace(self._options.dialect, **changes))


class CsvRowSerializationSchema(SerializationSchema, WritesTogether):
    """Rows as lines of CSV, in UTF-8."""

    def __init__(self, options: _RowOptions) -> None:
        self._options = options
        self._writer = LineWriter(options.type_info, options.dialect, options.separators)

    def serialize(self, value: Any) -> bytes:
        return (self._writer.line(value) + self._options.line_end).encode()

    def write_batch(self, batch: RecordBatch) -> list[bytes] | None:
        if self._of_batches is None or not batch.schema.equals(self._of_batches):
            return None
        return self.write_columns([column.to_pylist() for column in batch.columns])

    def write_columns(self, columns: Sequence[Sequence[Any]]) -> list[bytes] | None:
        """Return messages for rows whose fields are in lists; None if a field is not in the form of its type."""
        try:
            return [(line + self._options.line_end).encode() for line in self._writer.lines_of(columns)]
        except (TypeMismatch, *MISREAD):
            return None

    @cached_property
    def _of_batches(self) -> Any | None:
        return schema_of_batches(self._options.type_info)

    def __reduce__(self) -> tuple[Any, ...]:
        return CsvRowSerializationSchema, (self._options,)

    @check_arguments
    class Builder(_RowBuilder):
        """Builds a CsvRowSerializationSchema."""

        def set_field_delimiter(self, c: str) -> CsvRowSerializationSchema.Builder:
            """Set the character between two fields: a comma by default."""
            return self._with_dialect(delimiter=one_character("field delimiter", c))

        def set_line_delimiter(self, delimiter: str) -> CsvRowSerializationSchema.Builder:
            r"""Set the end of each record: `\n` by default, `\r\n`, `\r`, or nothing."""
            if delimiter not in ("\n", "\r", "\r\n", ""):
                raise ValueError(f"the line delimiter must be a line end or empty, not {delimiter!r}")
            return self._with(line_end=delimiter)

        def disable_quote_character(self) -> CsvRowSerializationSchema.Builder:
            """Write fields without quotes. Without an escape character, a text that would end its field is refused."""
            return self._with_dialect(quote=None)

        def set_null_literal(self, s: str) -> CsvRowSerializationSchema.Builder:
            """Set the text that is written for None."""
            return self._with_dialect(null_literal=s)

        def build(self) -> CsvRowSerializationSchema:
            """Return the schema."""
            return CsvRowSerializationSchema(self._options)


@check_arguments
class CsvRowDeserializationSchema(DeserializationSchema, ReadsTogether):
    """Lines of CSV, one in each message, as rows."""

    def __init__(self, options: _RowOptions) -> None:
        self._options = options
        self._parse_options = parse_options(options.dialect)
        self._reader = FieldsReader(
            options.type_info, options.dialect, options.separators, lenient=options.ignore_parse_errors
        )

    def deserialize(self, message: bytes | None) -> Row | None:
        """Return the row of a message; None for a comment, an empty message, or a message that is skipped."""
        if message is None:
            return None
        try:
            fields = self._fields(message)
            return make_row(self._reader.names, self._reader.values(fields)) if fields else None
        except UndecodableRecord:
            if self._options.ignore_parse_errors:
                return None
            raise

    def _fields(self, message: bytes) -> list[str] | None:
        try:
            text = message.decode()
            if self._options.dialect.comments and is_comment(text):
                return None
            records = csv.reader(io.StringIO(text, newline=""), **self._parse_options)
            fields, more = next(records, None), next(records, None)
        except (UnicodeDecodeError, csv.Error) as error:
            raise UndecodableRecord(f"not CSV in UTF-8: {error}") from None
        if more is not None:
            raise UndecodableRecord("the message has more than one record")
        return fields

    def read_columns(self, messages: list[bytes]) -> list[Sequence[Any]] | None:
        lines = self._lines(messages)
        if lines is None:
            return None
        try:
            records = list(csv.reader(lines, **self._parse_options))
            return self._reader.columns(records) if len(records) == len(lines) and all(records) else None
        except (csv.Error, *MISREAD):
            return None

    def _lines(self, messages: list[bytes]) -> list[str] | None:
        """Return the texts of messages that are one line each, with or without its end; None for other messages."""
        try:
            text = b"\n".join(messages).decode()
            if text.count("\n") != len(messages) - 1:
                text = b"\n".join([message.removesuffix(b"\n") for message in messages]).decode()
        except UnicodeDecodeError:
            return None
        odd = "\r" in text or (self._options.dialect.comments and "#" in text)
        return None if odd or text.count("\n") != len(messages) - 1 else text.split("\n")

    def get_produced_type(self) -> TypeInformation:
        return stream_type_of(self._options.type_info)

    def __reduce__(self) -> tuple[Any, ...]:
        return CsvRowDeserializationSchema, (self._options,)

    @check_arguments
    class Builder(_RowBuilder):
        """Builds a CsvRowDeserializationSchema."""

        def set_field_delimiter(self, delimiter: str) -> CsvRowDeserializationSchema.Builder:
            """Set the character between two fields: a comma by default."""
            return self._with_dialect(delimiter=one_character("field delimiter", delimiter))

        def set_allow_comments(self, allow_comments: bool) -> CsvRowDeserializationSchema.Builder:
            """Skip messages that begin with `#`."""
            return self._with_dialect(comments=allow_comments)

        def set_null_literal(self, null_literal: str) -> CsvRowDeserializationSchema.Builder:
            """Set the text that stands for None in fields of all types."""
            return self._with_dialect(null_literal=null_literal)

        def set_ignore_parse_errors(self, ignore_parse_errors: bool) -> CsvRowDeserializationSchema.Builder:
            """Read a wrong field as None, and skip messages that cannot be cut into fields."""
            return self._with(ignore_parse_errors=ignore_parse_errors)

        def build(self) -> CsvRowDeserializationSchema:
            """Return the schema."""
            return CsvRowDeserializationSchema(self._options)
