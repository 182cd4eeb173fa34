"""JSON: messages of one object each, and files with one value in each line.

Dates and times are strings as in RFC 3339 (`2024-05-01`, `10:00:00Z`, `2024-05-01T10:00:00Z`), decimals are numbers,
bytes are base64, and numbers that are not finite are strings such as `"NaN"`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property, partial
from json import JSONDecoder
from typing import IO, Any

from penstock.base.arguments import check_arguments
from penstock.common.composite_types import RowTypeInfo, as_row_type_info
from penstock.common.serialization import (
    BulkWriter,
    BulkWriterFactory,
    DeserializationSchema,
    Encoder,
    SerializationSchema,
)
from penstock.common.type_information import TableType, TypeInformation
from penstock.common.typeinfo import Types
from penstock.common.types import Row
from penstock.errors import UndecodableRecord
from penstock.formats.batch_of_rows import RecordBatch
from penstock.formats.bulk_writers import LinesWriter, WriterFactory
from penstock.formats.contracts import FormatReader, Reject, StreamFormat
from penstock.formats.file_lines import Lines, LinesReader, decode_line, decode_lines
from penstock.formats.json.json_batches import ParseStart, parse_together
from penstock.formats.json.json_schema import row_type_of
from penstock.formats.json.json_types import (
    MISREAD,
    RowReading,
    fitting_writer_of,
    has_decimals,
    plain_text,
    reading_of,
    rows_writer_of,
)
from penstock.formats.message_batches import LEAST_TOGETHER, Gathering, ReadsTogether, WritesTogether, schema_of_batches

__all__ = [
    "JsonLinesEncoder",
    "JsonLinesFormat",
    "JsonLinesWriters",
    "JsonRowDeserializationSchema",
    "JsonRowSerializationSchema",
]


# --- messages ---
class JsonRowSerializationSchema(SerializationSchema, WritesTogether):
    """Rows as JSON objects, in UTF-8."""

    @check_arguments
    def __init__(self, type_info: TypeInformation) -> None:
        self._type_info = as_row_type_info(type_info)
        self._write = fitting_writer_of(self._type_info)

    @staticmethod
    def builder() -> JsonRowSerializationSchema.Builder:
        """Return a builder without a type."""
        return JsonRowSerializationSchema.Builder()

    def serialize(self, value: Any) -> bytes:
        return self._write(value).encode()

    def write_batch(self, batch: RecordBatch) -> list[bytes] | None:
        if self._of_batches is None or not batch.schema.equals(self._of_batches):
            return None
        return self.write_columns([column.to_pylist() for column in batch.columns])

    def write_columns(self, columns: Sequence[Sequence[Any]]) -> list[bytes] | None:
        """Return messages for rows whose fields are in lists; None if a field is not in the form of its type."""
        try:
            return [text.encode() for text in self._write_rows(columns)]
        except MISREAD:
            return None

    @cached_property
    def _write_rows(self) -> Callable[[Sequence[Sequence[Any]]], list[str]]:
        return rows_writer_of(self._type_info)

    @cached_property
    def _of_batches(self) -> Any | None:
        return schema_of_batches(self._type_info)

    def __reduce__(self) -> tuple[Any, ...]:
        return JsonRowSerializationSchema, (self._type_info,)

    @check_arguments
    class Builder:
        """Builds a JsonRowSerializationSchema."""

        def __init__(self) -> None:
            self._type_info: TypeInformation | None = None

        def with_type_info(self, type_info: TypeInformation | TableType) -> JsonRowSerializationSchema.Builder:
            """Set the type of the rows."""
            self._type_info = as_row_type_info(type_info)
            return self

        def build(self) -> JsonRowSerializationSchema:
            """Return the schema; raise ValueError if the type of the rows is missing."""
            if self._type_info is None:
                raise ValueError("the type of the rows is missing: call with_type_info")
            return JsonRowSerializationSchema(self._type_info)


@check_arguments
class JsonRowDeserializationSchema(DeserializationSchema, ReadsTogether):
    """JSON objects as rows. Fields that the row type lacks are ignored, and missing fields are None."""

    def __init__(
        self, type_info: TypeInformation, *, fail_on_missing_field: bool = False, ignore_parse_errors: bool = False
    ) -> None:
        if fail_on_missing_field and ignore_parse_errors:
            raise ValueError("fail_on_missing_field and ignore_parse_errors exclude each other")
        self._type_info = as_row_type_info(type_info)
        self._strict = fail_on_missing_field
        self._ignore = ignore_parse_errors
        self._parse = _parser(has_decimals(self._type_info))
        self._parse_start = _parse_start(has_decimals(self._type_info))
        self._reading = RowReading(self._type_info, self._strict)

    @staticmethod
    def builder() -> JsonRowDeserializationSchema.Builder:
        """Return a builder without a type."""
        return JsonRowDeserializationSchema.Builder()

    def deserialize(self, message: bytes | None) -> Row | None:
        """Return the row of a message; None for a message that is skipped."""
        if message is None:
            return None
        try:
            return self._reading.one(self._parse(message.decode()))
        except UnicodeDecodeError as error:
            found = UndecodableRecord(f"not UTF-8: {error}")
        except UndecodableRecord as error:
            found = error
        if self._ignore:
            return None
        raise found

    def read_columns(self, messages: list[bytes]) -> list[Sequence[Any]] | None:
        objects = parse_together(messages, self._parse_start)
        if objects is None or set(map(type, objects)) != {dict}:
            return None
        try:
            return self._reading.columns(objects)
        except (*MISREAD, UndecodableRecord):
            return None

    def get_produced_type(self) -> TypeInformation:
        return self._type_info

    def __reduce__(self) -> tuple[Any, ...]:
        return _deserialization_schema, (self._type_info, self._strict, self._ignore)

    @check_arguments
    class Builder:
        """Builds a JsonRowDeserializationSchema."""

        def __init__(self) -> None:
            self._type_info: TypeInformation | None = None
            self._strict = False
            self._ignore = False

        def type_info(self, type_info: TypeInformation | TableType) -> JsonRowDeserializationSchema.Builder:
            """Set the type of the rows."""
            self._type_info = as_row_type_info(type_info)
            return self

        def json_schema(self, json_schema: str) -> JsonRowDeserializationSchema.Builder:
            """Derive the type of the rows from a JSON schema. Numbers of every kind become decimals."""
            if not json_schema:
                raise TypeError("the JSON schema must not be empty")
            self._type_info = row_type_of(json_schema)
            return self

        def fail_on_missing_field(self) -> JsonRowDeserializationSchema.Builder:
            """Treat an object that lacks a field as undecodable."""
            self._strict = True
            return self

        def ignore_parse_errors(self) -> JsonRowDeserializationSchema.Builder:
            """Skip messages that cannot be decoded."""
            self._ignore = True
            return self

        def build(self) -> JsonRowDeserializationSchema:
            """Return the schema.

            Raises:
                ValueError: The type is missing, or `fail_on_missing_field` and `ignore_parse_errors` are both set.
            """
            if self._type_info is None:
                raise ValueError("the type of the rows is missing: call type_info or json_schema")
            return _deserialization_schema(self._type_info, self._strict, self._ignore)


def _deserialization_schema(type_info: TypeInformation, strict: bool, ignore: bool) -> JsonRowDeserializationSchema:
    return JsonRowDeserializationSchema(type_info, fail_on_missing_field=strict, ignore_parse_errors=ignore)


def _parse_start(decimals: bool) -> ParseStart:
    return JSONDecoder(parse_float=Decimal if decimals else None).raw_decode


def _parser(decimals: bool) -> Callable[[str], Any]:
    """Return a parser of one JSON value, which fails with UndecodableRecord."""
    parse_start = _parse_start(decimals)

    def parse(text: str) -> Any:
        text = text.strip(" \t\n\r")
        try:
            value, end = parse_start(text)
        except (ValueError, RecursionError) as error:
            raise UndecodableRecord(f"not JSON: {error}") from None
        if end != len(text):
            raise UndecodableRecord(f"not JSON: there is text after the value, at character {end}")
        return value

    return parse


# --- files ---
@check_arguments
@dataclass(frozen=True)
class JsonLinesFormat(StreamFormat):
    """Files with one JSON value in each line, in UTF-8. Empty lines are skipped.

    With a row type, lines are objects that become rows. Without a type, they become the values that `json` returns.
    """

    type_info: TypeInformation | None = None
    fail_on_missing_field: bool = False
    splittable = True

    def __post_init__(self) -> None:
        if self.type_info is not None:
            reading_of(self.type_info)

    def open(self, file: IO[bytes], start: int, end: int, position: Any, reject: Reject) -> FormatReader:
        return _JsonLinesReader(Lines(file, start, end, position), reject, self)

    def get_produced_type(self) -> TypeInformation | None:
        return self.type_info


class _JsonLinesReader(LinesReader):
    def __init__(self, lines: Lines, reject: Reject, format: JsonLinesFormat) -> None:
        super().__init__(lines, reject)
        declared = format.type_info
        self._parse = _parser(declared is not None and has_decimals(declared))
        self._parse_start = _parse_start(declared is not None and has_decimals(declared))
        self._gathering = Gathering(declared) if isinstance(declared, RowTypeInfo) and declared.field_types else None
        self._rows = RowReading(declared, format.fail_on_missing_field) if isinstance(declared, RowTypeInfo) else None
        self._one = reading_of(declared or Types.PICKLED_BYTE_ARRAY(), format.fail_on_missing_field).one
        self._declared = declared

    def decode_all(self, lines: list[bytes], begin: int) -> Sequence[Any]:
        try:
            found = self._read_together([line for line in lines if line and not line.isspace()])
            if found is not None:
                return found
            parse = self._parse
            values = [parse(text) for text in decode_lines(lines, "utf-8") if text and not text.isspace()]
            return self._read_all(values)
        except (*MISREAD, UndecodableRecord):
            return list(self.decode_one_by_one(lines, begin, self._decode_line))

    def _read_together(self, lines: list[bytes]) -> Sequence[Any] | None:
        """Return the rows of lines that are one object each; None if the lines must be read one by one."""
        if self._gathering is None or self._rows is None or len(lines) < LEAST_TOGETHER:
            return None
        objects = parse_together(lines, self._parse_start)
        if objects is None or set(map(type, objects)) != {dict}:
            return None
        return self._gathering.rows(self._rows.columns(objects))

    def _read_all(self, values: list[Any]) -> list[Any]:
        if self._rows is None:
            return values if self._declared is None else [v if v is None else self._one(v) for v in values]
        if set(map(type, values)) <= {dict}:
            return self._rows.many(values)
        return [self._rows.one(value) for value in values]

    def _decode_line(self, line: bytes) -> list[Any]:
        text = decode_line(line, "utf-8")
        return [self._decode_one(text)] if text and not text.isspace() else []

    def _decode_one(self, text: str) -> Any:
        value = self._parse(text)
        try:
            return None if value is None and self._rows is None else self._one(value)
        except MISREAD:
            wanted = "a value" if self._declared is None else self._declared.notation
            raise UndecodableRecord(f"{text[:60]} is not {wanted}") from None


@check_arguments
@dataclass(frozen=True)
class JsonLinesEncoder(Encoder):
    """Encodes every value as JSON on its own line, for row-wise file sinks; without a type, as `json` does."""

    type_info: TypeInformation | None = None

    def __post_init__(self) -> None:
        if self.type_info is not None:
            fitting_writer_of(self.type_info)

    def encode(self, value: Any, type_info: TypeInformation | None = None) -> bytes:
        return f"{self._writer(type_info)(value)}\n".encode()

    def encode_all(self, values: list[Any], type_info: TypeInformation | None = None) -> bytes:
        write = self._writer(type_info)
        return "".join([f"{write(value)}\n" for value in values]).encode()

    def _writer(self, type_info: TypeInformation | None) -> Callable[[Any], str]:
        declared = self.type_info or type_info
        if declared is None:
            return plain_text
        if declared not in self._writers:
            self._writers[declared] = fitting_writer_of(declared)
        return self._writers[declared]

    @cached_property
    def _writers(self) -> dict[TypeInformation, Callable[[Any], str]]:
        return {}

    def __reduce__(self) -> tuple[Any, ...]:
        return JsonLinesEncoder, (self.type_info,)


@check_arguments
class JsonLinesWriters:
    """Makes writers of files with one JSON value in each line."""

    @staticmethod
    def for_row_type(row_type: TypeInformation) -> BulkWriterFactory:
        """Write rows of a type as objects."""
        return WriterFactory(_lines_writer, (as_row_type_info(row_type),))

    @staticmethod
    def for_values() -> BulkWriterFactory:
        """Write dicts, lists, strings and numbers as they are."""
        return WriterFactory(_lines_writer, (Types.PICKLED_BYTE_ARRAY(),))


def _lines_writer(stream: IO[bytes], declared: TypeInformation) -> BulkWriter:
    return LinesWriter(stream, partial(map, fitting_writer_of(declared)))
