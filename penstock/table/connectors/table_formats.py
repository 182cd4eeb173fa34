"""The formats of tables, by the option 'format': readers and writers of files and messages."""

from __future__ import annotations

import datetime
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from penstock.common.composite_types import RowTypeInfo
from penstock.common.serialization import BulkWriterFactory
from penstock.common.time import Instant
from penstock.common.type_information import TypeInformation
from penstock.common.typeinfo import Types
from penstock.common.types import Row, make_row
from penstock.errors import ValidationException
from penstock.formats.contracts import BulkFormat, StreamFormat
from penstock.table.connectors.contract import Options
from penstock.table.connectors.legacy_options import SURPLUS
from penstock.table.logical.nodes import Columns
from penstock.table.types import data_types as t
from penstock.table.types.stream_types import type_information

CHANGELOGS = ("debezium-json", "canal-json", "maxwell-json", "ogg-json")


@dataclass(frozen=True)
class FileFormats:
    """A format of files: its reader, its writer, and whether a bad record may be skipped."""

    reading: StreamFormat | BulkFormat
    writing: BulkWriterFactory
    prepared: Callable[[Row], Row] | None = None
    """Function that is applied to a row before it is written."""
    ignores_errors: bool = False


def row_type(columns: Columns) -> RowTypeInfo:
    """Return the type of a record's rows, for formats."""
    declared = type_information(t.RowType([(column.name, column.type) for column in columns]))
    assert isinstance(declared, RowTypeInfo)
    return declared


def file_formats(options: Options, columns: Columns) -> FileFormats:
    """Return the format of a table in files."""
    name = options.require("format")
    makers = {
        "csv": _csv,
        "json": _json,
        "parquet": _parquet,
        "orc": _orc,
        "avro": _avro,
        **dict.fromkeys(("raw", *CHANGELOGS), _messages),
    }
    make = makers.get(name)
    if make is None:
        known = ", ".join(makers)
        raise ValidationException(f"table {options.table}: files have no format '{name}'; allowed are {known}")
    return make(options, columns)


def _csv(options: Options, columns: Columns) -> FileFormats:
    from penstock.formats.csv.csv_format import CsvBulkWriters, CsvReaderFormat, CsvSchema

    texts = Texts.of(columns, "sql")
    reading, writing = (
        _csv_schema(CsvSchema.builder(), options, kinds) for kinds in (row_type(columns), texts.row_type)
    )
    lenient = options.flag("csv.ignore-parse-errors")
    return FileFormats(
        CsvReaderFormat(reading.build(), lenient),
        CsvBulkWriters.for_schema(writing.build()),
        texts.of_row,
        lenient,
    )


def _csv_schema(builder: Any, options: Options, kinds: RowTypeInfo) -> Any:
    separator = options.text("csv.array-element-delimiter", ";")
    for name, kind in zip(kinds.get_field_names(), kinds.field_types, strict=True):
        listed = getattr(kind, "elem_type", None)
        if listed is not None:
            builder.add_array_column(name, separator, listed)
        else:
            builder.add_column(name, kind)
    builder.set_column_separator(_character(options.text("csv.field-delimiter", ",") or ","))
    if options.flag("csv.disable-quote-character"):
        builder.disable_quote_char()
    else:
        builder.set_quote_char(options.text("csv.quote-character", '"'))
    escape = options.text("csv.escape-character")
    if escape:
        builder.set_escape_char(escape)
    null = options.text("csv.null-literal")
    if null is not None:
        builder.set_null_value(null)
    if options.flag("csv.allow-comments"):
        builder.set_allow_comments()
    if options.flag(SURPLUS):
        builder.set_any_property_name("surplus")
    options.flag("csv.write-bigdecimal-in-scientific-notation")
    return builder


def _character(text: str) -> str:
    return text.encode().decode("unicode_escape") if text.startswith("\\") else text


def _json(options: Options, columns: Columns) -> FileFormats:
    from penstock.formats.json.json_format import JsonLinesFormat, JsonLinesWriters

    texts = json_texts(options, columns)
    strict = options.flag("json.fail-on-missing-field")
    return FileFormats(
        JsonLinesFormat(row_type(columns), strict),
        JsonLinesWriters.for_row_type(texts.row_type),
        texts.of_row,
        options.flag("json.ignore-parse-errors"),
    )


def json_texts(options: Options, columns: Columns) -> Texts:
    """Return the writer of moments in JSON."""
    standard = options.choice("json.timestamp-format.standard", ("sql", "iso-8601"), "sql")
    options.text("json.map-null-key.mode")
    options.text("json.map-null-key.literal")
    options.flag("json.encode.decimal-as-plain-number")
    options.flag("json.encode.ignore-null-fields")
    options.flag("json.decode.json-parser.enabled")
    return Texts.of(columns, standard)


def _parquet(options: Options, columns: Columns) -> FileFormats:
    from penstock.formats.parquet_files import ParquetBulkWriters, ParquetColumnarRowInputFormat

    options.below("parquet.")
    kinds = row_type(columns)
    return FileFormats(ParquetColumnarRowInputFormat(kinds), ParquetBulkWriters.for_row_type(kinds), _instants(columns))


def _orc(options: Options, columns: Columns) -> FileFormats:
    from penstock.formats.orc_files import OrcBulkWriters, OrcColumnarRowInputFormat

    options.below("orc.")
    kinds = row_type(columns)
    return FileFormats(OrcColumnarRowInputFormat(kinds), OrcBulkWriters.for_row_type(kinds), _instants(columns))


def _avro(options: Options, columns: Columns) -> FileFormats:
    from penstock.formats.avro.avro_rows import CODECS, AvroRowFormat, AvroRowWriters
    from penstock.table.connectors.message_formats import avro_schema

    codec = options.choice("avro.codec", CODECS, "deflate")
    names = tuple(column.name for column in columns)
    return FileFormats(AvroRowFormat(names), AvroRowWriters(avro_schema(columns), codec))


def _messages(options: Options, columns: Columns) -> FileFormats:
    from penstock.table.connectors.line_formats import message_lines

    return FileFormats(*message_lines(options, options.require("format"), columns))


# --- moments ---
def _instants(columns: Columns) -> Callable[[Row], Row] | None:
    """Return a function that makes Instants of moments with a zone, for columnar formats; None if there are none."""
    places = tuple(i for i, column in enumerate(columns) if isinstance(column.type, t.LocalZonedTimestampType))
    return Instants(places) if places else None


@dataclass(frozen=True)
class Instants:
    """Turns the datetimes at some positions of a row into Instants."""

    places: tuple[int, ...]

    def __call__(self, row: Row) -> Row:
        values = list(row)
        for place in self.places:
            if isinstance(value := values[place], datetime.datetime):
                seconds, rest = divmod(value - _EPOCH, _SECOND)
                values[place] = Instant(seconds, rest.microseconds * 1000)
        return make_row(row._names, tuple(values), row.get_row_kind())


_EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
_SECOND = datetime.timedelta(seconds=1)


@dataclass(frozen=True)
class Texts:
    """Writes the moments of a row as texts in SQL's form."""

    row_type: RowTypeInfo
    places: tuple[tuple[int, str, int], ...]
    """Columns, with the form of their texts and the number of digits after the second."""

    @staticmethod
    def of(columns: Columns, standard: str) -> Texts:
        declared, places = row_type(columns), []
        kinds: list[TypeInformation] = list(declared.field_types)
        for index, column in enumerate(columns):
            if isinstance(column.type, (t.TimestampType, t.LocalZonedTimestampType)):
                zoned = isinstance(column.type, t.LocalZonedTimestampType)
                places.append((index, standard + ("z" if zoned else ""), column.type.precision))
                kinds[index] = Types.STRING()
        return Texts(Types.ROW_NAMED(declared.get_field_names(), kinds), tuple(places))

    @property
    def of_row(self) -> Callable[[Row], Row] | None:
        """Function that changes a row; None if it has no moments."""
        return self._change if self.places else None

    def _change(self, row: Row) -> Row:
        values = list(row)
        for index, form, precision in self.places:
            if isinstance(values[index], datetime.datetime):
                values[index] = moment_text(values[index], form, precision)
        return Row(*self.row_type.get_field_names())(*values)


def row_texts(columns: Columns, standard: str) -> Texts:
    """Return the writer of the moments of rows."""
    return Texts.of(columns, standard)


def moment_text(value: datetime.datetime, form: str, precision: int) -> str:
    """Return a moment in the form of Flink's formats.

    A form that begins with "sql" has a blank, one with "iso-8601" a T. A form that ends in z has a zone.
    """
    plain = value if value.tzinfo is None else value.astimezone(datetime.UTC).replace(tzinfo=None)
    text = plain.isoformat(" " if form.startswith("sql") else "T", "seconds")
    fraction = f"{plain.microsecond:06d}"[:precision].rstrip("0")
    return text + (f".{fraction}" if fraction else "") + ("Z" if form.endswith("z") else "")
